"""A search that is asked to stop ends soon, with what it has found."""

from threading import Event, Timer
from time import monotonic

import pytest

from hard_problem import hard_problem
from partita.models.document import validate
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.frontier import frontier
from partita.solver.planner import plan_problem

SOON_S = 4.0
"""Generous: what is measured in the middle of a step must come to its end first."""


@pytest.mark.parametrize("solver", ["cp-sat", "highs"])
def test_stop_keeps_the_best_plan(solver: str) -> None:
    """Tests that a stopped search answers soon, with a plan and a bound that is not closed."""
    stop, begin = Event(), monotonic()
    timer = Timer(1.5, stop.set)
    timer.start()
    answer = plan_problem(validate(Problem, hard_problem(solver=solver)), stop=stop)
    assert 1.5 <= monotonic() - begin < 1.5 + SOON_S
    assert (answer.status, len(answer.candidates)) == ("feasible", 1)
    assert answer.relative_gap is None or answer.relative_gap > 0


def test_stopped_front_is_partial() -> None:
    """Tests that the points found until then are given and the rest is named."""
    stop, begin = Event(), monotonic()
    timer = Timer(1.5, stop.set)
    timer.start()
    front = frontier(validate(Problem, hard_problem()), stop=stop)
    assert monotonic() - begin < 1.5 + SOON_S
    assert front.status in ("partial", "no_solution")
    assert front.unexplored


def test_a_stopped_deadline_has_passed() -> None:
    """Tests that all parts of a deadline end with it."""
    deadline = Deadline.for_problem(60.0, Event())
    part = deadline.part(0.5)
    assert not part.passed and part.remaining > 20
    assert deadline.stop is not None
    deadline.stop.set()
    assert deadline.passed and part.passed and part.remaining == 0
