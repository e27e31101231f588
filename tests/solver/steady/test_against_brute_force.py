"""Tests that plans with degrees for each stage are the best of all plans, and are priced as the oracle prices them."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from oracle.steady import least_bottleneck, stage_seconds
from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.problem import Problem
from partita.solver.planner import plan_problem

CASES = 60


def random_problem(seed: int) -> Problem:
    """Give a chain or graph of two to four layers whose memory often binds."""
    random = Random(seed)
    count = random.randint(2, 4)
    tensor = random.choice([1, [1, 2]])
    direct = random.random() < 0.5
    names = [f"layer{number}" for number in range(count)]
    graph = direct or random.random() < 0.5
    layers = [_layer(random, name, tensor != 1, 0 if graph else random.randint(0, 1500)) for name in names]
    model: dict[str, Any] = {"layers": layers}
    if graph:
        model["tensors"] = _tensors(random, names, direct, tensor != 1)
    blocking = direct or random.random() < 0.5
    runtime = random.choice(["none", "generic"])
    memory = random.randint(300, 2500 if runtime == "none" else 5000)
    constraints = {"recompute": random.choice(["choose", "choose", "stage", "none"])}
    if not any("recompute" in option for layer in layers for option in layer["options"]):
        constraints = {}
    return validate(
        Problem,
        {
            "model": model,
            "cluster": {
                "devices": {"card": {"memory_bytes": memory, "reserve_bytes": random.choice([0, 50])}},
                "nodes": [
                    {
                        "name": "node0",
                        "device": "card",
                        "count": random.randint(1, 4),
                        "fabric": {
                            "bandwidth_bytes_per_s": 1000,
                            "latency_s": 0 if direct else random.choice([0, 0.1]),
                        },
                    }
                ],
            },
            "training": {
                "schedule": "1f1b",
                "num_microbatches": random.choice([2, 4, 12]),
                "tensor_parallel": tensor,
                "data_parallel": random.choice([1, [1, 2], [1, 2]]),
                "per_stage_degrees": True,
                "optimizer": random.choice(["sgd", "none", "adam"]),
                "communication": "blocking" if blocking else "overlapped",
                "routing": "direct" if direct else "relay",
                "gradient_exchange": random.choice(["full_duplex", "half_duplex"]),
                "gradient_exchange_after": random.choice(["batch", "batch", "round"]),
                "runtime": runtime,
            },
            "objective": "bottleneck_time",
            "constraints": constraints,
        },
    )


def demanding_problem(seed: int) -> Problem:
    """Give the problem of a seed with all else that goes with degrees for each stage.

    Layers together, boundaries that are allowed, another speed, costs measured on the device, and limits on memory and
    on the bottleneck that is least without them.
    """
    random, drawn = Random(f"demanding {seed}"), random_problem(seed).model_dump(mode="json", by_alias=True)
    layers, device = drawn["model"]["layers"], drawn["cluster"]["devices"]["card"]
    names = [layer["name"] for layer in layers]
    device["speed"] = random.choice([1.0, 0.5, 4.0])
    for layer in layers:
        if random.random() < 0.3:
            layer["options"].append({"device": "card", "backward_s": random.randint(1, 9)})
    if random.random() < 0.4:
        drawn["constraints"]["together"] = [random.sample(names, 2)]
    if random.random() < 0.4:
        drawn["constraints"]["cut_after"] = [name for name in names if random.random() < 0.7]
    if random.random() < 0.4:
        drawn["limits"] = {"peak_memory_bytes": random.randint(device["reserve_bytes"] + 200, device["memory_bytes"])}
    best = least_bottleneck(validate(Problem, drawn))
    if best not in (0.0, float("inf")) and random.random() < 0.4:
        drawn["limits"]["bottleneck_time_s"] = best * random.choice([0.9, 1.0, 1.3])
    return validate(Problem, drawn)


def _layer(random: Random, name: str, wide: bool, output: int) -> dict[str, Any]:
    options: list[dict[str, Any]] = []
    if wide:
        options.append(
            {"tensor_parallel": 2, "backward_s": random.randint(1, 6), "weight_bytes": random.randint(0, 60)}
        )
    for kind in ("full", "half"):
        if random.random() < 0.5:
            options.append(
                {
                    "recompute": kind,
                    "backward_s": random.randint(4, 14),
                    "activation_bytes": random.randint(0, 100),
                    "buffer_bytes": random.randint(0, 80),
                }
            )
            if wide:
                options.append({"recompute": kind, "tensor_parallel": 2, "backward_s": random.randint(3, 9)})
    return {
        "name": name,
        "forward_s": random.randint(0, 4),
        "backward_s": random.randint(1, 9),
        "activation_bytes": random.randint(0, 400),
        "workspace_bytes": random.choice([0, 0, 90]),
        "weight_bytes": random.randint(0, 120),
        "output_bytes": output,
        "options": options,
    }


def _tensors(random: Random, names: list[str], direct: bool, wide: bool) -> list[dict[str, Any]]:
    tensors = []
    for number, name in enumerate(names[:-1]):
        later = names[number + 1 :]
        readers = sorted(random.sample(later, random.randint(1, len(later))))
        for group in [[reader] for reader in readers] if direct else [readers]:
            tensor = {
                "name": f"{name} to {group[0]}",
                "producer": name,
                "consumers": group,
                "bytes": random.randint(0, 1500),
            }
            if random.random() < 0.5:
                tensor["gradient_bytes"] = random.randint(0, 1500)
            if direct and wide and random.random() < 0.5:
                moved = {"send_bytes": random.randint(0, 1500), "receive_bytes": random.randint(0, 1500)}
                tensor["resharding"] = [{"tensor_parallel": 2, **moved}]
            tensors.append(tensor)
    return tensors


def check_plan(problem: Problem, answer: Answer) -> None:
    """Compare the answer's plan with the oracle's price of it."""
    (candidate,) = answer.candidates
    stages = [frozenset(stage.layers) for stage in candidate.stages]
    degrees = [(stage.tensor_parallel or 0, stage.data_parallel or 0) for stage in candidate.stages]
    times = [stage_seconds(problem, stages, degrees, index) for index in range(len(stages))]
    assert candidate.metrics.bottleneck_time_s >= max(times) * (1 - 1e-12)  # a stage may recompute more than it needs
    devices = [device for stage in candidate.stages for device in stage.devices]
    assert len(devices) == len(set(devices)) == sum(t * d for t, d in degrees) <= problem.cluster.num_devices
    for stage in candidate.stages:
        assert stage.memory.total_bytes <= stage.memory.capacity_bytes


@pytest.mark.parametrize("make", [random_problem, demanding_problem])
@pytest.mark.parametrize("seed", range(CASES))
def test_no_plan_is_better(seed: int, make: Callable[[int], Problem]) -> None:
    """Tests value, bound and status against all stages, degrees and recompute choices."""
    problem = make(seed)
    best = least_bottleneck(problem)
    answer = plan_problem(problem)
    if best == float("inf"):
        assert (answer.status, answer.candidates) == ("infeasible", ())
        assert answer.infeasibility is not None
        return
    assert answer.status == "optimal"
    assert answer.best_bound == pytest.approx(best, rel=1e-9)
    assert answer.candidates[0].metrics.bottleneck_time_s == pytest.approx(best, rel=1e-9)
    check_plan(problem, answer)
