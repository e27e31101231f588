"""Tests the host times of intervals against those of whole plans, for every interval of small graphs."""

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from oracle.small import Json, session_of, small_problem
from partita.models.problem import Problem
from partita.solver.arrays import IntArray
from partita.solver.costs import LayerPlan
from partita.solver.host_intervals import HostTimes
from partita.solver.measure import graph_of, times_by_case
from partita.solver.variants import Variant

FABRIC = {"bandwidth_bytes_per_s": 1e6, "latency_s": 0.25}


def host_problem(tensors: list[Json], layers: str = "abcde", **training: Any) -> Problem:
    """Make a problem of blocking transfers over the host; a tensor from each layer to the next gives a total order."""
    chain = [
        {"name": f"order-{one}", "producer": one, "consumers": [other], "bytes": 0} for one, other in pairwise(layers)
    ]
    nodes = [{"name": "node0", "device": "gpu", "count": 4, "fabric": FABRIC}]
    usual: Json = {"communication": "blocking", "routing": "host", "schedule": "1f1b"}
    return small_problem(layers, nodes=nodes, model={"tensors": chain + tensors}, **usual | training)


def intervals(variant: Variant) -> dict[tuple[int, int], int]:
    """Give the host time of every interval in ticks."""
    judge = variant.judge
    times = HostTimes(variant.instance, judge.figures, judge.groups)
    return {
        (start, group + 1): int(found)
        for group in range(len(judge.groups))
        for start, found in enumerate(times.extend(group)[: group + 1])
    }


def of_plan(variant: Variant, start: int, end: int, first: list[int]) -> int:
    """Give the host time of the stage [start, end) of the plan that also starts stages at ``first``."""
    size = len(variant.judge.groups)
    cuts = sorted({0, start, *([end] if end < size else []), *first})
    stage: IntArray = np.searchsorted(np.array(cuts), np.arange(size), side="right") - 1
    location = np.zeros(len(cuts), dtype=np.int64)
    graph = graph_of(variant.instance, len(cuts))
    plan = LayerPlan(stage, location, np.zeros_like(stage))
    moved = times_by_case([(variant.instance, variant.judge.figures)], plan, graph)[0].moved
    number = cuts.index(start)
    return int((moved.host_forward + moved.host_backward)[number])


def test_writes_and_reads_by_hand() -> None:
    """Tests one tensor of 1 s and 0.25 s latency from a to c and d: one write, one read of any stage that needs it."""
    tensor = {"name": "t", "producer": "a", "consumers": ["c", "d"], "bytes": 10**6, "gradient_bytes": 0}
    (variant,) = session_of(host_problem([tensor])).variants
    tick = variant.judge.figures.tick
    assert tick is not None
    found = {ends: time * tick for ends, time in intervals(variant).items()}
    paying = {(0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (1, 4), (2, 4), (3, 4), (1, 5), (2, 5), (3, 5)}
    assert {ends for ends, time in found.items() if time} == paying
    assert all(found[ends] == pytest.approx(1.25) for ends in paying)


def random_tensors(random: Random, gradients: bool) -> list[Json]:
    """Draw tensors of both passes."""
    tensors: list[Json] = []
    for number in range(random.randint(1, 4)):
        backward = random.random() < 0.4
        at = random.randrange(5) if backward else random.randrange(4)
        others = [name for position, name in enumerate("abcde") if position > at or (backward and position != at)]
        readers = sorted(random.sample(others, random.randint(1, min(3, len(others)))))
        size = random.choice([0, random.randint(1, 10**7)])
        tensor: Json = {"name": f"t{number}", "producer": "abcde"[at], "consumers": readers, "bytes": size}
        if backward:
            tensor["pass"] = "backward"
        elif gradients:
            tensor["gradient_bytes"] = random.choice([0, random.randint(1, 10**7)])
        else:
            tensor["gradient_bytes"] = 0
        tensors.append(tensor)
    return tensors


@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 60))])
def test_intervals_cost_what_stages_cost(seed: int) -> None:
    """Tests every interval against a plan: equal without gradients, else never more, however the rest is cut."""
    random, gradients = Random(seed), seed % 2 == 1
    (variant,) = session_of(host_problem(random_tensors(random, gradients))).variants
    size = len(variant.judge.groups)
    assert variant.judge.groups.total_order
    for (start, end), time in intervals(variant).items():
        outside = [position for position in range(1, size) if not start <= position <= end]
        for further in ([], outside, random.sample(outside, len(outside) // 2)):
            exact = of_plan(variant, start, end, further)
            assert time <= exact if gradients else time == exact, (start, end, further)
