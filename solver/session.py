"""One problem being planned: what is found becomes the answer, and every figure in it is evaluated anew."""

from collections.abc import Sequence
from dataclasses import fields
from math import inf

from partita import __version__
from partita.models.answer import (
    Answer,
    Candidate,
    Effort,
    Infeasibility,
    ScheduleResult,
    ScheduleStatus,
    Status,
)
from partita.models.answer_plan import Metrics
from partita.models.choices import TrainingChoice, choice_of
from partita.models.digest import problem_digest
from partita.models.objective import FIELDS
from partita.models.problem import Problem
from partita.solver.arithmetic import beyond_arithmetic, impossible
from partita.solver.assumptions import assumptions, of_batches, warnings
from partita.solver.backends.choose import backend_of
from partita.solver.backends.cp_sat import CpSat
from partita.solver.baselines import baselines
from partita.solver.bounds import least_objective
from partita.solver.ceilings import ceilings
from partita.solver.checks import InternalError
from partita.solver.comparison import Outcome, remarks
from partita.solver.configuration import NOTHING, Configuration
from partita.solver.deadline import Deadline
from partita.solver.domains import find_ancestry
from partita.solver.effort import affordable
from partita.solver.evaluation import Evaluator
from partita.solver.figures import ACCURACY, roundings
from partita.solver.inexact import BLURRED, COARSE, OUT_OF_FOCUS
from partita.solver.measure import graph_of
from partita.solver.plans import LIMIT_TOLERANCE, Judge, Judged, PlanPool
from partita.solver.progress import OnProgress, Progress
from partita.solver.ranking import Ranked, Ranking, configurations, rank
from partita.solver.starts import start_of
from partita.solver.targets import TIMES, counted, within_rounding
from partita.solver.ties import Level
from partita.solver.tools import Counters, Tactics, Tools
from partita.solver.variants import Variant, make_variants
from partita.solver.yardstick import Yardstick, level_results, relative_gap, yardsticks

SHARPENING_SHARE, BEYOND = 0.2, 8.0
"""The part of the time in which a plan is sought that tells which times matter, and up to how many times as long."""

MOST_EXPLAINED = 32
"""Configurations for each of which arithmetic is asked why it cannot be planned; of more, the search alone is."""

CHOSEN = tuple(each.name for each in fields(TrainingChoice))
"""What a configuration chooses, as in its result."""

Proof = tuple[Status, float | None, float | None]
"""Status, proven bound in the objective's unit, and relative gap."""


