"""Tests of the search over seats, for chains on several kinds of device, against all plans."""

from random import Random

import numpy as np
import pytest

from oracle.mixed_chains import all_plans, mixed_chain, placements
from oracle.small import session_of
from partita.solver import seat_space, seats
from partita.solver.arrays import IntArray
from partita.solver.bounds import least_objective
from partita.solver.branching import Trials
from partita.solver.configuration import Configuration
from partita.solver.deadline import Deadline
from partita.solver.kind_prices import KindPaths
from partita.solver.planner import plan_problem
from partita.solver.plans import Judged, PlanPool
from partita.solver.pruning import Cutoffs
from partita.solver.seat_network import SeatNetwork, Way
from partita.solver.seat_search import SeatSearch
from partita.solver.seats import Seating
from partita.solver.tools import Counters
from partita.solver.unsuited import TooManySteps
from strategies import first_drawn

LATER = Deadline.after(3600)
HOW = pytest.mark.parametrize("how", ["exact", "by kind", "one kind"])


def configuration_of(seed: int, how: str = "exact") -> Configuration:
    """Give the search for the chain of a seed."""
    session = session_of(mixed_chain(Random(seed), how == "one kind"))
    (variant,) = session.variants
    return Configuration(session._tools(variant, PlanPool(), Counters()), variant.stage_counts[0])


def with_plans(seed: int, how: str) -> tuple[Configuration, list[tuple[IntArray, Judged]]]:
    """Give the search for the first chain from a seed that has plans, and all of these."""

    def drawn(number: int) -> tuple[Configuration, list[tuple[IntArray, Judged]]] | None:
        configuration = configuration_of(number, how)
        every = all_plans(configuration.tools.judge, configuration.num_stages)
        return (configuration, every) if every else None

    return first_drawn(seed, drawn)


