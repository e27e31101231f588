"""From a problem with degrees for each stage to its answer."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from partita import __version__
from partita.models.answer import Answer, Candidate, Effort, Finding, Infeasibility, Status
from partita.models.digest import problem_digest
from partita.models.problem import Problem
from partita.solver.checks import InternalError
from partita.solver.deadline import Deadline, TimeOver
from partita.solver.plans import LIMIT_TOLERANCE
from partita.solver.steady.cuts import Cuts, find_cuts
from partita.solver.steady.evaluation import StagePlan, SteadyEvaluator
from partita.solver.steady.menu import Menu
from partita.solver.steady.search import Found, search
from partita.solver.steady.stages import price_stages

FEW_CUTS = 60
"""Cuts along which a plan is sought first, where there are more."""
NOTHING_FOUND = Found(None, (), inf, 0.0, 0)
ACCURACY = 1e-9
"""The evaluator and the search add the same times in another order; they may differ by this fraction."""


def plan_steady_state(problem: Problem, deadline: Deadline) -> Answer:
    """Find the best plan whose stages have degrees of their own.

    Parameters
    ----------
    problem
        A supported problem with ``per_stage_degrees``.
    deadline
        When the search must have ended.

    Raises
    ------
    InternalError
        When the evaluator disagrees with the search.
    """
    evaluator = SteadyEvaluator(problem)
    menu = evaluator.menu
    cuts = find_cuts(menu)
    found, used, size = _search(menu, cuts, problem, deadline)
    candidates, value = _candidates(evaluator, found, used)
    bound = found.bound if cuts.complete else 0.0
    bound = max(bound, _least(menu)) if bound < inf else bound
    status, proven, gap = _proof(value, bound, cuts.complete)
    reason = _infeasible(menu, problem) if status == "infeasible" else None
    effort = Effort(
        solver="dynamic program", wall_s=deadline.elapsed, iterations=found.rounds, cuts=len(cuts), variables=size
    )
    return Answer(
        status=status,
        objective=problem.objective,
        best_bound=proven,
        relative_gap=gap,
        candidates=tuple(each.model_copy(update={"best_bound": proven}) for each in candidates),
        infeasibility=reason,
        assumptions=tuple(_assumptions(problem)),
        warnings=(*problem.warnings(), *_notes(problem, cuts)),
        solver=effort,
        problem_digest=problem_digest(problem),
        version=__version__,
    )


def _search(menu: Menu, cuts: Cuts, problem: Problem, deadline: Deadline) -> tuple[Found, Cuts, int]:
    """Search among all stages that the cuts make possible; give also the cuts of the plan, and how much that took.

    Where there are many cuts, a plan is sought along few of them first, which bounds all others.
    """
    given, gap = problem.limits.bottleneck_time_s, problem.search.relative_gap
    limit = inf if given is None else given * (1 + LIMIT_TOLERANCE)
    best, used, size = NOTHING_FOUND, cuts, 0
    try:
        if len(cuts) > FEW_CUTS:
            few = cuts.thinned(FEW_CUTS)
            found = search(price_stages(menu, few, deadline), limit, gap, deadline)
            if found.way is not None:
                best, used = replace(found, bound=0.0), few
        stages = price_stages(menu, cuts, deadline)
        size = stages.lower.size
        found = search(stages, min(limit, best.value), gap, deadline)
        if found.way is not None:
            best, used = found, cuts
        else:
            best = replace(best, bound=found.bound, rounds=found.rounds)
    except TimeOver:
        pass
    return best, used, size


def _candidates(evaluator: SteadyEvaluator, found: Found, cuts: Cuts) -> tuple[tuple[Candidate, ...], float | None]:
    """Have the evaluator price the best plan; give it and its bottleneck."""
    if found.way is None:
        return (), None
    plan = []
    for choice, ways in zip(found.way, found.recompute, strict=True):
        inside = cuts.before[cuts.last[choice.stage]] & ~cuts.before[cuts.first[choice.stage]]
        layers = tuple(np.flatnonzero(inside).tolist())
        plan.append(StagePlan(layers, ways, evaluator.menu.tensor[choice.row], choice.replicas))
    candidate = evaluator.candidate(plan)
    value = candidate.metrics.bottleneck_time_s
    capacity = evaluator.menu.capacity
    if abs(value - found.value) > ACCURACY * value or candidate.metrics.peak_memory_bytes > capacity:
        raise InternalError(f"the search counts {found.value!r}, the evaluator {value!r}")
    return (candidate,), value


def _proof(value: float | None, bound: float, complete: bool) -> tuple[Status, float | None, float | None]:
    """Judge status, bound and gap from incumbent and bound."""
    if value is None:
        if bound == inf and complete:
            return "infeasible", None, None
        return "no_solution", bound if 0 < bound < inf else None, None
    if bound >= value * (1 - ACCURACY):
        return "optimal", value, 0.0
    return "feasible", bound or None, (value - bound) / value


def _least(menu: Menu) -> float:
    """Give a time that no plan undercuts: all devices busy with nothing but the fastest ways of all layers."""
    work = np.full(menu.instance.num_layers, np.inf)
    for t, degree in zip(menu.tensor, menu.degrees, strict=True):
        work = np.minimum(work, t * np.where(degree.has, degree.time, np.inf).min(axis=0))
    return float(work.sum()) / menu.devices * (1 - ACCURACY)


def _infeasible(menu: Menu, problem: Problem) -> Infeasibility:
    """Say which layers fit nowhere, or else which limits leave no plan."""
    findings = _too_large(menu)
    kind = problem.cluster.nodes[0].device
    limits = [f"memory_bytes of {kind} ({menu.capacity} bytes on each device)", "training.data_parallel"]
    if problem.limits.peak_memory_bytes is not None:
        limits.append("limits.peak_memory_bytes")
    if problem.limits.bottleneck_time_s is not None:
        limits.append(f"limits.bottleneck_time_s ({problem.limits.bottleneck_time_s:g} s)")
    if findings:
        most = max(int(finding.needed or 0) for finding in findings)
        return Infeasibility(
            message="a layer does not fit into any device, at any degree",
            findings=tuple(findings),
            limits_in_force=tuple(limits[:1]),
            smallest_change=f"devices and limits with memory of at least {most} bytes",
        )
    text = "it is proven that no stages with any of these degrees keep all of these limits together"
    return Infeasibility(message=text, limits_in_force=tuple([*limits, f"{menu.devices} devices"]))


def _too_large(menu: Menu) -> list[Finding]:
    """List layers that need more than a device has, alone, with one microbatch in flight."""
    names = [layer.name for layer in menu.problem.model.layers]
    reserve, capacity = menu.device.reserve_bytes, menu.capacity
    least = np.full(len(names), np.iinfo(np.int64).max)
    for degree in menu.degrees:
        alone = np.where(degree.has, degree.fixed + degree.activation, least).min(axis=0)
        least = np.minimum(least, alone + degree.workspace + reserve)
    return [
        Finding(
            limit="memory_bytes",
            message=f"layer {names[layer]!r}: needs {least[layer]} bytes, {capacity} bytes are allowed: short by "
            f"{least[layer] - capacity} bytes",
            layer=names[layer],
            needed=int(least[layer]),
            available=capacity,
            short_by=int(least[layer]) - capacity,
            unit="bytes",
        )
        for layer in np.flatnonzero(least > capacity)[:10].tolist()
    ]


def _assumptions(problem: Problem) -> Sequence[str]:
    """List what is taken to hold."""
    training = problem.training
    found = [
        "steady state: iteration_time_s is num_microbatches times bottleneck_time_s, without filling and draining the "
        "pipeline: a lower bound",
        "the replicas of a stage take turns: each runs one of data_parallel microbatches; num_microbatches are those "
        "of the whole batch",
        f"gradients are exchanged once per {training.gradient_exchange_after}; its share of every microbatch counts as "
        "busy time",
        "a stage keeps activations of ceil(replicas of this and all later stages / its own) microbatches",
    ]
    if training.communication == "blocking":
        found.append("a transfer occupies both stages, each by its share among the stage's replicas")
    else:
        found.append("a transfer occupies neither stage; the replicas of either end share it")
    if training.runtime == "none":
        found.append("no receive buffers: what arrives counts in activation_bytes")
    if training.sequence_length == 1:
        found.append("sequence_length is 1: tokens_per_second counts samples")
    return found


def _notes(problem: Problem, cuts: Cuts) -> Sequence[str]:
    """Say what was left out."""
    found = []
    if problem.search.candidates > 1:
        found.append("with degrees chosen for each stage only the best plan is given")
    if not cuts.complete:
        found.append(
            f"the model can be cut in too many ways: only {len(cuts)} cuts along one order of its layers were looked "
            "at, so that the bound is one by arithmetic; join layers with constraints.together"
        )
    return found
