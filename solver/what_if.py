"""A plan that the user brings: what it costs, how far it is from the best, and which single move improves it most."""

from typing import Any

from partita.models.answer import Answer, Comparison
from partita.models.answer_plan import Metrics
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.planner import plan_problem
from partita.solver.progress import OnProgress
from partita.solver.review import review_plan
from partita.solver.session import Session
from partita.solver.single_moves import BestMove, best_move
from partita.solver.yardstick import better, deciding, levels_of_another

PRICING_SHARE, MOVES_SHARE = 0.3, 0.3
"""The parts of the time left in which the plan is priced in many configurations, and in which moves are measured.

What is left of it belongs to the search.
"""

LEAST_SEARCH_S = 1e-3
"""The time limit of a search for which pricing and moves have left no time."""


def evaluate_given(
    problem: Problem, given: GivenPlan, *, solve: bool = True, on_progress: OnProgress | None = None
) -> Answer:
    """Price a given plan and compare it with the best plan and with its own neighbors.

    Parameters
    ----------
    problem, given
        The problem, and a plan for it; without devices its stages are placed in order.
    solve
        Whether to search for the best plan, within ``search.time_limit_s`` in all; otherwise the bound is the one by
        arithmetic.
    on_progress
        Called when the search knows something new.

    Returns
    -------
    Answer
        With the plan under each schedule as a candidate, the best first, and the comparison; ``infeasible`` with the
        broken limits where that one breaks any, ``optimal`` where the search proved that none is better.

    Raises
    ------
    NotSupportedYet, InvalidInput
        As ``review_plan`` and ``plan_problem`` do; pointers into the plan start at ``/plan``.
    """
    deadline = Deadline.after(problem.search.time_limit_s)
    review = review_plan(problem, given, deadline.part(PRICING_SHARE))
    session, ours = review.session, review.best.candidate.metrics
    moves = best_move(review.best, session, deadline.part(MOVES_SHARE))
    if not solve:
        return review.answer(deadline).model_copy(update={"comparison": _compared(moves)})
    found = plan_problem(_starting_from(problem, given, deadline), on_progress=on_progress)
    best = found.candidates[0].metrics if found.candidates else None
    answer = review.answer(deadline, found.best_bound)
    proven = answer.status == "feasible" and found.status == "optimal"
    closed = proven and best is not None and not better(session.sticks, best, ours)
    effort = found.solver and found.solver.model_copy(update={"wall_s": round(deadline.elapsed, 6)})
    return answer.model_copy(
        update={
            "status": "optimal" if closed else answer.status,
            "solver": effort,
            "levels": levels_of_another(session.sticks, found.levels, ours),
            "comparison": _compared(
                moves,
                best_status=found.status,
                best_value=None if best is None else session.yardstick.reported(best),
                best_bound=found.best_bound,
                gap=None if best is None else _behind(session, ours, best),
            ),
        }
    )


def _behind(session: Session, ours: Metrics, best: Metrics) -> float | None:
    """Give by how much another plan is better, as a fraction, at the level of the objective that decides."""
    stick = deciding(session.sticks, best, ours)
    value, other = stick.reported(ours), stick.reported(best)
    if value is None or other is None:
        return None
    return stick.gain(value, other) / abs(value) if value else 0.0


def _compared(moves: BestMove, **best: Any) -> Comparison:
    """Give the comparison with the neighbors and, where it was searched for, with the best plan."""
    return Comparison(move=moves.move, moves_measured=moves.measured, all_moves=moves.complete, **best)


def _starting_from(problem: Problem, given: GivenPlan, deadline: Deadline) -> Problem:
    """Give the problem of finding a better plan than a given one in the time that is left."""
    left = max(deadline.remaining, LEAST_SEARCH_S)
    search = {"candidates": 1, "time_limit_s": left, "keep": given, "keep_if_within": 0.0}
    return problem.model_copy(update={"search": problem.search.model_copy(update=search)})
