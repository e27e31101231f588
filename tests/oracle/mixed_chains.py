"""Random chains on small clusters of unequal nodes, most of several kinds of device, and all their plans."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from random import Random

import numpy as np

from oracle.small import Json, small_problem
from partita.models.document import validate
from partita.models.problem import Problem
from partita.solver.arrays import IntArray
from partita.solver.local_search import stages_of
from partita.solver.plans import Judge, Judged, Plan
from partita.solver.topology import Topology

ONE_EACH = ("1f1b", "1f1b", "gpipe", "zb_h1", "zb_h2", "forward_only")


def mixed_chain(random: Random, one_kind: bool = False) -> Problem:
    """Draw a chain for two to four stages on two or three nodes, of which some have slow or small devices.

    Or all have the same kind, but not as many of them.
    """
    kinds = random.choice([("gpu", "slow"), ("gpu", "slow", "slow"), ("slow", "gpu", "gpu")])
    if one_kind:
        kinds = ("gpu",) * len(kinds)
    schedule, stages = random.choice(ONE_EACH), random.randint(2, 4)
    layers = {f"layer{index}": _layer(random, schedule) for index in range(random.randint(stages, 7))}
    counts = [1, *[2] * len(kinds)] if one_kind else [random.choice([1, 2, 2])] * len(kinds)
    nodes = [
        {
            "name": f"node{number}",
            "device": kind,
            "count": count if one_kind or random.random() < 0.8 else 2,
            "fabric": _link(random, 2e3),
            "uplink": _link(random, 1e3) if random.random() < 0.3 else {"bandwidth_bytes_per_s": 1e3},
        }
        for number, (kind, count) in enumerate(zip(kinds, counts, strict=False))
    ]
    stages = min(stages, sum(node["count"] for node in nodes))
    ends = random.sample([node["name"] for node in nodes], 2)
    ends = [f"{end}:0" for end in ends] if random.random() < 0.3 else ends
    tied = sorted(random.sample(list(layers), 2))
    memory = random.choice([10**9, random.randint(30, 90) + 12_000])
    problem = small_problem(
        layers,
        nodes=[node | {"device": "gpu"} for node in nodes],
        links=[{"between": ends} | _link(random, 3e3)] if random.random() < 0.3 else [],
        memory=memory,
        model={"weights": [{"name": "tied", "bytes": 900, "layers": tied}]} if random.random() < 0.3 else {},
        schedule=schedule,
        num_stages=stages,
        num_microbatches=stages * random.choice([1, 2, 3]),
        communication=random.choice(["overlapped", "overlapped", "blocking"]),
    )
    document = problem.model_dump(mode="json", by_alias=True)
    slow = {"memory_bytes": max(1, int(memory * random.choice([0.9, 1, 1.4]))), "speed": random.choice([0.4, 0.8, 2.0])}
    document["cluster"]["devices"]["slow"] = slow | {"reserve_bytes": random.choice([0, 2000])}
    several = random.random() < 0.3
    if several:
        document["scenarios"] = [{"name": "short", "share": 0.7}, {"name": "long", "share": 0.3}]
        document["over_scenarios"] = random.choice(["expected", "worst"])
    for layer in document["model"]["layers"]:
        if several and random.random() < 0.6:
            times = {"forward_s": layer["forward_s"] / 2, "backward_s": layer["backward_s"] * random.choice([2, 3])}
            layer["options"] = [{"scenario": "long"} | times]
        elif random.random() < 0.3:
            layer["options"] = [{"device": "slow", "forward_s": random.randint(1, 20), "weight_bytes": 3}]
    for node, kind in zip(document["cluster"]["nodes"], kinds, strict=True):
        node["device"] = kind
    return validate(Problem, document)


def _layer(random: Random, schedule: str) -> Json:
    backward, kept = random.randint(1, 9), random.randint(0, 9)
    layer: Json = {
        "forward_s": random.randint(1, 9),
        "backward_s": backward,
        "activation_bytes": kept,
        "weight_bytes": random.randint(0, 9),
        "output_bytes": random.randint(0, 9) * 10**3,
    }
    if schedule.startswith("zb"):
        layer |= {"weight_gradient_s": random.randint(0, backward), "weight_gradient_bytes": random.randint(0, kept)}
    return layer


def _link(random: Random, most: float) -> Json:
    return {"bandwidth_bytes_per_s": random.choice([1, 2, 5]) * most, "latency_s": random.choice([0.0, 0.5])}


def placements(topology: Topology, num_ranks: int) -> Iterator[IntArray]:
    """Give every way to put ranks on locations that have room, one of those that differ by names alone."""
    room, seen = [len(location.slots) for location in topology.locations], set()
    for chosen in product(range(len(room)), repeat=num_ranks):
        if all(room[place] >= ranks for place, ranks in Counter(chosen).items()):
            location = np.array(chosen, dtype=np.int64)
            name = topology.canonical(location).tobytes()
            if name not in seen:
                seen.add(name)
                yield location


def all_plans(judge: Judge, num_stages: int) -> list[tuple[IntArray, Judged]]:
    """Judge every division into intervals at every place; give those allowed, with where their stages start."""
    size = len(judge.groups)
    starts = [np.array([0, *inner, size], dtype=np.int64) for inner in combinations(range(1, size), num_stages - 1)]
    every = list(product(starts, placements(judge.instance.topology, num_stages)))
    judged = judge.judge([Plan(stages_of(cuts), location) for cuts, location in every], with_paths=True)
    return [(cuts, each) for (cuts, _), each in zip(every, judged, strict=True) if each is not None]
