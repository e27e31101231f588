"""The reason why a problem has no plan, where only the search can tell: a core of its limits, and what would help."""

from partita.models.answer import Infeasibility
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.infeasibility.changes import find_changes
from partita.solver.infeasibility.core import CoreSearch
from partita.solver.infeasibility.demands import changed, named_limits

ARITHMETIC_SHARE = 0.2
"""The part of the time left that is spent on more than what arithmetic shows."""

CORE_SHARE = 0.5
"""The part of the time left after the proof in which the core is sought; the rest is for the changes."""


def explain(problem: Problem, reason: Infeasibility, deadline: Deadline) -> Infeasibility:
    """Add to a reason a core of limits that cannot hold together, and the single changes that allow a plan.

    Findings of arithmetic stay, with what they say is needed at least; only a short time is spent on more than that.

    Parameters
    ----------
    problem
        A problem proven to have no plan.
    reason
        What is known of it: the limits in force.
    deadline
        When to end; what is not known by then is said to be unknown.
    """
    deadline = deadline.part(ARITHMETIC_SHARE) if reason.findings else deadline
    search = CoreSearch(problem, deadline.part(CORE_SHARE))
    core = search.find(named_limits(problem))
    changes, all_tried = find_changes(problem, core, deadline)
    return changed(
        reason,
        core=tuple(core),
        minimal=search.minimal,
        smallest_change=reason.smallest_change or (changes[0].words if changes else None),
        changes=tuple(changes),
        all_tried=all_tried,
    )
