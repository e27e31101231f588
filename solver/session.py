"""One problem being planned: what is found becomes the answer, and every figure in it is evaluated anew."""

from collections.abc import Callable
from dataclasses import dataclass

from partita import __version__
from partita.models.answer import Answer, Candidate, Effort, Infeasibility, Status
from partita.models.digest import problem_digest
from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.solver.arithmetic import beyond_arithmetic, impossible
from partita.solver.assumptions import assumptions, warnings
from partita.solver.backends.base import Backend
from partita.solver.backends.cp_sat import CpSat
from partita.solver.backends.highs import Highs
from partita.solver.baselines import baselines
from partita.solver.checks import InternalError
from partita.solver.configuration import NOTHING, Counters, Tactics, Tools
from partita.solver.deadline import Deadline
from partita.solver.domains import find_ancestry
from partita.solver.effort import affordable
from partita.solver.evaluation import Evaluator
from partita.solver.figures import ACCURACY, choose_tick, make_figures, roundings
from partita.solver.grouping import group_layers
from partita.solver.instance import Instance, build_instance
from partita.solver.intervals import IntervalView
from partita.solver.plans import Judge, Judged, PlanPool, within_rounding
from partita.solver.ranking import Ranked, Ranking, least_objective, rank


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is; objective values in seconds or bytes, None where unknown."""

    phase: str
    incumbent: float | None
    bound: float | None
    wall_s: float


OnProgress = Callable[[Progress], None]


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
    """

    def __init__(self, problem: Problem, tactics: Tactics) -> None:
        self.problem, self._tactics = problem, tactics
        self.instance: Instance = build_instance(problem)
        self.stage_counts = allowed_stage_counts(problem)
        groups = group_layers(self.instance)
        figures = make_figures(self.instance, choose_tick(self.instance, max(self.stage_counts)))
        self.judge = Judge(self.instance, figures, groups)
        self.evaluator = Evaluator(self.instance)
        self.backend = _backend(problem)

    def answer(self, deadline: Deadline, on_progress: OnProgress | None = None) -> Answer:
        """Search until the deadline and give the answer."""
        judge, counters = self.judge, Counters()
        searched, left_out = affordable(self.instance, self.stage_counts, self.problem.search.time_limit_s)
        if not searched:
            return self._answer(Ranking(), counters, deadline, None, left_out)
        reason = impossible(judge, self.stage_counts) if left_out is None else None
        if reason is not None:
            return self._answer(Ranking(exhausted=True), counters, deadline, reason, None)
        tools = Tools(
            judge=judge,
            view=IntervalView(self.instance, judge.figures, judge.groups),
            ancestry=None if judge.groups.total_order else find_ancestry(judge.groups),
            backend=self.backend,
            tie_breaker=CpSat(self.problem.search.seed, 1, brief=True) if self.backend.exact else None,
            plans=PlanPool(),
            counters=counters,
            tactics=self._tactics,
            relative_gap=self.problem.search.relative_gap,
        )

        def report(phase: str, best: Judged | None, bound: int) -> None:
            if on_progress is not None:
                value = None if best is None else self._value(best.objective)
                proven = self._value(bound) if 0 < bound < NOTHING else None
                on_progress(Progress(phase, value, proven, deadline.elapsed))

        ranking = rank(tools, searched, self.problem.search.candidates, deadline, report)
        for count in set(self.stage_counts) - set(searched):
            ranking.lower_bounds(least_objective(judge, count))
        if not ranking.candidates and ranking.exhausted:
            reason = beyond_arithmetic(judge, self.stage_counts)
        return self._answer(ranking, counters, deadline, reason, left_out)

    def review(
        self, candidate: Candidate, evaluator: Evaluator, reason: Infeasibility | None, deadline: Deadline
    ) -> Answer:
        """Give the answer for a plan that the user brought, with the bound that arithmetic gives."""
        counts = [min(count, len(self.judge.groups)) for count in self.stage_counts]
        least = self._value(min(least_objective(self.judge, count) for count in counts))
        value = self.reported(candidate)
        bound = least or None if reason is None else None
        gap = _relative_gap(value, bound)
        status: Status = "feasible" if reason is None else "infeasible"
        return self._assemble((candidate,), evaluator, (status, bound, gap), Counters(), deadline, reason)

    def _answer(
        self,
        ranking: Ranking,
        counters: Counters,
        deadline: Deadline,
        reason: Infeasibility | None,
        left_out: str | None,
    ) -> Answer:
        candidates = tuple(self._candidate(number, each) for number, each in enumerate(ranking.candidates, start=1))
        proof = self._proof(ranking, candidates)
        answer = self._assemble(candidates, self.evaluator, proof, counters, deadline, reason)
        return answer if left_out is None else answer.model_copy(update={"warnings": (*answer.warnings, left_out)})

    def _assemble(
        self,
        candidates: tuple[Candidate, ...],
        evaluator: Evaluator,
        proof: Proof,
        counters: Counters,
        deadline: Deadline,
        reason: Infeasibility | None,
    ) -> Answer:
        status, bound, gap = proof
        found = {}
        if candidates:
            found = baselines(evaluator, self.judge, len(candidates[0].stages))
        return Answer(
            status=status,
            objective=self.problem.objective,
            best_bound=bound,
            relative_gap=gap,
            candidates=candidates,
            baselines=found,
            infeasibility=reason,
            assumptions=tuple(assumptions(self.instance)),
            warnings=tuple(warnings(self.problem, self.instance)),
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
        """Evaluate a plan anew, and make sure that the evaluator agrees with the solver."""
        judged = ranked.judged
        stage = judged.plan.stage[self.judge.groups.group_of]
        candidate = self.evaluator.candidate(stage, judged.plan.location, number)
        metrics, figures = candidate.metrics, self.judge.figures
        assert figures.tick is not None, "the solver counts in ticks"
        if self.judge.metric == "peak_memory":
            exact, counted, tolerance = float(metrics.peak_memory_bytes), float(judged.objective), 0.0
        else:
            steady = self.judge.metric == "bottleneck_time"
            exact = metrics.bottleneck_time_s if steady else metrics.iteration_time_s
            counted = figures.seconds(judged.objective)
            tolerance = ACCURACY * exact + roundings(self.instance, len(candidate.stages)) * figures.tick
        if abs(exact - counted) > tolerance or metrics.peak_memory_bytes != judged.measures.peak_memory:
            raise InternalError(f"the solver counts {counted!r}, the evaluator {exact!r}")
        bound = self._bound_value(ranked.bound, judged.objective, candidate)
        return candidate.model_copy(update={"best_bound": bound})

    def _proof(self, ranking: Ranking, candidates: tuple[Candidate, ...]) -> Proof:
        """Judge status, bound and gap from incumbent and bound."""
        if not candidates:
            known = 0 < ranking.bound < NOTHING
            bound = self._value(ranking.bound) if known and not ranking.exhausted else None
            return ("infeasible" if ranking.exhausted else "no_solution"), bound, None
        best = ranking.candidates[0].judged
        value = self.reported(candidates[0])
        bound = self._bound_value(ranking.bound, best.objective, candidates[0])
        gap = _relative_gap(value, bound)
        closed = within_rounding(ranking.bound) > best.objective - self.backend.resolution(best.objective)
        return ("optimal" if closed else "feasible"), bound, gap

    def _bound_value(self, bound: int, objective: int, candidate: Candidate) -> float | None:
        """Give a bound in the unit of the objective; the plan's own value where it is met."""
        if within_rounding(bound) >= objective:
            return self.reported(candidate)
        return self._value(bound) if bound > 0 else None

    def reported(self, candidate: Candidate) -> float | None:
        """Give the value of a plan's objective; None for tokens per second where an iteration takes no time."""
        metrics = candidate.metrics
        values = {
            "iteration_time": metrics.iteration_time_s,
            "tokens_per_second": metrics.tokens_per_second,
            "bottleneck_time": metrics.bottleneck_time_s,
            "peak_memory": metrics.peak_memory_bytes,
        }
        value = values[str(self.problem.objective)]
        return None if value is None else float(value)

    def _value(self, counted: int) -> float | None:
        """Give an objective counted in ticks or bytes in the unit of the answer."""
        if self.judge.metric == "peak_memory":
            return float(counted)
        seconds = self.judge.figures.seconds(counted)
        if self.problem.objective == "tokens_per_second":
            training = self.problem.training
            tokens = training.num_microbatches * training.microbatch_size * training.sequence_length
            return tokens * self.instance.replicas / seconds if seconds else None
        return float(seconds)


def _relative_gap(value: float | None, bound: float | None) -> float | None:
    """Give the distance between a plan and the bound, as a fraction of the plan; None where either is unknown."""
    if value is None or bound is None:
        return None
    return abs(value - bound) / abs(value) if value else 0.0


def allowed_stage_counts(problem: Problem) -> list[int]:
    """Give the numbers of stages that the problem allows, ascending."""
    asked = problem.training.num_stages
    return list(range(1, problem.most_stages() + 1)) if asked is None else sorted(as_choices(asked))


def _backend(problem: Problem) -> Backend:
    search = problem.search
    kind = Highs if search.solver == "highs" else CpSat
    return kind(search.seed, search.workers)
