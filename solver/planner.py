"""From a problem to its answer."""

from time import monotonic

from partita.models.answer import Answer
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.infeasibility.explanation import explain
from partita.solver.keeping import keep_in_front
from partita.solver.progress import OnProgress, Progress
from partita.solver.session import Session
from partita.solver.steady.answer import plan_steady_state
from partita.solver.support import refuse_unsupported
from partita.solver.tools import Tactics

__all__ = ["OnProgress", "Progress", "plan_problem"]

REPORTING_SHARE, MOST_REPORTING_S = 0.05, 0.2
"""Part of the time limit that is kept for evaluating and reporting what was found."""


def plan_problem(problem: Problem, *, on_progress: OnProgress | None = None) -> Answer:
    """Find the best plans for a problem and prove how good they are.

    Parameters
    ----------
    problem
        What to plan.
    on_progress
        Called when something new is known.

    Raises
    ------
    NotSupportedYet
        Naming the fields that ask for something that cannot be planned yet.
    InvalidInput
        When the numbers of the problem are too large to be counted.
    InternalError
        When the evaluator disagrees with the solver: a fault in Partita.
    """
    started = monotonic()
    limit = problem.search.time_limit_s
    deadline = Deadline(started, started + limit - min(MOST_REPORTING_S, REPORTING_SHARE * limit))
    refuse_unsupported(problem)
    if problem.training.per_stage_degrees:
        return plan_steady_state(problem, deadline)
    session = Session(problem, Tactics())
    answer = keep_in_front(session.answer(deadline, on_progress), session, deadline)
    reason = answer.infeasibility
    if reason is None or reason.findings:
        return answer
    if on_progress is not None:
        on_progress(Progress("explaining why there is no plan", None, None, deadline.elapsed))
    return answer.model_copy(update={"infeasibility": explain(problem, reason, deadline)})