def begin(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Let searches begin with kinds of device alone, or not."""
    if how == "by kind":
        monkeypatch.setattr(seat_space, "MOST_EXACT", 0)


def ways_of(network: SeatNetwork) -> list[Way]:
    """Give all ways through a network."""
    ways: list[tuple[int, list[int], tuple[int, ...]]] = [(0, [0], ())]
    for rank, step in enumerate(network.steps):
        begun, places = step.begun, network.states[rank + 1].place
        ways = [
            (int(step.target[e]), [*starts, int(places[step.target[e]])], (*turns, int(step.turn[step.departure[e]])))
            for state, starts, turns in ways
            for e in np.flatnonzero(begun == state)
        ]
    return [] if network.empty else [Way(np.array(starts), turns) for _, starts, turns in ways]


@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 60))])
def test_every_placement_is_a_way_to_take_seats(seed: int) -> None:
    """Tests that seats give all placements, and that kinds of device alone lose none of their orders."""
    configuration = configuration_of(seed)
    topology, ranks = configuration.tools.judge.instance.topology, configuration.num_stages
    every = {topology.canonical(each).tobytes() for each in placements(topology, ranks)}
    kinds = {tuple(topology.kind_of[each]) for each in placements(topology, ranks)}
    for by_kind in (False, True):
        seating = Seating(topology, ranks, Deadline.after(60), by_kind=by_kind)
        ways: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        for turns in seating.turns:
            ways = [
                (int(turns.target[t]), (*taken, int(t)))
                for seat, taken in ways
                for t in np.flatnonzero(turns.source == seat)
            ]
        found = [seating.locations(turns) for _, turns in ways]
        assert {tuple(topology.kind_of[each]) for each in found} == kinds
        names = [topology.canonical(each).tobytes() for each in found]
        assert set(names) <= every
        if not by_kind:
            found = [each for _, turns in ways for each in seating.every_location(turns)]
            assert set(names) <= {topology.canonical(each).tobytes() for each in found} == every


@HOW
@pytest.mark.parametrize("seed", range(50))
def test_no_plan_is_ruled_out_that_all_cuts_allow(seed: int, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a network keeps every plan within the cutoff, and prices it by no more than what it takes."""
    begin(monkeypatch, how)
    random, by_kind = Random(1000 + seed), how == "by kind"
    configuration, every = with_plans(seed, how)
    judge, pool, space = configuration.tools.judge, configuration._pool, configuration._seats
    assert pool is not None
    assert space is not None
    Trials(configuration.tools, pool, every[0][1], ()).measure(
        [(cuts, each.plan.location) for cuts, each in random.sample(every, min(6, len(every)))]
    )
    makespan = random.choice(every)[1].measures.makespan
    network = space.network(Cutoffs(int(makespan), None), pool, LATER)
    assert network is not None
    assert network.seating.exact is not by_kind
    seat_space.sweep_seats(network, pool, int(makespan), LATER)
    paths, kind_of = KindPaths.of(pool), judge.instance.topology.kind_of
    found = {}
    for way in ways_of(network):
        lengths, seating = network.lengths(paths, way), network.seating
        for location in [seating.locations(way.turns)] if by_kind else seating.every_location(way.turns):
            place = kind_of[location] if by_kind else judge.instance.topology.canonical(location)
            found[way.starts.tobytes(), place.tobytes()] = lengths
    for cuts, each in every:
        location = each.plan.location
        place = kind_of[location] if by_kind else location
        lengths = found.get((cuts.tobytes(), place.tobytes()))
        assert lengths is not None or each.measures.makespan > makespan
        if lengths is not None:
            row = each.measures.row
            computing = [passes for times in each.measures.times for passes in times.passes]
            for columns, passes in zip(pool.graph.passes(row), computing, strict=True):
                columns[...] = passes  # without what blocking transfers add: the cuts have these apart
            exactly = pool.lengths(row[None])[0]
            assert (lengths <= exactly * (1 + 1e-12)).all()
            assert by_kind or lengths == pytest.approx(exactly, rel=1e-12)


@HOW
@pytest.mark.parametrize("seed", range(50))
def test_the_bound_is_the_optimum(seed: int, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the search proves the best plan, starting from any plan, and nothing more."""
    begin(monkeypatch, how)
    random = Random(2000 + seed)
    configuration, every = with_plans(seed, how)
    tools, pool, space = configuration.tools, configuration._pool, configuration._seats
    assert pool is not None
    assert space is not None
    cuts, start = random.choice(every)
    trials = Trials(tools, pool, start, ())
    trials.measure([(cuts, start.plan.location)])
    search = SeatSearch(space, tools.view, configuration._frame, pool, trials, configuration._cutoffs)
    least = least_objective(tools.judge, configuration.num_stages)
    bounds = list(search.prove(start.objective, least, tools.backend.resolution, LATER))
    optimum, found = min(each.objective for _, each in every), tools.plans.best(set())
    assert found is not None
    assert found.objective == optimum
    assert bounds == sorted(bounds)
    assert max(bounds, default=least) <= optimum
    assert max(bounds, default=least) == optimum or least == optimum


@HOW
@pytest.mark.parametrize("objective", ["iteration_time", "bottleneck_time", "peak_memory"])
@pytest.mark.parametrize("seed", range(4))
def test_ranked_plans(seed: int, objective: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the four best plans by every objective against all plans."""
    begin(monkeypatch, how)
    problem = mixed_chain(Random(3000 + seed), how == "one kind")
    search = problem.search.model_copy(update={"candidates": 4})
    over = "expected" if objective == "bottleneck_time" else problem.over_scenarios
    problem = problem.model_copy(update={"objective": objective, "search": search, "over_scenarios": over})
    (variant,) = session_of(problem).variants
    values = sorted(
        {each.signature: each.key[0][0] for _, each in all_plans(variant.judge, variant.stage_counts[0])}.values()
    )
    answer = plan_problem(problem)
    figures, name = variant.judge.figures, {"peak_memory": "peak_memory_bytes"}.get(objective, f"{objective}_s")
    found = [getattr(each.metrics, name) for each in answer.candidates]
    wanted = [each if objective == "peak_memory" else figures.seconds(each) for each in values[:4]]
    assert found == pytest.approx(wanted, rel=1e-9)
    assert answer.status == ("optimal" if values else "infeasible")


@pytest.mark.parametrize("seed", range(20))
def test_first_plans_have_the_shortest_longest_stage(seed: int) -> None:
    """Tests the first of the first plans against all plans: no other has a shorter longest stage."""
    configuration = configuration_of(seed)
    judge, space = configuration.tools.judge, configuration._seats
    assert space is not None
    every = {
        (cuts.tobytes(), each.plan.location.tobytes()): each
        for cuts, each in all_plans(judge, configuration.num_stages)
    }
    plans = list(space.first_plans(LATER))
    if not every:
        assert not plans
        return
    cuts, location = plans[0]
    first = every[cuts.tobytes(), judge.instance.topology.canonical(location).tobytes()]

    def longest(plan: Judged) -> int:
        return int(sum(times.passes.sum(axis=0) for times in plan.measures.times).max())

    assert longest(first) == pytest.approx(min(map(longest, every.values())), rel=1e-9)


def test_too_many_places_to_tell_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that seats are not listed without end, and that plans are found without them."""
    monkeypatch.setattr(seats, "MOST_TURNS", 3)
    configuration = configuration_of(0)
    assert configuration.num_stages > 1
    with pytest.raises(TooManySteps):
        Seating(configuration.tools.judge.instance.topology, configuration.num_stages, Deadline.after(60))
    problem = mixed_chain(Random(0))
    best = min(each.objective for _, each in all_plans(configuration.tools.judge, configuration.num_stages))
    (candidate,) = plan_problem(problem).candidates[:1]
    assert candidate.metrics.iteration_time_s == pytest.approx(
        configuration.tools.judge.figures.seconds(best), rel=1e-9
    )
