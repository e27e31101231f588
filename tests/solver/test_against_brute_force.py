"""Tests that the solver agrees with trying every plan, on random small problems."""

from collections.abc import Callable
from functools import cache
from random import Random

import pytest

from oracle.comparison import check_answer, check_candidate
from oracle.facts import read_facts
from oracle.orders import ranks_of_stages
from oracle.partitions import Partition, partitions, stage_counts
from oracle.pricing import price_partition
from oracle.random_schedules import PLAIN
from oracle.search import Plan, every_plan, keeps_limits, memory_limit, places_of
from partita.models.plan import GivenPlan, GivenStage
from partita.models.problem import Problem
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan
from strategies import Json, first_drawn, read, seeded_problem

Make = Callable[[int], Json]

MANY_PLANS = (610, 755, 1678, 2237, 2957)
ONCE_WRONG = (
    *(790, 908, 1659, 2403, 2604, 2849),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY_PLANS),
)
"""Further seeds, whose problems the solver once got wrong; those with most plans take long to try."""
SEEDS = [
    *range(45),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(45, 500)),
]


def plain_problem(seed: int) -> Json:
    """Give a problem with one of the schedules in which ranks run one stage and backward passes are whole."""
    return seeded_problem(seed, PLAIN)


@cache
def problem_of(seed: int, solver: str = "auto", make: Make = seeded_problem) -> Problem:
    """Give the seed's problem with time enough to prove everything."""
    search = {"candidates": 5, "time_limit_s": 120.0, "workers": 1, "solver": solver}
    return read(make(seed) | {"search": search})


@cache
def plans_of(seed: int, make: Make = seeded_problem) -> list[Plan]:
    """Give every plan of the seed's problem, best first."""
    return every_plan(problem_of(seed, make=make))


@pytest.mark.parametrize("seed", SEEDS)
def test_cp_sat_finds_the_best_plans(seed: int) -> None:
    """Tests status, the five best values in order, and every figure, with CP-SAT."""
    problem = problem_of(seed, "cp-sat")
    check_answer(problem, plan_problem(problem), plans_of(seed), tolerance=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_highs_finds_the_best_plans(seed: int) -> None:
    """Tests the same with HiGHS, which works with floating-point numbers."""
    problem = problem_of(seed, "highs")
    check_answer(problem, plan_problem(problem), plans_of(seed), tolerance=1e-6)


@pytest.mark.parametrize(("solver", "tolerance"), [("cp-sat", 1e-9), ("highs", 1e-6)])
@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_problems_once_wrong(seed: int, solver: str, tolerance: float) -> None:
    """Tests the same with both solvers on problems of plain schedules that went wrong before."""
    problem = problem_of(seed, solver, plain_problem)
    check_answer(problem, plan_problem(problem), plans_of(seed, plain_problem), tolerance)


def with_partitions(seed: int) -> tuple[Problem, list[Partition]] | None:
    """Give the seed's problem with all partitions that keep its constraints, if there are any."""
    problem = problem_of(seed)
    found = [partition for count in stage_counts(problem) for partition in partitions(problem, count)]
    return (problem, found) if found else None


@pytest.mark.parametrize("seed", SEEDS)
def test_evaluation_prices_any_plan(seed: int) -> None:
    """Tests the evaluator on a random plan that may break the limits on memory and time."""
    (problem, found), random = first_drawn(seed, with_partitions), Random(seed)
    facts, partition = read_facts(problem), random.choice(found)
    degree = facts.tensor_parallel * facts.data_parallel
    stages = max(partition) + 1
    placement = random.choice(places_of(problem).placements(facts.ranks_for(stages)))
    ranks = ranks_of_stages(facts.orders_for(stages))
    given = GivenPlan(
        stages=tuple(
            GivenStage(
                layers=tuple(name for name, at in zip(facts.names, partition, strict=True) if at == stage),
                devices=slot_devices(first, degree),
            )
            for stage, first in enumerate(placement[rank] for rank in ranks)
        )
    )
    answer = evaluate_plan(problem, given)
    (candidate,) = answer.candidates
    check_candidate(problem, candidate)
    assert [stage.devices[0] for stage in candidate.stages] == [placement[rank] for rank in ranks]
    cost = price_partition(problem, facts, partition, placement)
    fits = cost.peak_memory_bytes <= memory_limit(problem, facts) and keeps_limits(problem, cost)
    assert answer.status == ("feasible" if fits else "infeasible")
    assert (answer.infeasibility is None) == fits


def slot_devices(first: str, degree: int) -> tuple[str, ...]:
    """Give the devices of a slot by its first one."""
    node, _, number = first.partition(":")
    return tuple(f"{node}:{int(number) + offset}" for offset in range(degree))
