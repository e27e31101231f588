"""Tests that a given plan is compared with the best plan, and that the bound is the one of the search."""

import pytest

from oracle.comparison import check_candidate, value_of
from oracle.search import Plan, every_plan
from oracle.small import Json, small_problem
from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.planner import plan_problem
from partita.solver.what_if import evaluate_given
from strategies import first_drawn, read, seeded_problem


def evaluated(problem: Problem, plan: Json, solve: bool = True) -> Answer:
    """Evaluate a plan."""
    return evaluate_given(problem, validate(GivenPlan, plan), solve=solve)


def test_a_plan_worse_than_the_best() -> None:
    """Tests stages of 4 s and 2 s with two microbatches, 10 s, where 3 s and 3 s need 9 s."""
    answer = evaluated(small_problem("abcdef", num_microbatches=2), {"stage_sizes": [4, 2]})
    assert (answer.status, answer.best_bound, answer.relative_gap) == ("feasible", 9.0, pytest.approx(0.1))
    comparison = answer.comparison
    assert comparison is not None
    assert (comparison.best_status, comparison.best_value, comparison.best_bound) == ("optimal", 9.0, 9.0)
    assert comparison.gap == pytest.approx(0.1)
    assert comparison.move is not None and comparison.move.objective_value == 9.0


def test_the_best_plan_is_proven_to_be_it() -> None:
    """Tests that the given plan is optimal where the search finds none better."""
    answer = evaluated(small_problem("abcdef", num_microbatches=2), {"cut_after": ["c"]})
    assert (answer.status, answer.relative_gap) == ("optimal", 0.0)
    assert answer.comparison is not None
    assert (answer.comparison.gap, answer.comparison.move) == (0.0, None)


def test_without_a_search() -> None:
    """Tests that the bound is then the one by arithmetic, and that the best move is named all the same."""
    answer = evaluated(small_problem("abcdef", num_microbatches=2), {"stage_sizes": [4, 2]}, solve=False)
    assert answer.best_bound == pytest.approx(9.0)
    comparison = answer.comparison
    assert comparison is not None
    assert (comparison.best_status, comparison.best_value, comparison.best_bound, comparison.gap) == (None,) * 4
    assert comparison.move is not None


def test_a_plan_that_breaks_limits() -> None:
    """Tests a plan that is better than the best one because it breaks a demand: no bound is claimed for it."""
    problem = small_problem("abcdef", num_microbatches=2, constraints={"pins": {"b": 1}})
    answer = evaluated(problem, {"stage_sizes": [3, 3]})
    assert (answer.status, answer.best_bound, answer.relative_gap) == ("infeasible", None, None)
    comparison = answer.comparison
    assert comparison is not None
    assert (comparison.best_status, comparison.best_value) == ("optimal", 11.0)
    assert comparison.gap == pytest.approx((9 - 11) / 9)
    assert comparison.move is not None
    assert (comparison.move.layers, comparison.move.objective_value) == (("b", "c"), 11.0)


def test_a_problem_without_a_plan() -> None:
    """Tests that the comparison says that no plan keeps the limits."""
    problem = small_problem("abc", num_microbatches=2, limits={"iteration_time_s": 1.0})
    comparison = evaluated(problem, {"stage_sizes": [1, 2]}).comparison
    assert comparison is not None
    assert (comparison.best_status, comparison.best_value, comparison.gap) == ("infeasible", None, None)


def test_time_that_is_too_short_for_a_search() -> None:
    """Tests that the given plan is priced, and the bound still holds, where no time is left for the search."""
    problem = small_problem("abcdef", num_microbatches=2, search={"time_limit_s": 2e-3})
    answer = evaluated(problem, {"stage_sizes": [4, 2]})
    assert answer.candidates[0].metrics.iteration_time_s == 10.0
    assert answer.best_bound is not None and answer.best_bound <= 9.0


def with_plans(seed: int) -> tuple[Problem, list[Plan]] | None:
    """Give the seed's problem with all its plans, if it has any."""
    problem = read(seeded_problem(seed) | {"search": {"candidates": 5, "time_limit_s": 60.0}})
    plans = every_plan(problem)
    return (problem, plans) if plans else None


SEEDS = [*range(25), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(25, 150))]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_plans(seed: int) -> None:
    """Tests that the last of the ranked plans has the distance from the first that enumeration gives."""
    problem, plans = first_drawn(seed, with_plans)
    found = plan_problem(problem).candidates
    stages = [{"layers": list(stage.layers), "devices": list(stage.devices)} for stage in found[-1].stages]
    answer = evaluated(problem, {"stages": stages})
    check_candidate(problem, answer.candidates[0])
    assert answer.comparison is not None
    best, value = plans[0].value, value_of(problem, answer.candidates[0])
    assert answer.comparison.best_value == pytest.approx(best, rel=1e-9, abs=0)
    assert answer.best_bound == pytest.approx(best, rel=1e-9, abs=0)
    assert answer.comparison.gap == pytest.approx(abs(value - best) / value if value else 0.0, rel=1e-6, abs=1e-9)
    assert (answer.status == "optimal") == (abs(value - best) <= 1e-9 * abs(best))


def test_other_forms_are_refused_with_their_place() -> None:
    """Tests a layout that has too few letters."""
    with pytest.raises(InvalidInput) as caught:
        evaluated(small_problem("abcdef"), {"megatron_layout": "Et|L"})
    assert caught.value.faults[0].pointer == "/plan/megatron_layout"
