"""A plan that the user brings, priced like a solved one, with the limits that it breaks."""

import numpy as np

from partita.models.answer import Answer, Candidate, Finding, Infeasibility
from partita.models.errors import Fault, InvalidInput, short_value
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.solver.arithmetic import memory_limit
from partita.solver.configuration import Tactics
from partita.solver.deadline import Deadline
from partita.solver.effort import affordable
from partita.solver.evaluation import Evaluator
from partita.solver.instance import Instance, build_instance, one
from partita.solver.plans import LIMIT_TOLERANCE
from partita.solver.session import Session
from partita.solver.support import refuse_unsupported
from partita.solver.topology import IntArray, Topology

MOST_FINDINGS = 20
"""Findings of one kind that are listed."""


def evaluate_plan(problem: Problem, given: GivenPlan) -> Answer:
    """Price a given plan.

    Parameters
    ----------
    problem, given
        The problem, and a plan for it; without devices its stages are placed in order.

    Returns
    -------
    Answer
        With the plan as its one candidate; ``infeasible`` with the broken limits where it breaks any.

    Raises
    ------
    NotSupportedYet, InvalidInput
        When the problem cannot be planned yet; when the plan names what does not exist, leaves out a layer, or puts a
        layer before one that it reads. Pointers start at ``/plan``.
    """
    deadline = Deadline.after(problem.search.time_limit_s)
    refuse_unsupported(problem)
    stage = _stages(problem, given)
    devices = _devices(problem, given)
    only = None if devices is None else frozenset(name.partition(":")[0] for each in devices for name in each)
    instance = build_instance(problem, only, int(stage.max()) + 1)
    _refuse_wrong_order(instance, stage)
    _, too_much = affordable(instance, [int(stage.max()) + 1], problem.search.time_limit_s)
    if too_much is not None:
        raise InvalidInput.at("/training/num_microbatches", too_much, None, "too_large")
    location = _locations(instance.topology, int(stage.max()) + 1, devices)
    evaluator = Evaluator(instance)
    candidate = evaluator.candidate(stage, location, 1, devices)
    findings = _broken_limits(instance, candidate) + _broken_demands(problem, candidate, instance, stage)
    return Session(problem, Tactics()).review(candidate, evaluator, _explain(findings), deadline)


def _stages(problem: Problem, given: GivenPlan) -> IntArray:
    index = problem.model.layer_index()
    stage = np.zeros(len(index), dtype=np.int64)
    for number, layers in enumerate(given.stage_layers(list(index), "/plan")):
        stage[[index[name] for name in layers]] = number
    return stage


def _devices(problem: Problem, given: GivenPlan) -> list[tuple[str, ...]] | None:
    """Give the devices of every stage, checked; None when no stage names any."""
    stages = given.stages or ()
    if not any(stage.devices for stage in stages):
        return None
    counts = {node.name: node.count for node in problem.cluster.expanded_nodes()}
    width = one(problem.training.tensor_parallel) * one(problem.training.data_parallel)
    faults: list[Fault] = []
    taken: dict[str, int] = {}
    for number, stage in enumerate(stages):
        place = f"/plan/stages/{number}/devices"
        if len(stage.devices) != width or len({name.partition(":")[0] for name in stage.devices}) != 1:
            detail = f"a stage runs on {width} device{'s' if width > 1 else ''} of one node"
            faults.append(Fault(place, detail, short_value(list(stage.devices)), "devices"))
        for position, name in enumerate(stage.devices):
            node, _, device = name.partition(":")
            known = node in counts and device.isascii() and device.isdigit() and str(int(device)) == device
            if not known or int(device) >= counts[node]:
                faults.append(
                    Fault(f"{place}/{position}", "there is no such device", short_value(name), "unknown_name")
                )
            elif taken.setdefault(name, number) != number:
                detail = f"the device already runs stage {taken[name]}"
                faults.append(Fault(f"{place}/{position}", detail, short_value(name), "repeated"))
    if faults:
        raise InvalidInput(faults[:MOST_FINDINGS])
    return [stage.devices for stage in stages]


def _refuse_wrong_order(instance: Instance, stage: IntArray) -> None:
    """Refuse a plan that puts a layer on an earlier stage than one that it reads."""
    names = [layer.name for layer in instance.problem.model.layers]
    edges = instance.edges
    for producer, consumers, ordered in zip(edges.producer, edges.consumers, edges.ordered, strict=True):
        early = consumers[stage[consumers] < stage[producer]]
        if ordered and len(early):
            detail = (
                f"{names[early[0]]!r} on stage {stage[early[0]]} reads from {names[producer]!r} on stage "
                f"{stage[producer]}; a layer cannot come before what it reads"
            )
            raise InvalidInput.at("/plan", detail, None, "order")


def _locations(topology: Topology, num_stages: int, devices: list[tuple[str, ...]] | None) -> IntArray:
    if devices is None:
        location = topology.in_order(num_stages)
        if location is None:
            detail = f"the plan has {num_stages} stages, but there is room for {topology.num_slots}"
            raise InvalidInput.at("/plan", detail, None, "too_many_stages")
        return location
    of_device: dict[str, int] = {}
    of_node: dict[str, int] = {}
    for index, location_ in enumerate(topology.locations):
        of_node.setdefault(location_.node, index)
        for slot in location_.slots:
            of_device.update(dict.fromkeys(slot, index))
    return np.array([of_device.get(each[0], of_node[each[0].partition(":")[0]]) for each in devices], dtype=np.int64)


def _broken_limits(instance: Instance, candidate: Candidate) -> list[Finding]:
    """List the stages that need too much memory, and the time limits that are exceeded."""
    findings = []
    limits = instance.problem.limits
    named = memory_limit(instance)
    for stage in candidate.stages:
        short = stage.memory.total_bytes - instance.capacity
        if short > 0:
            text = (
                f"stage {stage.index} on {stage.devices[0]} needs {stage.memory.total_bytes} bytes, "
                f"{instance.capacity} are allowed: short by {short}"
            )
            findings.append(
                Finding(
                    limit=named,
                    message=text,
                    stage=stage.index,
                    device=stage.devices[0],
                    needed=stage.memory.total_bytes,
                    available=instance.capacity,
                    short_by=short,
                    unit="bytes",
                )
            )
    for field in ("iteration_time_s", "bottleneck_time_s"):
        limit, value = getattr(limits, field), getattr(candidate.metrics, field)
        if limit is not None and value > limit * (1 + LIMIT_TOLERANCE):
            text = f"{field} is {value:.6g}, the limit is {limit:.6g}: short by {value - limit:.6g} s"
            short_s = value - limit
            findings.append(
                Finding(
                    limit=f"limits.{field}", message=text, needed=value, available=limit, short_by=short_s, unit="s"
                )
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
