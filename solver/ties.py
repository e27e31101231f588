"""Among plans of one objective value, the one with the smallest peak memory.

The same search as for the objective, with memory as the objective and the value as a limit. It gets a fixed effort,
so that the answer does not depend on the machine's speed; what remains tied is ordered among the plans seen.
"""

from collections.abc import Sequence
from dataclasses import replace

from partita.solver.backends.base import Backend
from partita.solver.configuration import Configuration
from partita.solver.deadline import Deadline
from partita.solver.plans import Judged, PlanPool, within_rounding


def smallest_memory(
    plans: PlanPool,
    open_: Sequence[Configuration],
    backend: Backend,
    best: Judged,
    before: list[Judged],
    deadline: Deadline,
) -> Judged:
    """Give the plan with the smallest peak memory among those as good as ``best`` that are not ranked yet.

    Parameters
    ----------
    plans, open_
        The plans of the search that has proven ``best``, and its configurations.
    backend
        The solver, with a fixed effort.
    best, before
        The best plan left, and the plans ranked before it.
    """
    judges = {each.tools.judge.variant: each.tools.judge for each in open_}
    pool = PlanPool()
    for judged in plans.equal_to(best.objective):
        pool.add(judges[judged.variant].among_equals(best.objective).rejudge(judged))
    ranked = {each.signature for each in before}
    for configuration in open_:
        if configuration.bound <= within_rounding(best.objective):
            first = pool.best(ranked)
            judge = configuration.tools.judge.among_equals(best.objective)
            tied = replace(configuration.tools, judge=judge, backend=backend, plans=pool)
            configuration.among_equals(tied).search(first, before, deadline, lambda bound: None)
    found = pool.best(ranked)
    if found is None:
        return best
    again = judges[found.variant].rejudge(found)
    return best if again is None or again.measures.peak_memory >= best.measures.peak_memory else again
