"""The figures of one plan: timing by the event graph, memory, and what happens once per iteration."""

from dataclasses import dataclass

import numpy as np

from partita.solver.costs import StageMemory, Transfers, held, stage_memory, sum_by, transfers
from partita.solver.event_graph import EventGraph, Weights, event_graph
from partita.solver.figures import Figures, Times
from partita.solver.instance import Instance
from partita.solver.topology import IntArray


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Times of every stage and of what passes between them, for one microbatch.

    Attributes
    ----------
    forward, backward
        Computing times, shape (S,).
    moved
        Transfers.
    forward_busy, backward_busy
        Computing and, with ``blocking``, transfers, shape (S,).
    """

    forward: Times
    backward: Times
    moved: Transfers
    forward_busy: Times
    backward_busy: Times


@dataclass(frozen=True, slots=True)
class Measures:
    """What a plan costs, in the unit of the figures it was measured with; sizes in bytes."""

    makespan: float | int
    once: float | int
    bottleneck: float | int
    busy: float | int
    times: StageTimes
    memory: StageMemory
    inter_node_bytes: int

    @property
    def iteration(self) -> float | int:
        """The makespan and what happens once per iteration."""
        return self.makespan + self.once

    @property
    def peak_memory(self) -> int:
        """The largest total of any device, in bytes."""
        return int(self.memory.total.max())


def skips_stages(instance: Instance) -> bool:
    """Tell whether tensors may delay stages other than the next one.

    A chain's tensors never skip a stage, relayed ones neither; with ``blocking`` the delay of the next stage covers
    all others.
    """
    return instance.routing != "relay" and instance.problem.model.tensors is not None


def graph_of(instance: Instance, num_stages: int) -> EventGraph:
    """Give the event graph of an instance for a number of stages."""
    kind = instance.problem.training.schedule.kind
    return event_graph(kind, num_stages, instance.microbatches, skips_stages(instance))


def stage_times(
    instance: Instance, figures: Figures, stage: IntArray, location: IntArray, pairs: IntArray
) -> StageTimes:
    """Price the stages and transfers of a plan."""
    size = len(location)
    forward = sum_by(stage, figures.forward, size)
    backward = sum_by(stage, figures.backward, size)
    moved = transfers(instance, figures, stage, location, pairs)
    forward_busy, backward_busy = forward, backward
    if instance.blocking:
        forward_busy = forward + moved.host_forward + _at_both_ends(moved.forward, pairs, size)
        backward_busy = backward + moved.host_backward + _at_both_ends(moved.backward, pairs, size)
    return StageTimes(forward, backward, moved, forward_busy, backward_busy)


def _at_both_ends(times: Times, pairs: IntArray, size: int) -> Times:
    both: Times = sum_by(pairs[:, 0], times, size) + sum_by(pairs[:, 1], times, size)
    return both


def graph_weights(instance: Instance, batch: list[StageTimes]) -> Weights:
    """Give the weights of the event graph for plans of equally many stages.

    An overlapped transfer delays the receiver. A blocking one is part of both actions, and the receiver's may start
    when the sender starts to send: the delay is negative.
    """
    sign = -1 if instance.blocking else 1
    return Weights(
        np.stack([each.forward_busy for each in batch]),
        np.stack([each.backward_busy for each in batch]),
        sign * np.stack([each.moved.forward for each in batch]),
        sign * np.stack([each.moved.backward for each in batch]),
    )


def bottleneck(instance: Instance, times: StageTimes) -> float | int:
    """Give the longest busy time per microbatch of a device or, overlapped, of a pair's transfers in one direction."""
    longest = (times.forward_busy + times.backward_busy).max()
    if not instance.blocking and len(times.moved.forward):
        longest = max(longest, times.moved.forward.max(), times.moved.backward.max())
    value: float | int = longest.item()
    return value


