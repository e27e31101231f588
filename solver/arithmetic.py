"""Limits that cannot be kept whatever the plan, shown by arithmetic and in numbers."""

import numpy as np

from partita.models.answer import Finding, Infeasibility
from partita.models.schedule_rules import microbatches_fault
from partita.solver.arrays import IntArray
from partita.solver.bounds import least_metric
from partita.solver.ceilings import ceilings
from partita.solver.costs import sum_by
from partita.solver.demands import torn, unmet
from partita.solver.instance import Instance
from partita.solver.measure import graph_of
from partita.solver.plans import Judge
from partita.solver.reasons import at_least, at_most, report
from partita.solver.targets import TIMES


def impossible(judge: Judge, stage_counts: list[int]) -> Infeasibility | None:
    """Tell why no plan with any of these numbers of stages can exist, where arithmetic shows it."""
    contradiction = torn(judge)
    if contradiction is not None:
        return contradiction
    usable = judge.possible_counts(stage_counts)
    if not usable:
        return _too_few_places(judge, stage_counts)
    instance = judge.instance
    moments = [graph_of(instance, count).pipeline.moments for count in {usable[0], usable[-1]}]
    state, kept = _least_bytes(instance)
    too_large = _layers_too_large(judge, state + min(each.least_alone for each in moments) * kept)
    if too_large is not None:
        return too_large
    together = min(each.least_together for each in moments)
    total = int((state + together * kept).sum()) + _shared_bytes(instance, together)
    return _too_large_in_all(judge, max(usable), total) or _too_slow(judge, usable) or unmet(judge, usable)


def _least_bytes(instance: Instance) -> tuple[IntArray, IntArray]:
    """Give for every layer the bytes that it needs anywhere, and those of every microbatch in flight, shape (L,)."""
    layers = instance.layers
    return layers.state, layers.activation


def _shared_bytes(instance: Instance, in_flight: int) -> int:
    """Give the bytes of named weights, buffers and shared activations if each is held once."""
    return int(instance.weights.total.sum() + instance.buffers.total.sum() + in_flight * instance.shared.bytes.sum())


def _layers_too_large(judge: Judge, least: IntArray) -> Infeasibility | None:
    """Find layers, or layers that must share a stage, that need more than the roomiest device has."""
    instance, groups = judge.instance, judge.groups
    kind = instance.roomiest
    capacity, reserve = int(judge.capacities[kind]), int(instance.topology.reserves[kind])
    workspace = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(workspace, groups.group_of, instance.layers.workspace)
    needed = sum_by(groups.group_of, least, len(groups)) + workspace + reserve
    for storages in (instance.weights, instance.buffers):
        for number, layers in enumerate(storages.layers):
            needed[np.unique(groups.group_of[layers])] += storages.total[number]
    names = [layer.name for layer in instance.problem.model.layers]
    device = next(each.slots[0][0] for each in instance.topology.locations if each.kind == kind)
    findings = []
    for group in np.flatnonzero(needed > capacity)[:10].tolist():
        members = groups.members[group].tolist()
        called = f"layer {names[members[0]]!r}"
        if len(members) > 1:
            called = f"{len(members)} layers that must share a stage (the first is {names[members[0]]!r})"
        short = int(needed[group]) - capacity
        reserved = f", {reserve} bytes of them reserved" if reserve else ""
        text = (
            f"{called}: needs {needed[group]} bytes{reserved}, {device} allows {capacity} bytes: short by {short} bytes"
        )
        findings.append(
            Finding(
                limit=memory_limit(instance),
                message=text,
                layer=names[members[0]],
                device=device,
                needed=int(needed[group]),
                available=capacity,
                short_by=short,
                unit="bytes",
            )
        )
    if not findings:
        return None
    change = _more_memory(instance, int(needed.max()))
    return report("a layer does not fit into any device", findings, change)


def _more_memory(instance: Instance, needed: int) -> str:
    """Say which limits are to be raised so that a device may hold so many bytes, its reserve included."""
    limit, kind = instance.problem.limits.peak_memory_bytes, instance.topology.kinds[instance.roomiest]
    memory = instance.problem.cluster.devices[kind].memory_bytes
    changes = []
    if limit is not None and limit < needed:
        changes.append(f"raise limits.peak_memory_bytes to at least {needed} bytes")
    if memory < needed:
        changes.append(f"take devices with memory_bytes of at least {needed} bytes ({kind} has {memory} bytes)")
    return " and ".join(changes)


def memory_limit(instance: Instance, kind: str | None = None) -> str:
    """Name the limit that memory runs into: the size of a kind of device (None: the roomiest) or the user's own."""
    kind = kind or instance.topology.kinds[instance.roomiest]
    limit = instance.problem.limits.peak_memory_bytes
    if limit is not None and limit < instance.problem.cluster.devices[kind].memory_bytes:
        return "limits.peak_memory_bytes"
    return f"memory_bytes of {kind}"


