"""Tests that what the search counts with is what the evaluator counts: intervals, paths and ticks."""

from functools import cache
from random import Random

import numpy as np
import pytest

from partita.models.schedule_rules import can_run
from partita.solver.arrays import IntArray
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.figures import ACCURACY
from partita.solver.intervals import IntervalView
from partita.solver.local_search import stages_of
from partita.solver.measure import StageTimes, graph_of
from partita.solver.plans import Plan
from partita.solver.variants import Variant, make_variants
from partita.solver.warm_start import Frame
from strategies import first_drawn, read, seeded_problem

SEEDS = range(120)
MOST_STAGES = 6


@cache
def variant_of(seed: int) -> Variant:
    """Give the seed's problem with its schedule."""
    (variant,) = make_variants(read(seeded_problem(seed)))
    return variant


def cut_times(times: StageTimes) -> IntArray:
    """Give a plan's times in the order of a cut's coefficients."""
    moved = times.moved
    passes = times.passes.copy()
    passes[0] += moved.host_forward
    passes[1] += moved.host_backward
    return np.concatenate([passes.ravel(), moved.forward, moved.backward])


def possible_counts(variant: Variant) -> list[int]:
    """Give the numbers of stages that the schedule can run, whether or not the problem asks for them."""
    schedule = variant.instance.schedule
    counts = range(1, MOST_STAGES + 1) if schedule.stages is None else [schedule.stages]
    microbatches = variant.instance.microbatches
    fine = [count for count in counts if can_run(schedule.kind, schedule.chunks, count, microbatches)]
    return variant.judge.possible_counts(fine)


def random_intervals(variant: Variant, random: Random) -> tuple[Plan, IntArray] | None:
    """Give a plan of intervals in order on the first slots, and where its stages start."""
    judge, counts = variant.judge, possible_counts(variant)
    stages = random.choice(counts or [0])
    location = variant.instance.topology.in_order(judge.instance.num_ranks(stages)) if counts else None
    if location is None:
        return None
    size = len(judge.groups)
    cuts = np.array([0, *sorted(random.sample(range(1, size), stages - 1)), size], dtype=np.int64)
    return Plan(stages_of(cuts), location), cuts


def two_plans(seed: int) -> tuple[Variant, list[tuple[Plan, IntArray]]] | None:
    """Give the seed's problem with two plans of intervals, if there is room for them."""
    variant, random = variant_of(seed), Random(seed)
    plans = [plan for _ in range(2) if (plan := random_intervals(variant, random)) is not None]
    return (variant, plans) if len(plans) == 2 else None


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_are_priced_like_stages(seed: int) -> None:
    """Tests that an interval's memory and busy time never exceed the stage's, and are equal where all is known.

    Where a rank runs several stages its memory is theirs together, so an interval is compared with the rank.
    """
    variant, ((plan, cuts), _) = first_drawn(seed, two_plans)
    judge, instance = variant.judge, variant.instance
    measures, pipeline = judge.measure(plan), graph_of(instance, plan.num_stages).pipeline
    frame = Frame(pipeline, 0, *pipeline.moments.alone(plan.num_stages), judge.capacity)
    view = IntervalView(instance, judge.figures, judge.groups)
    endings = {
        ending.end: (frame.memory(ending), ending.busy.copy())
        for ending in view.endings(Deadline.after(60))
        if ending.end in cuts
    }
    busy = measures.times[0].busy.sum(axis=0)
    exact = instance.routing == "relay" or instance.problem.model.tensors is None
    for stage in range(plan.num_stages):
        memory, time = endings[int(cuts[stage + 1])]
        start, total = int(cuts[stage]), measures.needed[pipeline.rank_of[stage]]
        assert memory[stage, start] <= total
        assert time[start] <= busy[stage]
        if exact and instance.routing != "host" and instance.schedule.chunks == 1:
            assert memory[stage, start] == total
        if not instance.blocking:
            assert time[start] == busy[stage]


@pytest.mark.parametrize("seed", SEEDS)
def test_critical_paths_are_as_long_as_the_makespan(seed: int) -> None:
    """Tests that the cut of a plan's critical path is its makespan, and a lower bound for another plan."""
    variant, (first, second) = first_drawn(seed, two_plans)
    judge, graph = variant.judge, graph_of(variant.instance, first[0].num_stages)
    pool = CutPool(graph)
    measures = judge.measure(first[0])
    makespans, visits = graph.critical_paths(measures.row[None])
    pool.add(visits)
    assert makespans[0, 0] == measures.makespan
    assert pool.lengths(cut_times(measures.times[0])[None]).max() == measures.makespan
    if second[0].num_stages == first[0].num_stages:
        other = judge.measure(second[0])
        assert pool.lengths(cut_times(other.times[0])[None]).max() <= other.makespan


@pytest.mark.parametrize("seed", SEEDS)
def test_ticks_are_fine_enough(seed: int) -> None:
    """Tests that counting in ticks changes no time by more than the accuracy promised."""
    variant, ((plan, _), _) = first_drawn(seed, two_plans)
    counted = variant.judge.measure(plan)
    exact = variant.evaluator.measures(variant.judge.by_layer(plan))
    tick = variant.judge.figures.tick
    assert tick is not None
    assert counted.iteration * tick == pytest.approx(exact.iteration, rel=ACCURACY)
    assert counted.bottleneck * tick == pytest.approx(exact.bottleneck, rel=ACCURACY, abs=10 * tick)
    assert counted.peak_memory == exact.peak_memory
