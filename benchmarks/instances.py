"""The benchmark's problems: chains with uneven layers, heavy ends, a memory limit that binds, and slow uplinks."""

from collections.abc import Sequence

import numpy as np

from partita.models.document import validate
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.models.schedule import Schedule
from partita.solver.divisions import uniform_sizes
from partita.solver.review import evaluate_plan

DEVICES_PER_NODE = 8
STATE_BYTES_PER_WEIGHT_BYTE = 9
"""Weights, gradients and optimizer state of ``adam_mixed``."""


SPLIT_SHARE = 0.45
"""The part of a backward pass that is its weight gradient."""


def scheduled(kind: str, num_layers: int, num_ranks: int, num_microbatches: int, seed: int, seconds: float) -> Problem:
    """Give the same chain for another schedule, with a memory limit that binds as much.

    A device holds 5 % more than the fullest rank of an equal division needs.
    """
    problem = chain(num_layers, num_ranks, num_microbatches, seed, 1, seconds).model_dump(mode="json")
    schedule = validate(Schedule, {"kind": kind})
    stages = num_ranks * schedule.chunks
    problem["training"] |= {"schedule": kind, "num_stages": stages}
    for layer in problem["model"]["layers"]:
        layer["weight_gradient_s"] = SPLIT_SHARE * layer["backward_s"]
    memory = problem["cluster"]["devices"]["gpu"]
    memory["memory_bytes"] = 2**60
    plan = GivenPlan(stage_sizes=tuple(uniform_sizes(num_layers, stages)))
    needed = evaluate_plan(validate(Problem, problem), plan).candidates[0].metrics.peak_memory_bytes
    memory["memory_bytes"] = int(1.05 * needed)
    return validate(Problem, problem)


def chain(
    num_layers: int, num_stages: int, num_microbatches: int, seed: int, candidates: int, seconds: float
) -> Problem:
    """Give a chain for exact 1F1B on nodes of eight devices.

    Forward times are spread over 7 to 13 ms, backward times over 1.8 to 2.2 of them, sizes by 20 %; the embedding is
    twice, the head three times as heavy. A device holds about 5 % more than the first stage of an equal division needs.
    """
    random = np.random.default_rng(seed)
    forward = random.uniform(0.007, 0.013, num_layers)
    backward = forward * random.uniform(1.8, 2.2, num_layers)
    state = random.uniform(0.8e9, 1.2e9, num_layers)
    kept = random.uniform(0.8e8, 1.2e8, num_layers)
    for values in (forward, backward):
        values[0] *= 2
        values[-1] *= 3
    state[[0, -1]] *= 3
    in_flight = min(num_microbatches, num_stages)
    capacity = int(1.05 * (1e9 + in_flight * 1e8) * num_layers / num_stages)
    layers = [
        {
            "name": f"layer{i}",
            "forward_s": float(forward[i]),
            "backward_s": float(backward[i]),
            "weight_bytes": int(state[i] / STATE_BYTES_PER_WEIGHT_BYTE),
            "activation_bytes": int(kept[i]),
            "output_bytes": 50_000_000 if i < num_layers - 1 else 0,
        }
        for i in range(num_layers)
    ]
    node = {
        "name": "node",
        "replicas": -(-num_stages // DEVICES_PER_NODE),
        "device": "gpu",
        "count": DEVICES_PER_NODE,
        "fabric": {"bandwidth_bytes_per_s": 300e9, "latency_s": 3e-6},
        "uplink": {"bandwidth_bytes_per_s": 25e9, "latency_s": 5e-6},
    }
    return validate(
        Problem,
        {
            "model": {"name": f"chain of {num_layers}", "layers": layers},
            "cluster": {"devices": {"gpu": {"memory_bytes": capacity}}, "nodes": [node]},
            "training": {"schedule": "1f1b", "num_stages": num_stages, "num_microbatches": num_microbatches},
            "search": {"candidates": candidates, "time_limit_s": seconds},
        },
    )


def mixed(kinds: Sequence[str], num_layers: int, each: int, seed: int, seconds: float) -> Problem:
    """Give the chain on nodes of two kinds of device, ``fast`` and ``slow``, with four microbatches for every stage.

    Slow devices take 2.2 times as long and hold what binds for an equal division; fast ones hold 40 % more.
    """
    stages = each * len(kinds)
    problem = chain(num_layers, stages, 4 * stages, seed, 1, seconds).model_dump(mode="json")
    cluster = problem["cluster"]
    (node,), memory = cluster["nodes"], cluster["devices"]["gpu"]["memory_bytes"]
    cluster["devices"] = {
        "fast": {"memory_bytes": int(1.4 * memory)},
        "slow": {"memory_bytes": memory, "speed": 1 / 2.2},
    }
    cluster["nodes"] = [
        node | {"name": f"node{number}", "replicas": 1, "count": each, "device": kind}
        for number, kind in enumerate(kinds)
    ]
    return validate(Problem, problem)


def recomputing(recompute: str, num_layers: int, num_stages: int, seed: int, seconds: float) -> Problem:
    """Give the chain with three quarters of the memory, and recompute that keeps a tenth for one more forward pass."""
    problem = chain(num_layers, num_stages, 4 * num_stages, seed, 1, seconds).model_dump(mode="json")
    for layer in problem["model"]["layers"]:
        slower, kept = layer["backward_s"] + layer["forward_s"], layer["activation_bytes"] // 10
        layer["options"] = [{"recompute": "full", "backward_s": slower, "activation_bytes": kept}]
    memory = problem["cluster"]["devices"]["gpu"]
    memory["memory_bytes"] = int(0.75 * memory["memory_bytes"])
    problem["constraints"]["recompute"] = recompute
    return validate(Problem, problem)


SCENARIOS = (("short", 0.5, 0.5), ("middle", 0.3, 1.0), ("long", 0.2, 1.9))
"""Names and shares of three lengths of sequence, and how many times a layer's costs they take."""


def lengths(over: str, num_layers: int, num_stages: int, num_microbatches: int, seed: int, seconds: float) -> Problem:
    """Give the chain for three lengths of sequence; every layer takes up to 10 % more or less than they say."""
    random = np.random.default_rng(seed)
    problem = chain(num_layers, num_stages, num_microbatches, seed, 1, seconds).model_dump(mode="json")
    problem |= {"scenarios": [{"name": n, "share": share} for n, share, _ in SCENARIOS], "over_scenarios": over}
    for layer in problem["model"]["layers"]:
        for name, _, factor in SCENARIOS:
            times = factor * random.uniform(0.9, 1.1)
            own = {cost: times * layer[cost] for cost in ("forward_s", "backward_s")}
            own |= {size: int(min(factor, 1.0) * layer[size]) for size in ("activation_bytes", "output_bytes")}
            layer["options"].append({"scenario": name} | own)
    return validate(Problem, problem)
