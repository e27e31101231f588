"""Limits that cannot be kept whatever the plan, shown by arithmetic and in numbers."""

from math import ceil

import numpy as np

from partita.models.answer import Finding, Infeasibility
from partita.solver.costs import sum_by
from partita.solver.instance import Instance, one
from partita.solver.measure import graph_of
from partita.solver.plans import Judge
from partita.solver.ranking import least_objective
from partita.solver.topology import IntArray


def impossible(judge: Judge, stage_counts: list[int]) -> Infeasibility | None:
    """Tell why no plan with any of these numbers of stages can exist, where arithmetic shows it."""
    if judge.torn:
        return _torn(judge)
    usable = judge.possible_counts(stage_counts)
    if not usable:
        return _too_few_places(judge, stage_counts)
    instance = judge.instance
    least_in_flight = min(int(graph_of(instance, count).in_flight.min()) for count in {usable[0], usable[-1]})
    state, kept = _least_bytes(instance)
    findings = _layers_too_large(judge, state + least_in_flight * kept)
    if findings:
        return _report("a layer does not fit into any device", findings, None)
    total = int((state + least_in_flight * kept).sum()) + _shared_bytes(instance, least_in_flight)
    return (
        _too_large_in_all(judge, max(usable), total)
        or _too_slow(judge, usable)
        or _pins_against_order(judge)
        or _pins_out_of_reach(judge, usable)
    )


def _least_bytes(instance: Instance) -> tuple[IntArray, IntArray]:
    """Give for every layer the bytes that it needs anywhere, and those of every microbatch in flight, shape (L,)."""
    layers = instance.layers
    return layers.weight + layers.gradient + layers.optimizer, layers.activation


def _shared_bytes(instance: Instance, in_flight: int) -> int:
    """Give the bytes of named weights, buffers and shared activations if each is held once."""
    weights = instance.weights
    once = weights.bytes.sum() + weights.gradient_bytes.sum() + weights.optimizer_bytes.sum()
    return int(once + instance.buffers.bytes.sum() + in_flight * instance.shared.bytes.sum())


def _layers_too_large(judge: Judge, least: IntArray) -> list[Finding]:
    """Find layers, or layers that must share a stage, that need more than a device has."""
    instance, groups = judge.instance, judge.groups
    reserve, workspace = instance.topology.device.reserve_bytes, np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(workspace, groups.group_of, instance.layers.workspace)
    needed = sum_by(groups.group_of, least, len(groups)) + workspace + reserve
    for storages in (instance.weights, instance.buffers):
        total = storages.bytes + storages.gradient_bytes + storages.optimizer_bytes
        for number, layers in enumerate(storages.layers):
            needed[np.unique(groups.group_of[layers])] += total[number]
    names = [layer.name for layer in instance.problem.model.layers]
    device = instance.topology.locations[0].slots[0][0]
    findings = []
    for group in np.flatnonzero(needed > judge.capacity)[:10].tolist():
        members = groups.members[group].tolist()
        called = f"layer {names[members[0]]!r}"
        if len(members) > 1:
            called = f"{len(members)} layers that must share a stage (the first is {names[members[0]]!r})"
        short = int(needed[group]) - judge.capacity
        reserved = f", {reserve} of them reserved" if reserve else ""
        text = f"{called}: needs {needed[group]} bytes{reserved}, {device} allows {judge.capacity}: short by {short}"
        findings.append(
            Finding(
                limit=memory_limit(instance),
                message=text,
                layer=names[members[0]],
                device=device,
                needed=int(needed[group]),
                available=judge.capacity,
                short_by=short,
                unit="bytes",
            )
        )
    return findings


def memory_limit(instance: Instance) -> str:
    """Name the limit that memory runs into: the device's size or the user's own."""
    if instance.capacity < instance.topology.device.memory_bytes:
        return "limits.peak_memory_bytes"
    return f"memory_bytes of {instance.problem.cluster.nodes[0].device}"


def _too_large_in_all(judge: Judge, most_stages: int, total: int) -> Infeasibility | None:
    instance = judge.instance
    each = judge.capacity - instance.topology.device.reserve_bytes
    available = most_stages * each
    if total <= available:
        return None
    training = instance.problem.training
    width = one(training.tensor_parallel) * one(training.data_parallel)
    stages = ceil(total / each) if each > 0 else None
    change = None
    if stages is not None:
        change = f"at least {stages * width} devices of this size, in {stages} stages (a bound by total memory)"
    text = (
        f"all layers together need {total} bytes, {most_stages} stages of {each} bytes have {available}: "
        f"short by {total - available}"
    )
    finding = Finding(
        limit=memory_limit(instance),
        message=text,
        needed=total,
        available=available,
        short_by=total - available,
        unit="bytes",
    )
    return _report("the model does not fit into the memory of all stages together", [finding], change)


