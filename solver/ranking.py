"""The ranked candidates of a problem, over all numbers of stages that are allowed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from partita.solver.bounds import least_objective
from partita.solver.checks import InternalError
from partita.solver.configuration import NOTHING, Configuration
from partita.solver.deadline import Deadline
from partita.solver.plans import Judge, Judged, PlanPool
from partita.solver.targets import within_rounding
from partita.solver.ties import Level, best_among_equals
from partita.solver.tools import Tools
from partita.solver.twins import images


@dataclass(frozen=True, slots=True)
class Ranked:
    """A plan and the proven bound, as the objective is counted, on all plans that do not come before it."""

    judged: Judged
    bound: int


@dataclass
class Ranking:
    """What a search has found.

    Attributes
    ----------
    candidates
        The plans, best first.
    bound
        Proven bound on the objective of any plan, as it is counted.
    bounds
        The same by variant.
    exhausted
        Whether it is proven that there are no further plans.
    levels
        What is proven of the best plan at the levels of a lexicographic objective after the first.
    """

    candidates: list[Ranked] = field(default_factory=list)
    bound: int = 0
    bounds: dict[int, int] = field(default_factory=dict)
    exhausted: bool = False
    levels: list[Level] = field(default_factory=list)

    def take(self, judged: Judged, judge: Judge, bound: int, wanted: int) -> None:
        """Add a plan and its images, which are as good, up to so many plans in all."""
        self.candidates.append(Ranked(judged, bound))
        self.candidates += [Ranked(each, bound) for each in images(judge, judged, wanted - len(self.candidates))]

    def sort(self) -> None:
        """Put the candidates in order where a gap was allowed and a later one is better than one before it."""
        pairs = pairwise(each.judged.objective for each in self.candidates)
        if any(within_rounding(later) < earlier for earlier, later in pairs):
            least = min(each.bound for each in self.candidates)
            self.candidates.sort(key=lambda each: each.judged.key)
            self.candidates = [Ranked(each.judged, min(least, each.judged.objective)) for each in self.candidates]

    def lower_bounds(self, variant: int, bound: int) -> None:
        """Take back what was proven without plans of a variant that have at least this objective."""
        self.bound = min(self.bound, bound)
        self.bounds[variant] = min(self.bounds.get(variant, bound), bound)
        self.candidates = [Ranked(each.judged, min(each.bound, bound)) for each in self.candidates]
        self.exhausted = False


MOST_COMPARED = 16
"""Variants for each of which a plan is sought, whatever its bound; of more, only for those that may have the best."""

COUNTED_FROM_THE_END = ("forward_only", "gpipe", "1f1b")
"""Schedules in which what a stage keeps depends on how many stages come after it alone."""

OnProgress = Callable[[str, Judged | None, int], None]
"""Called with the phase, the best plan so far and the bound."""


def configurations(tools: Tools, stage_counts: list[int]) -> list[Configuration]:
    """Make the configurations for the numbers of stages that are allowed, most stages first.

    Where only steady state or memory counts and nothing names a stage, one configuration with stages that may be
    empty stands for a whole range of numbers.
    """
    judge = tools.judge
    usable = sorted(judge.possible_counts(stage_counts), reverse=True)
    each_number = ("iteration_time", "num_devices", "inter_node_bytes")  # depend on how many stages there are
    steady = not judge.sees_makespan and not judge.pins and not any(judge.minds(metric) for metric in each_number)
    steady &= judge.instance.schedule.kind in COUNTED_FROM_THE_END
    if steady and len(usable) > 1 and usable == list(range(usable[0], usable[-1] - 1, -1)):
        return [Configuration(tools, usable[0], usable[0] - usable[-1])]
    return [Configuration(tools, count) for count in usable]


def rank(
    open_: list[Configuration], plans: PlanPool, wanted: int, deadline: Deadline, on_progress: OnProgress
) -> Ranking:
    """Find the best plans of all configurations in order, each proven to be the next best while time lasts."""
    ranking = Ranking()
    for configuration in open_:
        configuration.bound = least_objective(configuration.tools.judge, configuration.num_stages)
    _warm_up(plans, open_, deadline, on_progress)
    judges = {each.variant: each.tools.judge for each in open_}
    before: list[Judged] = []
    while len(ranking.candidates) < wanted:
        proven = _find_next(plans, open_, before, deadline, on_progress)
        best = plans.best({each.signature for each in before})
        bound = min((each.bound for each in open_), default=NOTHING)
        if not ranking.candidates:
            ranking.bound = bound if best is None else min(bound, best.objective)
            for each in open_:
                ranking.bounds[each.variant] = min(each.bound, ranking.bounds.get(each.variant, NOTHING))
        if best is None:
            ranking.exhausted = proven
            break
        if proven:
            best, levels = best_among_equals(plans, open_, best, before, deadline)
            plans.add(best)
            proven = all(level.proven for level in levels)
            ranking.levels = ranking.levels or levels
        before.append(best)
        ranking.take(best, judges[best.variant], min(bound, best.objective), wanted)
        if not proven:
            _fill_up(plans, ranking, judges, wanted)
            break
    _refuse_contradictions(ranking, open_)
    ranking.sort()
    return ranking


def _refuse_contradictions(ranking: Ranking, open_: Sequence[Configuration]) -> None:
    """Make sure that no plan is better than what was proven of those ranked before it."""
    for better, worse in pairwise(ranking.candidates):
        slack = open_[0].tools.backend.resolution(worse.judged.objective)
        if within_rounding(worse.judged.objective) + slack < better.bound:
            raise InternalError(f"a plan of {worse.judged.objective} is better than the bound {better.bound}")


def _warm_up(plans: PlanPool, open_: list[Configuration], deadline: Deadline, on_progress: OnProgress) -> None:
    """Find first plans where there may be better ones, and of every variant where these are few."""
    few = len({each.variant for each in open_}) <= MOST_COMPARED
    best, tried = plans.best(set()), False
    for configuration in sorted(open_, key=lambda each: (each.bound, -each.num_stages)):
        if deadline.passed and (best is not None or tried):
            return
        tried = True
        unknown = few and plans.best_of(configuration.variant) is None
        if best is None or unknown or configuration.bound < best.objective:
            configuration.warm_up(deadline)
            best = plans.best(set())
            on_progress("first plans", best, 0)


def _find_next(
    plans: PlanPool, open_: list[Configuration], before: list[Judged], deadline: Deadline, on_progress: OnProgress
) -> bool:
    """Search every configuration that may hold a better plan than the best one left; tell whether that is proven."""
    ranked = {each.signature for each in before}
    proven, best = True, plans.best(ranked)
    for configuration in sorted(open_, key=lambda each: (each.bound, -each.num_stages)):
        if best is not None and configuration.bound >= best.objective:
            continue

        def report(bound: int, best: Judged | None = best) -> None:
            on_progress(f"candidate {len(before) + 1}", best, min(each.bound for each in open_))

        proven &= configuration.search(best, before, deadline, report)
        best = plans.best(ranked)
    return proven


def _fill_up(plans: PlanPool, ranking: Ranking, judges: Mapping[int, Judge], wanted: int) -> None:
    """Add the best plans that were seen, where the next best could not be proven."""
    while len(ranking.candidates) < wanted:
        best = plans.best({each.judged.signature for each in ranking.candidates})
        if best is None:
            return
        ranking.take(best, judges[best.variant], min(ranking.bound, best.objective), wanted)