class Session:
    """One problem being planned.

    Parameters
    ----------
    problem
        What to plan; supported.
    tactics
        What the search may use.

    Attributes
    ----------
    variants, sticks
        The configurations; the objective in the user's units, level by level.
    """

    def __init__(self, problem: Problem, tactics: Tactics) -> None:
        self.problem, self._tactics = problem, tactics
        self.backend = backend_of(problem.search)
        self._take(make_variants(problem))

    def _take(self, variants: list[Variant]) -> None:
        """Take the variants, and what gives the objective in the user's units, level by level."""
        self.variants, first = variants, variants[0]
        self.sticks = yardsticks(self.problem.objective, first.judge.levels, first.instance, first.judge.figures)

    @property
    def yardstick(self) -> Yardstick:
        """The first level of the objective in the user's units."""
        return self.sticks[0]

    @property
    def _judge(self) -> Judge:
        """A judge, for what all variants have in common: metric and ticks."""
        return self.variants[0].judge

    def answer(self, deadline: Deadline, on_progress: OnProgress | None = None) -> Answer:
        """Search until the deadline and give the answer."""
        if self._blur:
            self._sharpen(deadline)
        found = self._search(self.problem.search.candidates, deadline, on_progress)
        ranking, notes, infeasibility = found.ranking, list(found.notes), None
        if not ranking.candidates and ranking.exhausted:
            first, reasons = self.variants[0], list(found.reasons.values())
            by_arithmetic = len(reasons) == len(self.variants)
            infeasibility = reasons[0] if by_arithmetic else beyond_arithmetic(first.judge, first.stage_counts)
        candidates = tuple(self._candidate(number, each) for number, each in enumerate(ranking.candidates, start=1))
        if self._blur or self._judge.figures.cap < inf:
            every, candidates = len(candidates), self._in_focus(candidates)
            if len(candidates) < every:
                notes.append(OUT_OF_FOCUS.format(every - len(candidates)))
        if self._blur:
            notes.append(BLURRED.format(self._blur))
        if self._judge.target.rounding > ACCURACY:
            notes.append(COARSE.format(self._judge.target.rounding))
        evaluator = self._variant_of(candidates[0]).evaluator if candidates else None
        proof = self._proof(ranking, candidates)
        answer = self._assemble(candidates, evaluator, proof, found.counters, deadline, infeasibility, ranking.levels)
        compared: tuple[ScheduleResult, ...] = ()
        if len(self.variants) > 1:
            compared = self._compared(found)
            notes += remarks(self.variants, found)
        return answer.model_copy(update={"warnings": (*answer.warnings, *notes), "schedules": compared})

    def _sharpen(self, deadline: Deadline) -> None:
        """Count finer where times are too far apart: transfers that take longer than a known plan need not be exact."""
        part = deadline.part(SHARPENING_SHARE)
        found = self._search(1, part, None).ranking.candidates
        timed = self._timed
        by_metric: dict[str, float] = {}
        for ceiling in ceilings(self.variants[0].instance):
            by_metric[ceiling.metric] = min(ceiling.most, by_metric.get(ceiling.metric, inf))
        limits = {metric: by_metric.get(metric) for metric in TIMES}
        known = [limits.pop(timed[0])] if len(timed) == 1 else []
        if timed:
            plans = self._in_focus(tuple(self._evaluated(each.judged, 1) for each in found))
            known += [self._time_of(each) / self._variant_of(each).scale for each in plans]
        if "iteration_time" in timed:  # a bottleneck is no longer than its iteration
            limits.clear()
        least = min((each for each in known if each is not None), default=None)
        matter = [each for each in (least, *limits.values()) if each is not None]
        if matter:
            smallest = min(each.scale for each in self.variants)
            self._take(make_variants(self.problem, BEYOND * max(matter) / smallest))

    def _search(self, wanted: int, deadline: Deadline, on_progress: OnProgress | None) -> Outcome:
        """Search for so many plans over all variants."""
        found = Outcome()
        open_: list[Configuration] = []
        left_out: dict[int, list[int]] = {}
        explained = len(self.variants) <= MOST_EXPLAINED
        for number, variant in enumerate(self.variants):
            searched, note = affordable(variant.instance, variant.stage_counts, self.problem.search.time_limit_s)
            left_out[number] = [count for count in variant.stage_counts if count not in searched]
            if note is not None and note not in found.notes:
                found.notes.append(note)
            reason = impossible(variant.judge, variant.stage_counts) if note is None and explained else None
            if reason is not None:
                found.reasons[number] = reason
            elif searched:
                open_ += configurations(self._tools(variant, found.plans, found.counters), searched)
                found.plans.add(start_of(variant, searched))

        def report(phase: str, best: Judged | None, bound: int) -> None:
            if on_progress is not None:
                value = None if best is None else self.yardstick.value(best.objective)
                proven = self.yardstick.bound(bound) if bound < NOTHING else None
                on_progress(Progress(phase, value, proven, deadline.elapsed))

        found.ranking.exhausted = len(found.reasons) == len(self.variants)
        if open_:
            found.ranking = rank(open_, found.plans, wanted, deadline, report)
        for number, counts in left_out.items():
            for count in counts:
                found.ranking.lower_bounds(number, least_objective(self.variants[number].judge, count))
        return found

    def _tools(self, variant: Variant, plans: PlanPool, counters: Counters) -> Tools:
        judge = variant.judge
        return Tools(
            judge=judge,
            ancestry=None if judge.groups.total_order else find_ancestry(judge.groups),
            backend=self.backend,
            tie_breaker=CpSat(self.problem.search.seed, 1, brief=True) if self.backend.exact else None,
            plans=plans,
            counters=counters,
            tactics=self._tactics,
            relative_gap=self._gap_in_time,
        )

    def _compared(self, outcome: Outcome) -> tuple[ScheduleResult, ...]:
        """Give what is known of every configuration, best first."""
        ranking, plans, reasons = outcome.ranking, outcome.plans, outcome.reasons
        best = ranking.candidates[0].judged if ranking.candidates else None
        results = []
        for number, variant in enumerate(self.variants):
            found, bound = plans.best_of(number), ranking.bounds.get(number, 0)
            value = None if found is None else self.yardstick.reported(self._evaluated(found, 0).metrics)
            proven = self.yardstick.bound(bound) if bound < NOTHING else None
            status: ScheduleStatus = "no_solution" if found is None else "feasible"
            if number in reasons or (found is None and bound >= NOTHING):
                status, proven = "infeasible", None
            elif found is not None and self._closes(bound, found.objective):
                status, proven = "optimal", value
            elif best is not None and best.variant != number and bound > best.objective - self._slack(best.objective):
                status = "cut_off"
            order = (found is None, found.objective if found else bound, number)
            results.append(
                (
                    order,
                    ScheduleResult(
                        **{name: getattr(variant.choice, name) for name in CHOSEN},
                        status=status,
                        objective_value=value,
                        best_bound=proven,
                    ),
                )
            )
        return tuple(result for _, result in sorted(results, key=lambda each: each[0]))

    def review(
        self,
        candidates: Sequence[Candidate],
        evaluator: Evaluator,
        reason: Infeasibility | None,
        deadline: Deadline,
        proven: float | None = None,
    ) -> Answer:
        """Give the answer for a plan that the user brought, best schedule first.

        ``evaluator`` is that of the first candidate; ``proven`` is a bound on any plan, in the unit of the answer. The
        bound by arithmetic takes its place where it is None.
        """
        least = self._least_by_arithmetic() if proven is None else proven
        value = self.reported(candidates[0])
        bound = self.yardstick.no_better(least, value) if reason is None else None
        gap = relative_gap(value, bound)
        status: Status = "feasible" if reason is None else "infeasible"
        return self._assemble(tuple(candidates), evaluator, (status, bound, gap), Counters(), deadline, reason)

    def _least_by_arithmetic(self) -> float | None:
        """Bound the objective of any plan, in the unit of the answer."""
        bounds = [
            least_objective(variant.judge, min(count, len(variant.judge.groups)))
            for variant in self.variants
            for count in variant.stage_counts
        ]
        return self.yardstick.bound(min(bounds))

    def _assemble(
        self,
        candidates: tuple[Candidate, ...],
        evaluator: Evaluator | None,
        proof: Proof,
        counters: Counters,
        deadline: Deadline,
        reason: Infeasibility | None,
        levels: Sequence[Level] = (),
    ) -> Answer:
        status, bound, gap = proof
        results = level_results(self.sticks, levels, candidates[0].metrics, bound) if candidates else ()
        found, instance = {}, self.variants[0].instance
        if evaluator is not None:
            found = baselines(evaluator, len(candidates[0].stages))
            instance = evaluator.instance
        return Answer(
            status=status,
            objective=self.problem.objective,
            best_bound=bound,
            relative_gap=gap,
            levels=results,
            candidates=candidates,
            baselines=found,
            infeasibility=reason,
            assumptions=(
                *assumptions(instance, self.problem.training.schedules),
                *of_batches(self.problem, instance),
            ),
            warnings=tuple(warnings(self.problem, instance)),
            solver=Effort(
                solver=self.backend.name,
                wall_s=round(deadline.elapsed, 6),
                iterations=counters.iterations,
                cuts=counters.cuts,
                variables=counters.variables,
            ),
            problem_digest=problem_digest(self.problem),
            version=__version__,
        )

    def _candidate(self, number: int, ranked: Ranked) -> Candidate:
        """Evaluate a plan anew, and add the bound that is proven for it."""
        candidate = self._evaluated(ranked.judged, number)
        bound = self._bound_value(ranked.bound, ranked.judged.objective, candidate)
        return candidate.model_copy(update={"best_bound": bound})

    def _evaluated(self, judged: Judged, number: int) -> Candidate:
        """Evaluate a plan anew, and make sure that the evaluator agrees with the solver."""
        variant = self.variants[judged.variant]
        judge, figures = variant.judge, variant.judge.figures
        candidate = variant.evaluator.candidate(judge.by_layer(judged.plan), number)
        metrics = candidate.metrics
        assert figures.tick is not None, "the solver counts in ticks"
        path = graph_of(variant.instance, judged.plan.num_stages).num_levels
        rounded = roundings(variant.instance, path) * figures.tick
        for metric, value in counted(judged.measures).items():
            exact = getattr(metrics, FIELDS[metric])
            if metric not in TIMES:
                wrong = exact != value
            elif any(target.counts(metric) for target in judge.levels):
                wrong = exact <= figures.cap and abs(exact - figures.seconds(value)) > ACCURACY * exact + rounded
            else:
                continue
            if wrong:
                raise InternalError(f"of {metric} the solver counts {value!r}, the evaluator {exact!r}")
        return candidate

    @property
    def _blur(self) -> float:
        """Seconds by which a counted time can be off, where that is too much; else 0."""
        return self._judge.figures.blur

    def _in_focus(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Drop candidates that break a time limit or are not counted exactly, and sort the others by exact figures."""
        limits = [each for each in ceilings(self.variants[0].instance) if each.metric in TIMES]
        kept = [
            each
            for each in candidates
            if (not self._timed or self._time_of(each) <= self._variant_of(each).judge.figures.cap)
            and all(getattr(each.metrics, FIELDS[c.metric]) <= c.most * (1 + LIMIT_TOLERANCE) for c in limits)
        ]
        kept.sort(key=lambda each: self.preference(each.metrics))
        return tuple(each.model_copy(update={"rank": number}) for number, each in enumerate(kept, start=1))

    def _time_of(self, candidate: Candidate) -> float:
        """Give the longest time that the objective is about, in seconds."""
        return max(float(getattr(candidate.metrics, FIELDS[metric])) for metric in self._timed)

    @property
    def _timed(self) -> list[str]:
        """The times that the objective is about."""
        return [metric for metric in TIMES if any(target.counts(metric) for target in self._judge.levels)]

    def _variant_of(self, candidate: Candidate) -> Variant:
        """Give the variant with a candidate's configuration."""
        chosen = choice_of(candidate)
        return next(each for each in self.variants if each.choice == chosen)

    def _proof(self, ranking: Ranking, candidates: tuple[Candidate, ...]) -> Proof:
        """Judge status, bound and gap from incumbent and bound."""
        if not candidates:
            known = 0 < ranking.bound < NOTHING
            bound = self.yardstick.bound(ranking.bound) if known and not ranking.exhausted else None
            nothing = ranking.exhausted and not ranking.candidates
            return ("infeasible" if nothing else "no_solution"), bound, None
        best = ranking.candidates[0].judged
        value = self.yardstick.reported(candidates[0].metrics)
        bound = self._bound_value(ranking.bound, best.objective, candidates[0])
        closed = self._closes(ranking.bound, best.objective)
        closed &= len(ranking.levels) == len(self._judge.levels) - 1 and all(each.proven for each in ranking.levels)
        return ("optimal" if closed else "feasible"), bound, relative_gap(value, bound)

    def _slack(self, objective: int) -> int:
        """Give by how much a plan must be better than this objective to be sought."""
        return max(int(objective * self._gap_in_time), self.backend.resolution(objective))

    @property
    def _gap_in_time(self) -> float:
        """The relative gap that the search may leave, where times or bytes are compared; a little less than asked for.

        A gap of g between tokens per second is one of g / (1 + g) between the times.
        """
        gap = self.problem.search.relative_gap * (1 - ACCURACY)
        return gap / (1 + gap) if self.yardstick.maximizes else gap

    def _closes(self, bound: int, objective: int) -> bool:
        """Tell whether a bound proves that nothing is better than this objective."""
        return self.yardstick.meets(bound, objective, self.backend.resolution(objective))

    def _bound_value(self, bound: int, objective: int, candidate: Candidate) -> float | None:
        """Give a bound in the unit of the objective; the plan's own value where it is met."""
        value = self.yardstick.reported(candidate.metrics)
        if within_rounding(bound) >= objective and self._closes(bound, objective):
            return value
        return self.yardstick.no_better(self.yardstick.bound(bound), value)

    def reported(self, candidate: Candidate) -> float | None:
        """Give the value of a plan's objective; None for tokens per second where an iteration takes no time."""
        return self.yardstick.reported(candidate.metrics)

    def preference(self, metrics: Metrics) -> tuple[float, ...]:
        """Give numbers that are smaller for a better plan, by level of the objective."""
        return tuple(each.preference(metrics) for each in self.sticks)
