"""From a problem to its answer."""

from threading import Event

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


def plan_problem(problem: Problem, *, on_progress: OnProgress | None = None, stop: Event | None = None) -> Answer:
    """Find the best plans for a problem and prove how good they are.

    Parameters
    ----------
    problem
        What to plan.
    on_progress
        Called when something new is known.
    stop
        Once set, the search ends with what it has found, as at its time limit.

    Raises
    ------
    NotSupportedYet
        Naming the fields that ask for something that cannot be planned yet.
    InvalidInput
        When the numbers of the problem are too large to be counted.
    InternalError
        When the evaluator disagrees with the solver: a fault in Partita.
    """
    deadline = Deadline.for_problem(problem.search.time_limit_s, stop)
    refuse_unsupported(problem)
    if problem.training.per_stage_degrees:
        return plan_steady_state(problem, deadline)
    session = Session(problem, Tactics())
    answer = keep_in_front(session.answer(deadline, on_progress), session, deadline)
    reason = answer.infeasibility
    if reason is None:
        return answer
    if on_progress is not None and not reason.findings:
        on_progress(Progress("explaining why there is no plan", None, None, deadline.elapsed))
    return answer.model_copy(update={"infeasibility": explain(problem, reason, deadline)})
