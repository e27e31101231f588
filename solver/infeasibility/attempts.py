"""Changed problems, planned by the same search as any other."""

from dataclasses import dataclass

from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.infeasibility.demands import changed
from partita.solver.session import Session
from partita.solver.support import refuse_unsupported
from partita.solver.tools import Tactics


@dataclass(frozen=True)
class Attempt:
    """What planning a changed problem has shown.

    Attributes
    ----------
    works
        Whether there is a plan; None where that is not known: time ran out, or the changed problem cannot be planned.
    plan, value
        The best plan found and its objective; None where there is none.
    proven
        Whether no plan has a better objective.
    """

    works: bool | None
    plan: Candidate | None = None
    value: float | None = None
    proven: bool = False


UNKNOWN = Attempt(None)


def attempt(problem: Problem, deadline: Deadline, *, relative_gap: float) -> Attempt:
    """Look for the best plan of a changed problem, to within a relative gap.

    The problem's time limit is what the deadline leaves, so that nothing is begun that cannot be ended in time.
    """
    left = deadline.remaining
    if not left:
        return UNKNOWN
    search = changed(problem.search, candidates=1, relative_gap=relative_gap, time_limit_s=left)
    try:
        refuse_unsupported(problem)
        session = Session(changed(problem, search=search), Tactics())
    except InvalidInput:  # not supported, or numbers too large to be counted without the limits that were left out
        return UNKNOWN
    if deadline.passed:  # many configurations take long to make; a search would find first plans whatever the time
        return UNKNOWN
    answer = session.answer(deadline)
    if answer.candidates:
        plan = answer.candidates[0]
        return Attempt(True, plan, session.reported(plan), answer.status == "optimal")
    return Attempt(False if answer.status == "infeasible" else None)


def has_plan(problem: Problem, deadline: Deadline) -> bool | None:
    """Tell whether a changed problem has a plan; None where time runs out first."""
    return attempt(problem, deadline, relative_gap=ANY).works


ANY = 1.0
"""The relative gap with which the first plan found is good enough."""
