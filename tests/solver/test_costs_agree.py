"""Tests that what the search counts with is what the evaluator counts: intervals, paths and ticks."""

from random import Random

import numpy as np
import pytest

from partita.models.problem import Problem
from partita.solver.configuration import Tactics
from partita.solver.cuts import CutPool, cut_times
from partita.solver.deadline import Deadline
from partita.solver.figures import ACCURACY
from partita.solver.intervals import IntervalView
from partita.solver.local_search import stages_of
from partita.solver.measure import graph_of, graph_weights
from partita.solver.plans import Plan
from partita.solver.session import Session
from partita.solver.topology import IntArray
from strategies import read, seeded_problem

SEEDS = range(120)


def random_intervals(session: Session, random: Random) -> tuple[Plan, IntArray] | None:
    """Give a plan of intervals in order on the first slots, and where its stages start."""
    groups, topology = session.judge.groups, session.instance.topology
    stages = random.randint(1, min(4, len(groups), topology.num_slots))
    location = topology.in_order(stages)
    if location is None:
        return None
    inner = sorted(random.sample(range(1, len(groups)), stages - 1))
    cuts = np.array([0, *inner, len(groups)], dtype=np.int64)
    return Plan(stages_of(cuts), location), cuts


def session_of(seed: int) -> Session:
    """Give a session for the seed's problem."""
    problem: Problem = read(seeded_problem(seed))
    return Session(problem, Tactics())


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_are_priced_like_stages(seed: int) -> None:
    """Tests that an interval's memory and busy time never exceed the stage's, and are equal where all is known."""
    session, random = session_of(seed), Random(seed)
    found = random_intervals(session, random)
    if found is None:
        pytest.skip("no room for a plan")
    plan, cuts = found
    judge, instance = session.judge, session.instance
    measures = judge.measure(plan)
    in_flight = graph_of(instance, plan.num_stages).in_flight
    view = IntervalView(instance, judge.figures, judge.groups)
    endings = {
        ending.end: (ending.memory(in_flight).copy(), ending.busy.copy())
        for ending in view.endings(Deadline.after(60))
        if ending.end in cuts
    }
    busy = measures.times.forward_busy + measures.times.backward_busy
    exact = instance.routing == "relay" or instance.problem.model.tensors is None
    for stage in range(plan.num_stages):
        memory, time = endings[int(cuts[stage + 1])]
        start = int(cuts[stage])
        assert memory[stage, start] <= measures.memory.total[stage]
        assert time[start] <= busy[stage]
        if exact and instance.routing != "host":
            assert memory[stage, start] == measures.memory.total[stage]
        if not instance.blocking:
            assert time[start] == busy[stage]


@pytest.mark.parametrize("seed", SEEDS)
def test_critical_paths_are_as_long_as_the_makespan(seed: int) -> None:
    """Tests that the cut of a plan's critical path is its makespan, and a lower bound for another plan."""
    session, random = session_of(seed), Random(seed)
    first, second = random_intervals(session, random), random_intervals(session, random)
    if first is None or second is None:
        pytest.skip("no room for a plan")
    judge, instance = session.judge, session.instance
    graph = graph_of(instance, first[0].num_stages)
    pool = CutPool(graph, instance.blocking)
    measures = judge.measure(first[0])
    makespans, counts = graph.critical_paths(graph_weights(instance, [measures.times]))
    pool.add(counts)
    assert makespans[0] == measures.makespan
    assert pool.lengths(cut_times(measures.times)[None]).max() == measures.makespan
    if second[0].num_stages == first[0].num_stages:
        other = judge.measure(second[0])
        assert pool.lengths(cut_times(other.times)[None]).max() <= other.makespan


@pytest.mark.parametrize("seed", SEEDS)
def test_ticks_are_fine_enough(seed: int) -> None:
    """Tests that counting in ticks changes no time by more than the accuracy promised."""
    session, random = session_of(seed), Random(seed)
    found = random_intervals(session, random)
    if found is None:
        pytest.skip("no room for a plan")
    plan, _ = found
    counted = session.judge.measure(plan)
    exact = session.evaluator.measures(plan.stage[session.judge.groups.group_of], plan.location)
    tick = session.judge.figures.tick
    assert tick is not None
    assert counted.iteration * tick == pytest.approx(exact.iteration, rel=ACCURACY)
    assert counted.bottleneck * tick == pytest.approx(exact.bottleneck, rel=ACCURACY, abs=10 * tick)
    assert counted.peak_memory == exact.peak_memory
