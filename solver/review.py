"""A plan that the user brings, priced like a solved one, with the limits that it breaks."""

from dataclasses import dataclass

from partita.models.answer import Answer, Candidate, Finding, Infeasibility
from partita.models.answer_plan import Stage
from partita.models.errors import InvalidInput
from partita.models.objective import FIELDS
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.solver.arithmetic import memory_limit
from partita.solver.arrays import IntArray
from partita.solver.ceilings import ceilings
from partita.solver.deadline import Deadline
from partita.solver.evaluation import Evaluator
from partita.solver.instance import Instance
from partita.solver.layout import MOST_FINDINGS, Layout, lay_out
from partita.solver.plans import LIMIT_TOLERANCE
from partita.solver.session import Session
from partita.solver.support import refuse_degrees_per_stage, refuse_unsupported
from partita.solver.tools import Tactics


@dataclass(frozen=True, slots=True)
class Priced:
    """A given plan under one schedule: its report, the limits and demands that it breaks, and how it is laid out."""

    candidate: Candidate
    findings: list[Finding]
    layout: Layout
    evaluator: Evaluator


ENOUGH_TRIED = 64
"""Configurations that a plan is tried in whatever the time."""


@dataclass(frozen=True, slots=True)
class Review:
    """A given plan in every configuration that can run it, the best first, and why the others cannot.

    ``left_out`` is how many were not looked at, for lack of time.
    """

    session: Session
    priced: list[Priced]
    refused: dict[str, InvalidInput]
    left_out: int

    @property
    def best(self) -> Priced:
        """The plan under its best schedule."""
        return self.priced[0]

    def answer(self, deadline: Deadline, proven: float | None = None) -> Answer:
        """Give the answer, with a proven bound on any plan, in its unit, or else with the one by arithmetic."""
        candidates = [
            each.candidate.model_copy(update={"rank": number}) for number, each in enumerate(self.priced, start=1)
        ]
        reason = _explain(self.best.findings)
        answer = self.session.review(candidates, self.best.evaluator, reason, deadline, proven)
        skipped = tuple(
            f"{kind} cannot run this plan: {error.faults[0].detail}" for kind, error in self.refused.items()
        )
        if self.left_out:
            late = f"the time ran out before {self.left_out} further configurations of this plan were priced"
            skipped = (*skipped, f"{late}; name its configuration, or raise search.time_limit_s")
        return answer.model_copy(update={"warnings": (*answer.warnings, *skipped)})


def evaluate_plan(problem: Problem, given: GivenPlan) -> Answer:
    """Price a given plan, with a bound by arithmetic; ``what_if`` compares it with the best plan.

    Returns
    -------
    Answer
        With the plan under each schedule as a candidate, the best first; ``infeasible`` with the broken limits where
        that one breaks any. Schedules that cannot run the plan are named in a warning.

    Raises
    ------
    NotSupportedYet, InvalidInput
        As ``review_plan`` does.
    """
    deadline = Deadline.after(problem.search.time_limit_s)
    return review_plan(problem, given, deadline).answer(deadline)


def review_plan(problem: Problem, given: GivenPlan, deadline: Deadline, session: Session | None = None) -> Review:
    """Price a given plan in every configuration that the problem spans and that can run it, while there is time.

    Parameters
    ----------
    problem, given
        The problem, and a plan for it; without devices its stages are placed in order.
    deadline
        When to end; the first configurations that can run the plan are priced even so.
    session
        One for the problem, where there is one.

    Raises
    ------
    NotSupportedYet, InvalidInput
        When the problem cannot be planned yet; when the plan names what does not exist, leaves out a layer, puts a
        layer before one that it reads, or when no schedule can run it. Pointers start at ``/plan``.
    """
    refuse_degrees_per_stage(problem, "evaluation")
    refuse_unsupported(problem)
    priced: list[Priced] = []
    refused: dict[str, InvalidInput] = {}
    choices, left_out = given.choices(problem.choices()), 0
    for looked_at, choice in enumerate(choices):
        if deadline.passed and (priced or looked_at >= ENOUGH_TRIED):
            left_out = len(choices) - looked_at
            break
        try:
            laid = lay_out(problem.with_choice(choice), given)
        except InvalidInput as error:
            refused.setdefault(choice.schedule.kind, error)
            continue
        evaluator = Evaluator(laid.instance)
        candidate = evaluator.candidate(laid.plan, 1, laid.devices)
        priced.append(Priced(candidate, broken(laid.instance, candidate, laid.plan.stage), laid, evaluator))
    if not priced:
        raise next(iter(refused.values()))
    for each in priced:
        refused.pop(each.candidate.schedule.kind, None)
    known = session or Session(problem, Tactics())
    priced.sort(key=lambda each: (bool(each.findings), known.preference(each.candidate.metrics)))
    return Review(known, priced, refused, left_out)


def broken(instance: Instance, candidate: Candidate, stage: IntArray) -> list[Finding]:
    """List the limits and demands that a plan does not keep; ``stage`` by layer."""
    return _broken_limits(instance, candidate) + _broken_demands(instance.problem, candidate, instance, stage)