def _too_large_in_all(judge: Judge, most_stages: int, total: int) -> Infeasibility | None:
    instance, most_ranks = judge.instance, judge.instance.num_ranks(most_stages)
    topology, kind = instance.topology, instance.roomiest
    room = judge.capacities - topology.reserves
    each, reserve = int(room[kind]), int(topology.reserves[kind])
    slots = np.repeat(room[topology.kind_of], topology.slots)
    available = int(np.sort(slots)[::-1][:most_ranks].sum())
    if total <= available:
        return None
    called = ("stage" if instance.schedule.chunks == 1 else "rank") + ("" if most_ranks == 1 else "s")
    change = _more_memory(instance, -(-total // most_ranks) + reserve)
    by_limit = memory_limit(instance) == "limits.peak_memory_bytes" and "take devices" not in change
    change = _more_ranks(judge, -(-total // each) if each > 0 else 0, by_limit, change)
    sizes = (
        f"{most_ranks} {called} of {each} bytes" if len(topology.kinds) == 1 else f"the roomiest {most_ranks} {called}"
    )
    has = "has" if most_ranks == 1 else "have"
    short = total - available
    text = f"all layers together need {total} bytes, {sizes} {has} {available} bytes: short by {short} bytes"
    finding = Finding(
        limit=memory_limit(instance),
        message=text,
        needed=total,
        available=available,
        short_by=short,
        unit="bytes",
    )
    change += " (a bound by total memory)"
    return report("the model does not fit into the memory of all stages together", [finding], change)


def _more_ranks(judge: Judge, ranks: int, by_limit: bool, change: str) -> str:
    """Say how to have at least so many ranks, where that is better than another change or goes beside it.

    With the microbatches given, a schedule may run on few numbers of ranks only; it may be these that are too few.
    """
    instance, most = judge.instance, judge.instance.num_ranks(len(judge.groups))
    schedule, microbatches = instance.schedule, instance.microbatches
    if by_limit or not 0 < ranks <= most or schedule.orders is not None:
        return change
    runs = (each for each in range(ranks, most + 1) if microbatches_fault(schedule.kind, each, microbatches) is None)
    enough = next(runs, None)
    if enough is None:
        return (
            f"{change}; or more ranks with other microbatches: {microbatches_fault(schedule.kind, ranks, microbatches)}"
        )
    called = ("stage" if schedule.chunks == 1 else "rank") + ("" if enough == 1 else "s")
    return f"at least {enough * instance.width} devices of this size, in {enough} {called}"


def _too_slow(judge: Judge, usable: list[int]) -> Infeasibility | None:
    """Compare limits on times, devices and traffic with what arithmetic says is needed at least."""
    findings, changes = [], []
    for ceiling in ceilings(judge.instance):
        least = min(least_metric(judge, count, ceiling.metric) for count in usable)
        needed: float | int = least
        if ceiling.metric in TIMES:
            needed = judge.figures.seconds(least) - judge.figures.blur
        if needed > ceiling.most * (1 + 1e-6):
            short, unit = needed - ceiling.most, ceiling.unit
            by = "1 device" if unit == "devices" and short == 1 else f"{at_least(short)} {unit}"
            given = f"the limit is {ceiling.most:.6g} {unit}"
            if ceiling.is_floor:
                given = f"{ceiling.text} allow {ceiling.most:.6g} {unit}"
                changes.append(
                    f"lower limits.{ceiling.field} to at most {at_most(ceiling.given * ceiling.most / needed)}"
                )
            else:
                changes.append(f"raise limits.{ceiling.field} to at least {at_least(needed)}")
            findings.append(
                Finding(
                    limit=f"limits.{ceiling.field}",
                    message=f"any plan needs at least {at_least(needed)} {unit}, {given}: short by {by}",
                    needed=needed,
                    available=ceiling.most,
                    short_by=short,
                    unit=ceiling.unit,
                )
            )
    if not findings:
        return None
    timed = all(finding.unit == "s" for finding in findings)
    return report(f"a {'time ' if timed else ''}limit is below what any plan needs", findings, " and ".join(changes))


def _too_few_places(judge: Judge, stage_counts: list[int]) -> Infeasibility:
    groups, slots, least = len(judge.groups), judge.instance.topology.num_slots, min(stage_counts)
    ranks = judge.instance.num_ranks(least)
    reasons = []
    if least > groups:
        reasons.append(f"together, cut_after and shared buffers leave {groups} groups of layers to divide")
    if ranks > slots:
        reasons.append(f"the nodes have room for {slots} ranks, and {ranks} are needed")
    text = f"{least} stages are asked for, but " + " and ".join(reasons)
    most = min(groups, slots * judge.instance.schedule.chunks)
    needed, available = (least, groups) if least > groups else (ranks, slots)
    finding = Finding(limit="training.num_stages", message=text, needed=needed, available=available)
    return report(text, [finding], f"num_stages of at most {most}" if most < least else "more or larger nodes")


def beyond_arithmetic(judge: Judge, stage_counts: list[int]) -> Infeasibility:
    """Name the limits under which the search has proven that there is no plan."""
    instance = judge.instance
    problem = instance.problem
    stages = f"{min(stage_counts)}" if len(stage_counts) == 1 else f"{min(stage_counts)} to {max(stage_counts)}"
    limits = []
    for kind, capacity, reserve in zip(
        instance.topology.kinds, judge.capacities.tolist(), instance.topology.reserves.tolist(), strict=True
    ):
        reserved = f", {reserve} bytes of them reserved" if reserve else ""
        limits.append(f"{memory_limit(instance, kind)} ({capacity} bytes on each device){reserved}")
    limits = [*dict.fromkeys(limits), f"training.num_stages ({stages})"]
    limits += [f"limits.{ceiling.field} ({ceiling.text})" for ceiling in ceilings(instance)]
    if problem.limits.bubble_fraction is not None:
        limits.append(f"limits.bubble_fraction ({problem.limits.bubble_fraction:g})")
    for field in ("pins", "together", "apart"):
        if getattr(problem.constraints, field):
            limits.append(f"constraints.{field}")
    if problem.constraints.cut_after is not None:
        limits.append("constraints.cut_after")
    return Infeasibility(
        message="it is proven that no plan keeps all of these limits together", limits_in_force=tuple(limits)
    )
