"""The exact Pareto front of two metrics, by limiting one of them again and again.

Each point takes two searches: the best by one metric with the other one limited, and among those plans the best by the
other. Nothing then lies between the limit and the value found, so the next limit is below that value; where fewer
points are wanted than the front may hold, limits are spread evenly first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event

from partita import __version__
from partita.models.answer import Answer, Effort
from partita.models.digest import problem_digest
from partita.models.document import validate
from partita.models.errors import NotSupportedYet
from partita.models.front import MINIMIZED, Front, FrontMetric, FrontPoint, FrontRequest, FrontStatus, Region
from partita.models.objective import FIELDS, MetricName
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.gaps import Gaps
from partita.solver.infeasibility.explanation import explain
from partita.solver.session import Session
from partita.solver.support import refuse_degrees_per_stage, refuse_unsupported
from partita.solver.targets import TIMES
from partita.solver.tools import Tactics

__all__ = ["FrontProgress", "frontier"]

OnPoint = Callable[["FrontProgress"], None]


@dataclass(frozen=True, slots=True)
class FrontProgress:
    """How far the search for a front is: points found, points wanted, and seconds since the start."""

    found: int
    wanted: int
    wall_s: float


def frontier(
    problem: Problem,
    metrics: Sequence[FrontMetric] = ("iteration_time_s", "peak_memory_bytes"),
    points: int = 20,
    *,
    on_point: OnPoint | None = None,
    stop: Event | None = None,
) -> Front:
    """Find the plans than which no other is better in one of two metrics and at least as good in the other.

    Parameters
    ----------
    problem
        Whose plans are compared; its objective is not used, and ``search.time_limit_s`` is the time for all.
    metrics
        The two metrics.
    points
        The most plans to give.
    on_point
        Called when a point is proven.
    stop
        Once set, the search ends with the points it has found, as at the time limit.

    Raises
    ------
    InvalidInput
        When the metrics are not two different ones, or the numbers of the problem are too large to be counted.
    NotSupportedYet
        Naming the fields that ask for something that cannot be planned yet.
    """
    deadline = Deadline.for_problem(problem.search.time_limit_s, stop)
    asked = validate(FrontRequest, {"problem": problem, "metrics": list(metrics), "points": points})
    refuse_degrees_per_stage(problem, "a front")
    rates = {field: name for name, field in FIELDS.items()} | {"microbatches_per_second": "bottleneck_time"}
    refuse_unsupported(problem, {rates[metric] for metric in asked.metrics}, "/metrics")
    if problem.search.solver == "highs":
        text = (
            "not supported yet: a front by HiGHS, which cannot tell plans apart to the byte; write 'auto' or 'cp-sat'"
        )
        raise NotSupportedYet.at("/search/solver", text, "'highs'")
    return _Search(asked, deadline, on_point).front()


class _Search:
    """One front being searched.

    ``_limited`` is the metric that is limited: one that is counted in whole numbers where there is one.
    """

    def __init__(self, asked: FrontRequest, deadline: Deadline, on_point: OnPoint | None) -> None:
        self._asked, self._deadline, self._on_point = asked, deadline, on_point
        first, second = asked.metrics
        whole = MINIMIZED[second] not in TIMES
        self._free, self._limited = (first, second) if whole or MINIMIZED[first] in TIMES else (second, first)
        self._gaps = Gaps(whole=MINIMIZED[self._limited] not in TIMES)
        self._answers: dict[float, Answer] = {}
        self._holds_more = False
        self._effort = Effort(solver="", wall_s=0.0)

    def front(self) -> Front:
        """Search until the front is known, enough points are found or the time is over."""
        first = self._solve([self._free, self._limited], None)
        if first.status == "infeasible":
            return self._report("infeasible", [], first)
        if first.status != "optimal":
            return self._report("no_solution", [self._region(None, None)], first)
        start = self._note(first)
        end = self._solve([self._limited, self._free], self._gaps.below(start)) if start > 0 else first
        if start <= 0 or end.status == "infeasible":  # one plan is the best by both
            return self._report("complete", [], first)
        if end.status != "optimal":
            return self._report("partial", [self._region(end.best_bound, self._gaps.below(start))], first)
        least = self._note(end)
        self._gaps.open(self._gaps.above(least), self._gaps.below(start))
        proven = self._explore(least, start)
        regions = [self._region(*gap) for gap in self._gaps]
        status: FrontStatus = "complete" if not regions else ("sample" if proven else "partial")
        return self._report(status, regions, first)

    def _explore(self, least: float, start: float) -> bool:
        """Look for points until there are enough; tell whether the time sufficed."""
        wanted = self._asked.points
        for limit in self._gaps.spread(least, start, wanted - 2):
            gap = self._gaps.holding(limit)
            if gap is not None and len(self._answers) < wanted and not self._look(gap, limit):
                return False
        while self._gaps and not self._holds_more:
            gap = self._gaps.widest()
            if not self._look(gap, gap[1], keep=len(self._answers) < wanted):
                return False
        return True

    def _look(self, gap: tuple[float, float], limit: float, keep: bool = True) -> bool:
        """Find the point with the largest value up to a limit within a gap; tell whether it is proven.

        With enough points already, a further one is not kept: it shows that the front holds more.
        """
        answer = self._solve([self._free, self._limited], limit)
        if answer.status != "optimal":
            return False
        value = self._value(answer)
        if value < gap[0]:
            self._gaps.resolve(gap, gap[0], limit)
        elif keep:
            self._note(answer)
            self._gaps.resolve(gap, value, limit)
        else:
            self._holds_more = True
        return True

    def _solve(self, order: list[FrontMetric], limit: float | None) -> Answer:
        """Find the best plan by the first and then the second of the metrics, the limited one being at most this."""
        problem = self._asked.problem
        field = FIELDS[MINIMIZED[self._limited]]
        limits = problem.limits
        if limit is not None:
            value = int(limit) if self._gaps.whole else limit
            given = getattr(limits, field)
            limits = limits.model_copy(update={field: value if given is None else min(value, given)})
        search = problem.search.model_copy(update={"candidates": 1, "relative_gap": 0.0})
        objective: tuple[MetricName, ...] = tuple(MINIMIZED[metric] for metric in order)
        step = problem.model_copy(update={"objective": objective, "limits": limits, "search": search})
        answer = Session(step, Tactics()).answer(self._deadline)
        if answer.solver is not None:
            before, now = self._effort, answer.solver
            self._effort = Effort(
                solver=now.solver,
                wall_s=round(self._deadline.elapsed, 6),
                iterations=before.iterations + now.iterations,
                cuts=max(before.cuts, now.cuts),
                variables=max(before.variables, now.variables),
            )
        return answer

    def _value(self, answer: Answer) -> float:
        """Give the limited metric of the plan of an answer, less being better."""
        return float(getattr(answer.candidates[0].metrics, FIELDS[MINIMIZED[self._limited]]))

    def _note(self, answer: Answer) -> float:
        """Keep the plan of an answer as a point; give its value of the limited metric."""
        value = self._value(answer)
        self._answers[value] = answer
        if self._on_point is not None:
            self._on_point(FrontProgress(len(self._answers), self._asked.points, self._deadline.elapsed))
        return value

    def _region(self, least: float | None, most: float | None) -> Region:
        """Give a region of the limited metric; of a rate the values are those of the time that belongs to it."""
        field = FIELDS[MINIMIZED[self._limited]]
        return Region.model_validate({"metric": field, "least": least, "most": most})

    def _points(self) -> list[FrontPoint]:
        """Give the points, best by the first metric first."""
        ascending = self._limited == self._asked.metrics[0]
        points = []
        for rank, (_, answer) in enumerate(sorted(self._answers.items(), reverse=not ascending), start=1):
            plan = answer.candidates[0].model_copy(update={"rank": rank})
            values = tuple(float(getattr(plan.metrics, metric)) for metric in self._asked.metrics)
            points.append(FrontPoint(values=values, bounds=values, plan=plan))
        return points

    def _report(self, status: FrontStatus, regions: list[Region], first: Answer) -> Front:
        problem, reason = self._asked.problem, first.infeasibility
        return Front(
            status=status,
            metrics=self._asked.metrics,
            points=tuple(self._points()),
            unexplored=tuple(regions),
            infeasibility=None if reason is None else explain(problem, reason, self._deadline),
            assumptions=first.assumptions,
            warnings=first.warnings,
            solver=self._effort,
            problem_digest=problem_digest(problem),
            version=__version__,
        )