def _too_slow(judge: Judge, usable: list[int]) -> Infeasibility | None:
    """Compare time limits with what arithmetic says is needed at least."""
    limits = judge.instance.problem.limits
    findings = []
    for metric, field in (("iteration_time", "iteration_time_s"), ("bottleneck_time", "bottleneck_time_s")):
        limit = getattr(limits, field)
        if limit is None:
            continue
        least = min(least_objective(judge, count, metric) for count in usable)
        needed = judge.figures.seconds(least)
        if needed > limit * (1 + 1e-6):
            text = (
                f"any plan needs at least {needed:.6g} s, the limit is {limit:.6g} s: short by {needed - limit:.6g} s"
            )
            findings.append(
                Finding(
                    limit=f"limits.{field}",
                    message=text,
                    needed=needed,
                    available=limit,
                    short_by=needed - limit,
                    unit="s",
                )
            )
    change = f"raise {findings[0].limit} to at least {findings[0].needed:.6g}" if findings else None
    return _report("a time limit is below what any plan needs", findings, change) if findings else None


def _too_few_places(judge: Judge, stage_counts: list[int]) -> Infeasibility:
    groups, slots = len(judge.groups), judge.instance.topology.num_slots
    least = min(stage_counts)
    reasons = []
    if least > groups:
        reasons.append(f"together, cut_after and shared buffers leave {groups} groups of layers to divide")
    if least > slots:
        reasons.append(f"the nodes have room for {slots} stages")
    text = f"{least} stages are asked for, but " + " and ".join(reasons)
    finding = Finding(limit="training.num_stages", message=text, needed=least, available=min(groups, slots))
    return _report(text, [finding], f"num_stages of at most {min(groups, slots)}")


def _pins_against_order(judge: Judge) -> Infeasibility | None:
    """Find a layer that is pinned behind one that must not come before it."""
    reached = dict(judge.pins)  # the latest stage that a group can have been pushed to by those before it
    origin = {group: group for group in judge.pins}
    for group, followers in enumerate(judge.groups.successors):
        if group not in reached:
            continue
        for other in followers:
            if other in judge.pins and judge.pins[other] < reached[group]:
                first, second = judge.pinned_layer[origin[group]], judge.pinned_layer[other]
                text = (
                    f"{first!r} is pinned to stage {reached[group]} but comes before {second!r}, "
                    f"which is pinned to stage {judge.pins[other]}"
                )
                finding = Finding(limit="constraints.pins", message=text, layer=second, stage=judge.pins[other])
                return _report(
                    "pins contradict the order of the layers", [finding], "exchange or remove one of the pins"
                )
            if reached[group] > reached.get(other, -1):
                reached[other], origin[other] = reached[group], origin[group]
    return None


def _torn(judge: Judge) -> Infeasibility:
    """Report layers that must share a stage but are pinned to different ones."""
    pins = judge.instance.problem.constraints.pins
    findings = []
    for first, second in judge.torn[:10]:
        text = (
            f"{first!r} and {second!r} must share a stage (by together, cut_after or what they write to), but are "
            f"pinned to stages {pins[first]} and {pins[second]}"
        )
        findings.append(Finding(limit="constraints.pins", message=text, layer=second, stage=pins[second]))
    return _report("layers that must share a stage are pinned to different ones", findings, "pin them to one stage")


def _pins_out_of_reach(judge: Judge, usable: list[int]) -> Infeasibility | None:
    """Find a layer of a chain that is pinned where too few layers are left before or behind it."""
    if not judge.groups.total_order:
        return None
    size = len(judge.groups)
    for group, stage in judge.pins.items():
        ranges = [range(max(0, count - size + group), min(group, count - 1) + 1) for count in usable]
        allowed = sorted({each for stages in ranges for each in stages})
        if stage not in allowed:
            where = f"on stage {allowed[0]}" if len(allowed) == 1 else f"on one of the stages {listed(allowed)}"
            name = judge.pinned_layer[group]
            text = f"{name!r} is pinned to stage {stage}, but as every stage holds a layer it must be {where}"
            finding = Finding(limit="constraints.pins", message=text, layer=name, stage=stage)
            return _report(text, [finding], f"pin {name!r} {where}")
    return None


def listed(numbers: list[int]) -> str:
    """Write ascending numbers, runs of three or more as "first to last"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(parts)


def _report(message: str, findings: list[Finding], change: str | None) -> Infeasibility:
    limits = tuple(dict.fromkeys(finding.limit for finding in findings))
    return Infeasibility(message=message, findings=tuple(findings), limits_in_force=limits, smallest_change=change)


def beyond_arithmetic(judge: Judge, stage_counts: list[int]) -> Infeasibility:
    """Name the limits under which the search has proven that there is no plan."""
    instance = judge.instance
    problem = instance.problem
    memory = f"{memory_limit(instance)} ({judge.capacity} bytes on each device)"
    reserve = instance.topology.device.reserve_bytes
    stages = f"{min(stage_counts)}" if len(stage_counts) == 1 else f"{min(stage_counts)} to {max(stage_counts)}"
    limits = [memory + (f", {reserve} of them reserved" if reserve else ""), f"training.num_stages ({stages})"]
    for field in ("iteration_time_s", "bottleneck_time_s"):
        value = getattr(problem.limits, field)
        if value is not None:
            limits.append(f"limits.{field} ({value:g} s)")
    for field in ("pins", "together", "apart"):
        if getattr(problem.constraints, field):
            limits.append(f"constraints.{field}")
    if problem.constraints.cut_after is not None:
        limits.append("constraints.cut_after")
    return Infeasibility(
        message="it is proven that no plan keeps all of these limits together", limits_in_force=tuple(limits)
    )
