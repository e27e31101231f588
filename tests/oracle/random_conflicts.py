"""Random small problems whose limits often cannot hold together, and their copies with limits left out or changed."""

from collections.abc import Collection
from random import Random
from typing import Any

from oracle.search import all_priced
from oracle.small import Json, edges, small_problem
from partita.models.document import validate
from partita.models.problem import Problem

PLENTY = 2**50
LINK = {"bandwidth_bytes_per_s": 1e3, "latency_s": 0.25}


def draw_conflict(random: Random) -> Problem:
    """Draw a problem, and limits near to what its plans need."""
    names = "abcdef"[: random.randint(4, 6)]
    layers = {name: _layer(random) for name in names}
    stages = random.choice([2, 3, [2, 3], None])
    given: Json = {"schedule": random.choice(["forward_only", "gpipe", "1f1b"]), "num_microbatches": 4}
    nodes = [{"name": f"n{at}", "device": "gpu", "count": 2, "fabric": LINK, "uplink": LINK} for at in range(2)]
    given |= {"nodes": nodes, "num_stages": stages, "optimizer": "none"}
    if random.random() < 0.3:
        given["model"] = edges(
            *(f"{names[max(0, at - random.randint(1, 2))]}>{names[at]}" for at in range(1, len(names)))
        )
    given["objective"] = random.choice(["iteration_time", "bottleneck_time", "peak_memory", "tokens_per_second"])
    prices = [plan.price for plan in all_priced(small_problem(layers, **given))]

    tight = random.choice([2, 3, 6])

    def near(metric: str) -> Any:
        values = sorted({getattr(price, metric) for price in prices})
        return values[random.randint(0, len(values) // tight)]

    limits = {metric: near(metric) for metric in METRICS if random.random() < 0.6}
    return small_problem(
        layers,
        memory=PLENTY if random.random() < 0.3 else near("peak_memory_bytes"),
        limits=limits,
        constraints=_constraints(random, names),
        **given,
    )


METRICS = ("peak_memory_bytes", "iteration_time_s", "bottleneck_time_s")


def _layer(random: Random) -> Json:
    """Draw the costs of a layer; half of all have an option for recompute."""
    seconds = float(random.randint(1, 6))
    layer: Json = {"forward_s": seconds, "backward_s": 2 * seconds, "output_bytes": random.randint(0, 500)}
    layer |= {"weight_bytes": random.randint(1, 60), "activation_bytes": random.randint(1, 20)}
    if random.random() < 0.5:
        layer["options"] = [{"recompute": "full", "backward_s": 3 * seconds, "activation_bytes": 1}]
    return layer


def _constraints(random: Random, names: str) -> Json:
    """Draw a few constraints that do not contradict each other at first sight."""
    asked: Json = {"pins": {}}
    if random.random() < 0.4:
        asked["pins"] = {name: random.randint(0, 1) for name in random.sample(names, random.randint(1, 2))}
    if random.random() < 0.3:
        asked["together"] = [random.sample(names, 2) for _ in range(random.randint(1, 2))]
    if random.random() < 0.3:
        asked["apart"] = [random.sample(names, 2) for _ in range(random.randint(1, 2))]
    if random.random() < 0.3:
        asked["cut_after"] = random.sample(names, len(names) - 2)
    return asked


def with_field(problem: Problem, pointer: str, value: Any) -> Problem:
    """Give the problem with another value at a place; None there leaves the limit out."""
    return _changed(problem, {pointer: value})


def without(problem: Problem, pointers: Collection[str]) -> Problem:
    """Give the problem without the limits at these places."""
    return _changed(problem, dict.fromkeys(pointers))


def _changed(problem: Problem, values: dict[str, Any]) -> Problem:
    """Write values into the problem's JSON, from the end of every list."""
    document = problem.model_dump(mode="json")
    for pointer in sorted(values, reverse=True):
        *path, last = pointer.split("/")[1:]
        here = document
        for step in path:
            here = here[int(step)] if isinstance(here, list) else here[step]
        if isinstance(here, list):
            del here[int(last)]
        elif path[-1] == "pins":
            del here[last]
        elif last == "memory_bytes" and values[pointer] is None:
            here[last] = PLENTY
        else:
            here[last] = values[pointer]
    return validate(Problem, document)
