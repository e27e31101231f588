"""Tests that pruning never rules out the best plan, and rules it out once the cutoff is below it."""

from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from oracle.small import Json, equal_layers, session_of, small_problem
from partita.models.problem import Problem
from partita.solver.arrays import IntArray
from partita.solver.cuts import CutPool, starting_cuts
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.local_search import stages_of
from partita.solver.measure import graph_of
from partita.solver.plans import Judged, Plan
from partita.solver.pruning import Cutoffs, Window, prune
from partita.solver.variants import Variant
from partita.solver.warm_start import Frame
from strategies import first_drawn

STAGES = 3
TWO_EACH = ("interleaved_1f1b", "interleaved_zb", "looped_bfs", "zb_v", "dualpipe_v")


def random_chain(random: Random, one_node: bool, stages: int, several: bool = False) -> Problem:
    """Draw a chain with transfers that matter, on one node or on two; ``several`` puts two stages on every rank."""
    layers = {
        f"layer{index}": {
            "forward_s": random.randint(1, 9),
            "backward_s": random.randint(0, 9),
            "weight_bytes": random.randint(0, 9),
            "activation_bytes": random.randint(0, 9),
            "output_bytes": random.randint(0, 9) * 10**6,
        }
        for index in range(random.randint(stages, 7))
    }

    def link() -> dict[str, float]:
        return {"bandwidth_bytes_per_s": random.randint(1, 9) * 1e6, "latency_s": random.choice([0.0, 1.5])}

    counts = [stages] if one_node else [2, random.randint(1, 2)]
    nodes = [
        {"name": f"node{number}", "device": "gpu", "count": count, "fabric": link(), "uplink": link()}
        for number, count in enumerate(counts)
    ]
    training: Json = {
        "memory": random.choice([10**9, random.randint(10**7, 3 * 10**7)]),
        "schedule": random.choice(["1f1b", "gpipe", "forward_only"]),
        "num_microbatches": random.randint(1, 5),
        "communication": random.choice(["overlapped", "blocking"]),
    }
    if several:
        for layer in layers.values():
            layer["weight_gradient_s"] = random.randint(0, layer["backward_s"])
            layer["weight_gradient_bytes"] = random.randint(0, layer["activation_bytes"])
        training |= {"schedule": random.choice(TWO_EACH), "num_microbatches": random.choice([4, 6])}
    return small_problem(layers, nodes=nodes, num_stages=stages, **training)


def all_plans(variant: Variant, stages: int) -> list[tuple[IntArray, Judged]]:
    """Judge every plan of intervals in every placement; give those that fit, with where their stages start."""
    size, topology = len(variant.judge.groups), variant.instance.topology
    plans = []
    for inner in combinations(range(1, size), stages - 1):
        cuts = np.array([0, *inner, size], dtype=np.int64)
        for location in product(range(len(topology.locations)), repeat=variant.instance.num_ranks(stages)):
            counts = np.bincount(location, minlength=len(topology.locations)).tolist()
            if all(count <= len(place.slots) for count, place in zip(counts, topology.locations, strict=True)):
                plans.append((cuts, Plan(stages_of(cuts), np.array(location, dtype=np.int64))))
    judged = variant.judge.judge([plan for _, plan in plans])
    return [(cuts, each) for (cuts, _), each in zip(plans, judged, strict=True) if each is not None]


Drawn = tuple[Random, Variant, list[tuple[IntArray, Judged]]]


def drawn(seed: int, one_node: bool, stages: int, several: bool = False) -> Drawn | None:
    """Give the seed's chain with all plans of intervals, if any fits into memory."""
    random = Random(seed)
    (variant,) = session_of(random_chain(random, one_node, stages, several)).variants
    plans = all_plans(variant, stages)
    return (random, variant, plans) if plans else None


def contains(window: Window | None, cuts: IntArray) -> bool:
    """Tell whether the window leaves a plan."""
    if window is None or (cuts < window.low).any() or (cuts > window.high).any():
        return False
    if window.allowed is None:
        return True
    place = cuts - window.low
    return all(bool(each[place[stage], place[stage + 1]]) for stage, each in enumerate(window.allowed))


def pruned(variant: Variant, known: list[Judged], cutoffs: Cutoffs, stages: int) -> Window | None:
    """Prune with the critical paths of known plans, and of those with one stage or transfer heavier."""
    judge, instance = variant.judge, variant.instance
    graph = graph_of(instance, stages)
    pool = CutPool(graph)
    for each in known:
        pool.add(graph.critical_paths(each.measures.row[None])[1])
        starting_cuts(pool, each.measures.row, Deadline.after(60))
    view = IntervalView(instance, judge.figures, judge.groups)
    frame = Frame(graph.pipeline, 0, *graph.pipeline.moments.alone(stages), judge.capacity)
    return prune(view, frame, cutoffs, pool, Deadline.after(60))


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.parametrize(("stages", "several"), [(STAGES, False), (4, True)])
def test_the_best_plan_is_left(stages: int, several: bool, seed: int) -> None:
    """Tests all plans within a cutoff on makespan or bottleneck: the best one, and up to a few worse."""
    random, variant, plans = first_drawn(seed, lambda each: drawn(each, False, stages, several))
    known = [each for _, each in random.sample(plans, min(3, len(plans)))]
    for metric in ("makespan", "bottleneck"):
        values = sorted(int(getattr(each.measures, metric)) for _, each in plans)
        for cutoff in (values[0], values[len(values) // 4]):
            within = [each for each in plans if getattr(each[1].measures, metric) <= cutoff]
            cutoffs = Cutoffs(**{"makespan": None, "bottleneck": None, metric: cutoff})
            window = pruned(variant, [*known, within[0][1]], cutoffs, stages)
            assert all(contains(window, cuts) for cuts, _ in within)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_plan_of_two_stages_is_ruled_out_below_it(seed: int) -> None:
    """Tests that one tick less leaves no plan at all where two stages and one kind of path decide everything."""
    _, variant, plans = first_drawn(seed, lambda each: drawn(each, True, 2))
    best = min(int(each.measures.makespan) for _, each in plans)
    known = [each for _, each in plans]
    assert pruned(variant, known, Cutoffs(best - 1, None), 2) is None
    assert pruned(variant, known, Cutoffs(best, None), 2) is not None


def test_a_window_by_hand() -> None:
    """Tests layers of 1, 2, 3, 4 s on two stages of at most 6 s: only the cut after the third layer is left."""
    layers = {name: {"forward_s": seconds} for name, seconds in zip("abcd", (1.0, 2.0, 3.0, 4.0), strict=True)}
    (variant,) = session_of(small_problem(layers, num_stages=2)).variants
    six = int(variant.judge.figures.time(6.0))
    window = pruned(variant, [], Cutoffs(None, six), 2)
    assert window is not None
    assert (window.low.tolist(), window.high.tolist()) == ([0, 3, 4], [0, 3, 4])
    assert pruned(variant, [], Cutoffs(None, six - 1), 2) is None


def test_memory_in_flight_by_hand() -> None:
    """Tests 1F1B with 2 and 1 microbatches in flight of 10 bytes a layer on devices of 30: 1 and 3 layers."""
    layers = equal_layers("abcd", forward_s=1.0, activation_bytes=10)
    problem = small_problem(layers, memory=30, schedule="1f1b", num_microbatches=4, num_stages=2)
    (variant,) = session_of(problem).variants
    window = pruned(variant, [], Cutoffs(None, None), 2)
    assert window is not None
    assert (window.low.tolist(), window.high.tolist()) == ([0, 1, 4], [0, 1, 4])