def _broken_limits(instance: Instance, candidate: Candidate) -> list[Finding]:
    """List the ranks that need too much memory, and the time limits that are exceeded."""
    findings = []
    limits = instance.problem.limits
    capacities = dict(zip(instance.topology.kinds, instance.capacities.tolist(), strict=True))
    of_rank: dict[int, list[Stage]] = {}
    for stage in candidate.stages:
        of_rank.setdefault(stage.rank, []).append(stage)
    for stages in of_rank.values():
        first, needed = stages[0], sum(stage.memory.total_bytes for stage in stages)
        allowed = capacities[first.device]
        short = needed - allowed
        if short > 0:
            numbers = " and ".join(str(stage.index) for stage in stages)
            text = (
                f"stage{'s' if len(stages) > 1 else ''} {numbers} on {first.devices[0]} need"
                f"{'' if len(stages) > 1 else 's'} {needed} bytes, {allowed} bytes are allowed: short by {short} bytes"
            )
            findings.append(
                Finding(
                    limit=memory_limit(instance, first.device),
                    message=text,
                    stage=first.index,
                    device=first.devices[0],
                    needed=needed,
                    available=allowed,
                    short_by=short,
                    unit="bytes",
                )
            )
    for ceiling in ceilings(instance):
        value = getattr(candidate.metrics, FIELDS[ceiling.metric])
        if value > ceiling.most * (1 + (LIMIT_TOLERANCE if ceiling.unit == "s" else 0)):
            short, unit = value - ceiling.most, ceiling.unit
            given = f" ({ceiling.text})" if ceiling.is_floor else ""
            reached, ceiling_text, missing = (
                f"{each:.0f} bytes" if unit == "bytes" else f"{each:.6g}" for each in (value, ceiling.most, short)
            )
            text = f"{FIELDS[ceiling.metric]} is {reached}, the limit is {ceiling_text}{given}: short by {missing}"
            findings.append(
                Finding(
                    limit=f"limits.{ceiling.field}",
                    message=text if unit == "bytes" else f"{text} {unit}",
                    needed=value,
                    available=ceiling.most,
                    short_by=short,
                    unit=unit,
                )
            )
    most, bubble = limits.bubble_fraction, candidate.metrics.bubble_fraction
    if most is not None and bubble is not None and (1 - most) * (1 - LIMIT_TOLERANCE) > 1 - bubble:
        text = f"bubble_fraction is {bubble:.6g}, the limit is {most:.6g}: short by {bubble - most:.6g}"
        findings.append(
            Finding(limit="limits.bubble_fraction", message=text, needed=bubble, available=most, short_by=bubble - most)
        )
    return findings


def _broken_demands(problem: Problem, candidate: Candidate, instance: Instance, stage: IntArray) -> list[Finding]:
    """List the constraints that the plan does not keep."""
    index, constraints = problem.model.layer_index(), problem.constraints
    findings = []

    def broken(limit: str, text: str, layer: str | None = None) -> None:
        findings.append(Finding(limit=limit, message=text, layer=layer))

    if problem.training.num_stages and len(candidate.stages) not in as_choices(problem.training.num_stages):
        asked = ", ".join(str(count) for count in as_choices(problem.training.num_stages))
        broken("training.num_stages", f"the plan has {len(candidate.stages)} stages, asked for: {asked}")
    for name, pinned in constraints.pins.items():
        if stage[index[name]] != pinned:
            broken("constraints.pins", f"{name!r} is on stage {stage[index[name]]}, pinned to {pinned}", name)
    for group in constraints.together:
        if len({int(stage[index[name]]) for name in group}) > 1:
            broken("constraints.together", f"{group[0]!r} and {len(group) - 1} more are not on one stage", group[0])
    for group in constraints.apart:
        if len({int(stage[index[name]]) for name in group}) < len(group):
            broken("constraints.apart", f"of {', '.join(group[:5])} some are on one stage", group[0])
    if constraints.cut_after is not None:
        allowed = set(constraints.cut_after)
        edges, names = instance.edges, list(index)
        for producer, consumers, ordered in zip(edges.producer, edges.consumers, edges.ordered, strict=True):
            if ordered and names[producer] not in allowed and (stage[consumers] != stage[producer]).any():
                broken("constraints.cut_after", f"a boundary lies after {names[producer]!r}", names[producer])
    for buffer in problem.model.buffers:
        if buffer.mutated and len({int(stage[index[name]]) for name in buffer.layers}) > 1:
            broken("model.buffers", f"the layers that write to {buffer.name!r} are on several stages", buffer.layers[0])
    return findings[:MOST_FINDINGS]


def _explain(findings: list[Finding]) -> Infeasibility | None:
    if not findings:
        return None
    return Infeasibility(
        message=f"the plan breaks {len(findings)} limit{'s' if len(findings) > 1 else ''}",
        findings=tuple(findings),
        limits_in_force=tuple(dict.fromkeys(finding.limit for finding in findings)),
    )
