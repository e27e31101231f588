"""Tests of the search over ranks that run one stage or two each, against all plans of intervals."""

from random import Random

import numpy as np
import pytest

from oracle.interval_plans import TWO_EACH, chain_on_a_node, configuration_of, drawn_layer, interval_plans
from oracle.small import session_of
from partita.models.problem import Problem
from partita.solver.arrays import IntArray
from partita.solver.bounds import least_objective
from partita.solver.branching import Trials
from partita.solver.configuration import Configuration
from partita.solver.deadline import Deadline
from partita.solver.planner import plan_problem
from partita.solver.plans import Judged, PlanPool
from partita.solver.pruning import Cutoffs
from partita.solver.rank_network import RankNetwork
from partita.solver.rank_search import RankSearch
from partita.solver.sweeping import sweep
from strategies import first_drawn

ONE_EACH = ("1f1b", "gpipe", "zb_h1", "zb_h2")
BOTH = pytest.mark.parametrize("kinds", [TWO_EACH, ONE_EACH], ids=["two", "one"])


def random_chain(random: Random, kinds: tuple[str, ...] = TWO_EACH) -> Problem:
    """Draw a chain on one node, with four or six stages."""
    ranks = random.choice([2, 3])
    layers = [drawn_layer(random) for _ in range(random.randint(2 * ranks, 9))]
    return chain_on_a_node(random, ranks, layers, kinds)


Drawn = tuple[Random, PlanPool, Configuration, list[tuple[IntArray, Judged]]]


def drawn(seed: int, kinds: tuple[str, ...]) -> Drawn | None:
    """Give the seed's search for a random chain with all plans of intervals, if any fits."""
    random, plans = Random(seed), PlanPool()
    configuration = configuration_of(session_of(random_chain(random, kinds)), plans)
    every = interval_plans(configuration)
    return (random, plans, configuration, every) if every else None


@BOTH
@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 60))])
def test_the_bound_is_the_optimum(seed: int, kinds: tuple[str, ...]) -> None:
    """Tests that the search proves the best plan of intervals, starting from any plan, and nothing more."""
    random, plans, configuration, every = first_drawn(seed, lambda each: drawn(each, kinds))
    cuts, start = random.choice(every)
    tools, pool, frame = configuration.tools, configuration._pool, configuration._frame
    assert pool is not None
    trials = Trials(tools, pool, start, ())
    trials.measure([(cuts, start.plan.location)])
    search = RankSearch(tools.view, frame, pool, trials, configuration._cutoffs)
    least = least_objective(tools.judge, configuration.num_stages)
    bounds = list(search.prove(start.objective, least, tools.backend.resolution, Deadline.after(60)))
    optimum = min(each.objective for _, each in every)
    found = plans.best(set())
    assert found is not None and found.objective == optimum
    assert bounds == sorted(bounds)
    assert max(bounds, default=least) <= optimum
    assert max(bounds, default=least) == optimum or least == optimum


@BOTH
@pytest.mark.parametrize("seed", range(150))
def test_no_way_is_ruled_out_that_all_cuts_allow(seed: int, kinds: tuple[str, ...]) -> None:
    """Tests that a network keeps every plan within the cutoff, and loses every plan with a cut beyond it."""
    random, _, configuration, every = first_drawn(1000 + seed, lambda each: drawn(each, kinds))
    tools, pool, frame = configuration.tools, configuration._pool, configuration._frame
    assert pool is not None
    trials = Trials(tools, pool, every[0][1], ())
    trials.measure([(cuts, each.plan.location) for cuts, each in random.sample(every, min(4, len(every)))])
    most, deadline = random.choice(every)[1].objective, Deadline.after(60)
    search = RankSearch(tools.view, frame, pool, trials, configuration._cutoffs)
    left: set[bytes] = set()
    for network in search._networks(Cutoffs(most, None), deadline):
        sweep(network, tools.view, pool, most, deadline)
        left |= {starts.tobytes() for starts in ways_of(network)}
    kept = [cuts for cuts, each in every if each.objective <= most]
    assert {cuts.tobytes() for cuts in kept} <= left


def test_a_cut_that_visits_the_second_stage_of_the_turn_more_often() -> None:
    """Tests a V whose best plan was once ruled out: between the two stages of its last rank there is nothing."""
    problem = random_chain(Random(973))
    configuration = configuration_of(session_of(problem), PlanPool())
    optimum = min(each.objective for _, each in interval_plans(configuration))
    best = plan_problem(problem).candidates[0]
    assert problem.training.schedules[0].kind == "zb_v"
    assert best.metrics.iteration_time_s == pytest.approx(configuration.tools.judge.figures.seconds(optimum), rel=1e-9)


def ways_of(network: RankNetwork) -> list[IntArray]:
    """Give the starts of the stages of every way through a network."""
    ways: list[list[int]] = [[state] for state in range(len(network.tracks[0].places[0]))]
    for step in network.steps:
        ways = [[*way, int(state)] for way in ways for state in np.flatnonzero(step[way[-1]])]
    return [] if network.empty else [network.places(way) for way in ways]
