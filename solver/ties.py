"""Among plans of one objective value, the best by the next level of the objective, at last by peak memory.

Each level is the same search as for the objective, with the values of the levels before it as limits. Peak memory as
what breaks ties gets a fixed effort, so that the answer does not depend on the machine's speed; what remains tied is
ordered among the plans seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from partita.solver.bounds import least_objective
from partita.solver.configuration import Configuration
from partita.solver.deadline import Deadline
from partita.solver.plans import Judged, Plan, PlanPool, Signature
from partita.solver.targets import MEMORY, Target, within_rounding


@dataclass(frozen=True, slots=True)
class Level:
    """What is known of a level: the value found, a bound on it among plans equal so far, and whether they meet."""

    target: Target
    value: int
    bound: int
    proven: bool


@dataclass
class Equals:
    """Plans that are equal at all levels so far, and the configurations that may hold more of them."""

    plans: PlanPool
    open_: list[Configuration]

    def narrowed(self, value: int, levels: Sequence[Target], brief: bool = False) -> "Equals":
        """Give those whose objective is at most a value, to be judged by further levels; briefly, to break a tie."""
        most, pool = self.open_[0].tools.judge.target.equal_to(value), PlanPool()
        kept, judges = [], {}
        for each in self.open_:
            if each.bound > most:
                continue
            tools = each.tools
            judge = judges[each.variant] = tools.judge.keeping(tools.judge.target, most).aiming(levels)
            backend = tools.tie_breaker if brief and tools.tie_breaker is not None else tools.backend
            kept.append(each.among_equals(replace(tools, judge=judge, backend=backend, plans=pool)))
            kept[-1].bound = least_objective(judge, each.num_stages)
        for judged in self.plans.up_to(most):
            if judged.variant in judges:
                pool.add(judges[judged.variant].rejudge(judged))
        return Equals(pool, kept)


def best_among_equals(
    plans: PlanPool, open_: Sequence[Configuration], best: Judged, before: list[Judged], deadline: Deadline
) -> tuple[Judged, list[Level]]:
    """Give the best plan by the further levels among those as good as ``best`` that are not ranked yet.

    Parameters
    ----------
    plans, open_
        The plans of the search that has proven ``best``, and its configurations.
    best, before
        The best plan left, and the plans ranked before it.

    Returns
    -------
    plan, levels
        The plan, and what is proven of it at every further level, up to the first that is not proven.
    """
    judge = open_[0].tools.judge
    judges = {each.tools.judge.variant: each.tools.judge for each in open_}
    ranked, levels = {each.signature for each in before}, []
    equals, value = Equals(plans, list(open_)), best.objective
    for number in range(1, len(judge.levels)):
        equals = equals.narrowed(value, judge.levels[number:])
        finished = _search(equals, ranked, before, deadline, warm=True)
        found = equals.plans.best(ranked)
        assert found is not None, "the plan that was best so far is among them"
        best, value = found, found.objective
        bound = min((each.bound for each in equals.open_), default=value)
        slack = equals.open_[0].tools.backend.resolution(value) if equals.open_ else 1
        proven = finished or within_rounding(bound) > value - slack
        levels.append(Level(judge.levels[number], value, value if proven else min(bound, value), proven))
        if not proven:
            break
    settled = any(target.name == MEMORY.name for target in judge.levels)
    if not settled and all(level.proven for level in levels) and open_[0].tools.tie_breaker is not None:
        equals = equals.narrowed(value, (MEMORY,), brief=True)
        _search(equals, ranked, before, deadline, warm=False)
        found = equals.plans.best(ranked)
        if found is not None and found.measures.peak_memory < best.measures.peak_memory:
            best = _recomputing_least(found, equals, judge.levels)
    again = judges[best.variant].rejudge(best)
    assert again is not None, "a plan that keeps narrower limits keeps the first ones"
    return again, levels


def _search(equals: Equals, ranked: set[Signature], before: list[Judged], deadline: Deadline, *, warm: bool) -> bool:
    """Search every configuration that may hold a better plan; tell whether that was finished."""
    finished = True
    for configuration in sorted(equals.open_, key=lambda each: (each.bound, -each.num_stages)):
        if warm:
            configuration.warm_up(deadline)
        first = equals.plans.best(ranked)
        if first is None or configuration.bound < first.objective:
            finished &= configuration.search(first, before, deadline, lambda bound: None)
    return finished


def _recomputing_least(found: Judged, equals: Equals, levels: Sequence[Target]) -> Judged:
    """Give a plan with the options of recompute that take the least time within its peak memory.

    The search that broke the tie minds only the fullest device, and may recompute elsewhere for nothing.
    """
    for each in equals.open_:
        if each.variant == found.variant and each.tools.judge.instance.ways.choosable:
            judge = each.tools.judge.keeping(MEMORY, found.measures.peak_memory).aiming(levels)
            return judge.judge([Plan(found.plan.stage, found.plan.location)])[0] or found
    return found