def synchronised_bytes(instance: Instance, sizes: IntArray, gradients: IntArray) -> IntArray:
    """Give the bytes of gradient that belong to weights: in the weights' own width where gradients are not kept."""
    return gradients if instance.factors.gradient_bytes_per_weight_byte > 0 else sizes


def once_per_iteration(instance: Instance, figures: Figures, stage: IntArray, location: IntArray) -> float | int:
    """Give the time after the pipeline: all-reduce over replicas, tied weights, optimizer step.

    The stages reduce at the same time, tied weights one after the other.
    """
    if not instance.trains:
        return 0
    total = figures.time(instance.factors.step_s)
    weight, holder = held(instance.weights, stage)
    if instance.replicas > 1:
        total += _over_replicas(instance, figures, stage, location, weight, holder)
    counts = np.bincount(weight, minlength=len(instance.weights.names))
    sizes = synchronised_bytes(instance, instance.weights.bytes, instance.weights.gradient_bytes)
    for tied in np.flatnonzero(counts > 1).tolist():
        places = location[holder[weight == tied]]
        first, second = np.triu_indices(len(places), k=1)
        ways = np.unique(instance.topology.class_of[places[first], places[second]])
        size = np.full(len(ways), sizes[tied])
        total += all_reduce(figures, size, len(places), ways).max().item()
    return total


def _over_replicas(
    instance: Instance, figures: Figures, stage: IntArray, location: IntArray, weight: IntArray, holder: IntArray
) -> float | int:
    """Give the longest all-reduce of a stage's gradients over its replicas, which share a node."""
    own = instance.topology.class_of[location, location]
    layers = synchronised_bytes(instance, instance.layers.weight, instance.layers.gradient)
    weights = synchronised_bytes(instance, instance.weights.bytes, instance.weights.gradient_bytes)
    private = figures.reduction(layers, instance.replicas, own[stage])
    named = figures.reduction(weights[weight], instance.replicas, own[holder])
    size = len(location)
    longest: float | int = (
        (sum_by(stage, private, size) + sum_by(holder, named, size) + figures.latency[own]).max().item()
    )
    return longest


def all_reduce(figures: Figures, sizes: IntArray, members: int, path_class: IntArray) -> Times:
    """Give the time of an all-reduce: latency + 2 (n - 1) / n * bytes / bandwidth.

    References
    ----------
    nccl-tests, doc/PERFORMANCE.md.
    """
    return figures.reduction(sizes, members, path_class) + figures.latency[path_class]


def measure(instance: Instance, figures: Figures, plans: list[tuple[IntArray, IntArray]]) -> list[Measures]:
    """Measure plans (stage of every layer, location of every stage) that all have the same number of stages."""
    graph = graph_of(instance, len(plans[0][1]))
    batch = [stage_times(instance, figures, stage, location, graph.pairs) for stage, location in plans]
    makespans = graph.makespans(graph_weights(instance, batch)).tolist()
    return [
        _measures(instance, figures, graph, plan, times, makespan)
        for plan, times, makespan in zip(plans, batch, makespans, strict=True)
    ]


def _measures(
    instance: Instance,
    figures: Figures,
    graph: EventGraph,
    plan: tuple[IntArray, IntArray],
    times: StageTimes,
    makespan: float,
) -> Measures:
    stage, location = plan
    memory = stage_memory(instance, stage, times.moved, graph.pairs, graph.in_flight)
    node = instance.topology.node_of[location]
    apart = node[graph.pairs[:, 0]] != node[graph.pairs[:, 1]]
    crossing = int((times.moved.forward_bytes + times.moved.backward_bytes)[apart].sum())
    busy = (times.forward_busy + times.backward_busy).sum().item() * instance.microbatches
    return Measures(
        makespan=makespan,
        once=once_per_iteration(instance, figures, stage, location),
        bottleneck=bottleneck(instance, times),
        busy=busy,
        times=times,
        memory=memory,
        inter_node_bytes=instance.microbatches * crossing,
    )
