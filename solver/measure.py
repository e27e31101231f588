"""The figures of one plan: timing by the event graph, memory, and what happens once per iteration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from partita.solver.arrays import IntArray, Times
from partita.solver.costs import (
    LayerPlan,
    Routes,
    StageMemory,
    Transfers,
    held,
    routes,
    stage_memory,
    sum_by,
    transfers,
)
from partita.solver.event_graph import EventGraph
from partita.solver.figures import Figures
from partita.solver.instance import Instance
from partita.solver.pipeline import arrange
from partita.solver.replicas import longest_reduction, synchronised_bytes


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Times of every stage and of what passes between stages, for one microbatch of one scenario.

    Attributes
    ----------
    passes
        Computing times, shape (K, S): forward, then backward; where the schedule splits some backward passes forward,
        input gradient and weight gradient.
    moved
        Transfers.
    busy
        Computing and, with ``blocking``, transfers, shape (K, S).
    """

    passes: Times
    moved: Transfers
    busy: Times

    @property
    def forward(self) -> Times:
        """Computing time of the forward pass, shape (S,)."""
        forward: Times = self.passes[0]
        return forward

    @property
    def backward(self) -> Times:
        """Computing time of the whole backward pass, shape (S,)."""
        whole: Times = self.passes[1:].sum(axis=0)
        return whole

    @property
    def row(self) -> Times:
        """The times in the columns of the event graph that are this scenario's."""
        return np.concatenate([self.busy.ravel(), self.moved.forward, self.moved.backward])


@dataclass(frozen=True, slots=True)
class Measures:
    """What a plan costs, in the unit of the figures it was measured with; sizes in bytes.

    Where there are several scenarios, times are their means, or those of the longest; sizes are the largest.
    ``times`` and ``memory`` are those of each. ``load`` is the busy time per microbatch of every rank, shape (R,);
    ``busy`` that of all ranks and microbatches. ``visits`` is how often its longest path takes every time of the event
    graph, shape (C,), where that was asked for. ``longest`` is the scenario that counts, None where all do.
    """

    makespan: float | int
    once: float | int
    bottleneck: float | int
    load: Times
    busy: float | int
    times: tuple[StageTimes, ...]
    memory: tuple[StageMemory, ...]
    inter_node_bytes: int
    num_devices: int
    longest: int | None = None
    visits: IntArray | None = None

    @property
    def iteration(self) -> float | int:
        """The makespan and what happens once per iteration."""
        return self.makespan + self.once

    @property
    def microbatches_per_second(self) -> float | None:
        """One in every bottleneck time; None where that is 0."""
        return _rate(1, self.bottleneck)

    @property
    def row(self) -> Times:
        """The times in the columns of the event graph, shape (C,)."""
        return np.concatenate([times.row for times in self.times])

    @property
    def needed(self) -> IntArray:
        """The bytes needed on each device of every rank, shape (R,)."""
        return np.asarray(np.max([memory.by_rank for memory in self.memory], axis=0))

    def per_second(self, of_an_iteration: float) -> float | None:
        """Give how much of something is done per second, of which an iteration does so much; None where it takes 0 s.

        Where the times are in ticks it is per tick.
        """
        return _rate(of_an_iteration, self.iteration)

    @property
    def peak_memory(self) -> int:
        """The largest total of any device, in bytes."""
        return int(self.needed.max())


def _rate(amount: float, time: float | int) -> float | None:
    """Divide an amount by a time; None where that is no finite number."""
    rate = amount / float(time) if time > 0 else inf
    return rate if isfinite(rate) else None


def skips_stages(instance: Instance) -> bool:
    """Tell whether tensors may delay stages other than the next one.

    A chain's tensors never skip a stage, relayed ones neither; with ``blocking`` the delay of the next stage covers
    all others.
    """
    return instance.routing != "relay" and instance.problem.model.tensors is not None


def graph_of(instance: Instance, num_stages: int) -> EventGraph:
    """Give the event graph of an instance for a number of stages, built once."""
    if num_stages not in instance.graphs:
        pipeline = arrange(instance.schedule, num_stages, instance.microbatches)
        instance.graphs[num_stages] = EventGraph(
            pipeline, skips_stages(instance), instance.blocking, len(instance.cases), instance.worst
        )
    return instance.graphs[num_stages]


def times_by_case(
    cases: Sequence[tuple[Instance, Figures]], plan: LayerPlan, graph: EventGraph
) -> tuple[StageTimes, ...]:
    """Price the stages and transfers of a plan in scenarios, which have figures of their own."""
    taken = routes(cases[0][0], plan.stage, graph.pairs)
    return tuple(_stage_times(case, own, plan, graph, taken) for case, own in cases)


def _stage_times(instance: Instance, figures: Figures, plan: LayerPlan, graph: EventGraph, taken: Routes) -> StageTimes:
    size = graph.num_stages
    kind = plan.kind(instance, graph.pipeline.rank_of)
    passes = np.stack(
        [sum_by(plan.stage, each, size) for each in figures.passes_by(graph.num_passes, kind, plan.option)]
    )
    moved = transfers(instance, figures, plan.stage, plan.location, graph, taken)
    busy = passes
    if instance.blocking:
        busy = passes.copy()
        busy[0] += moved.host_forward + _at_both_ends(moved.forward, graph.pairs, size)
        busy[1] += moved.host_backward + _at_both_ends(moved.backward, graph.pairs, size)
    return StageTimes(passes, moved, busy)


def _at_both_ends(times: Times, pairs: IntArray, size: int) -> Times:
    both: Times = sum_by(pairs[:, 0], times, size) + sum_by(pairs[:, 1], times, size)
    return both


def bottleneck(instance: Instance, load: Times, moved: Sequence[Transfers]) -> float | int:
    """Give the longest busy time per microbatch of a device or, overlapped, of a pair's transfers in one direction.

    ``moved`` are the transfers of the scenarios that count.
    """
    longest = load.max()
    if not instance.blocking and len(moved[0].forward):
        for each in ([of_case.forward for of_case in moved], [of_case.backward for of_case in moved]):
            longest = max(longest, np.sum(each, axis=0).max())
    value: float | int = longest.item()
    return value


def once_per_iteration(instance: Instance, figures: Figures, plan: LayerPlan, graph: EventGraph) -> float | int:
    """Give the time after the pipeline: all-reduce over replicas, tied weights, optimizer step.

    The ranks reduce at the same time, tied weights one after the other.
    """
    if not instance.trains:
        return 0
    total = figures.time(instance.factors.step_s)
    rank_of, location = graph.pipeline.rank_of, plan.location
    weight, holder = held(instance.weights, plan.stage, rank_of)
    if instance.replicas > 1:
        total += longest_reduction(instance, figures, plan, rank_of, weight, rank_of[holder])
    counts = np.bincount(weight, minlength=len(instance.weights.names))
    sizes = synchronised_bytes(instance, instance.weights.bytes, instance.weights.gradient_bytes)
    for tied in np.flatnonzero(counts > 1).tolist():
        places = location[rank_of[holder[weight == tied]]]
        first, second = np.triu_indices(len(places), k=1)
        ways = np.unique(instance.topology.class_of[places[first], places[second]])
        size = np.full(len(ways), sizes[tied])
        total += all_reduce(figures, size, len(places), ways).max().item()
    return total


def all_reduce(figures: Figures, sizes: IntArray, members: int, path_class: IntArray) -> Times:
    """Give the time of an all-reduce: latency + 2 (n - 1) / n * bytes / bandwidth.

    References
    ----------
    nccl-tests, doc/PERFORMANCE.md.
    """
    return figures.reduction(sizes, members, path_class) + figures.latency[path_class]


def measure(
    instance: Instance,
    figures: Figures,
    num_stages: int,
    plans: list[LayerPlan],
    with_paths: bool = False,
) -> list[Measures]:
    """Measure plans that all have this number of stages."""
    graph = graph_of(instance, num_stages)
    cases = list(zip(instance.cases, figures.cases, strict=True))
    batch = [times_by_case(cases, plan, graph) for plan in plans]
    rows = np.stack([np.concatenate([times.row for times in each]) for each in batch])
    visits: Sequence[IntArray | None] = [None] * len(plans)
    if with_paths:
        makespans, paths = graph.critical_paths(rows)
        visits = list(paths)
    else:
        makespans = graph.makespans_by_case(rows)
    found = []
    for plan, times, each, path in zip(plans, batch, makespans, visits, strict=True):
        memory = tuple(
            stage_memory(case, plan, own.moved, graph) for case, own in zip(instance.cases, times, strict=True)
        )
        found.append(replace(_measures(instance, figures, graph, plan, times, memory, each), visits=path))
    return found


def measure_cases(instance: Instance, figures: Sequence[Figures], plan: LayerPlan, whole: Measures) -> list[Measures]:
    """Measure a plan in every scenario by itself, as if there were no other.

    Parameters
    ----------
    instance
        A problem with several scenarios.
    figures
        Of every scenario by itself.
    plan, whole
        The plan, and what it costs over all scenarios: the bytes are in there.
    """
    graph = graph_of(instance.cases[0], plan.num_stages)
    own = list(zip(instance.cases, figures, strict=True))
    times = times_by_case(own, plan, graph)
    makespans = graph.makespans_by_case(np.stack([each.row for each in times]))
    return [
        _measures(case, of_case, graph, plan, (each,), (memory,), makespan)
        for (case, of_case), each, memory, makespan in zip(own, times, whole.memory, makespans, strict=True)
    ]


def _measures(
    instance: Instance,
    figures: Figures,
    graph: EventGraph,
    plan: LayerPlan,
    times: tuple[StageTimes, ...],
    memory: tuple[StageMemory, ...],
    makespans: Times,
) -> Measures:
    rank_of = graph.pipeline.rank_of
    node = instance.topology.node_of[plan.location][rank_of]
    apart = node[graph.pairs[:, 0]] != node[graph.pairs[:, 1]]
    crossing = max(int((each.moved.forward_bytes + each.moved.backward_bytes)[apart].sum()) for each in times)
    longest = int(makespans.argmax()) if graph.worst else None
    counted = times if longest is None else times[longest : longest + 1]
    busy = np.sum([each.busy.sum(axis=0) for each in counted], axis=0)
    load = sum_by(rank_of, busy, graph.pipeline.num_ranks)
    return Measures(
        makespan=graph.over_cases(makespans[None])[0].item(),
        once=once_per_iteration(instance, figures, plan, graph),
        bottleneck=bottleneck(instance, load, [each.moved for each in counted]),
        load=load,
        busy=load.sum().item() * instance.microbatches,
        times=times,
        memory=memory,
        inter_node_bytes=instance.microbatches * crossing,
        num_devices=len(plan.location) * instance.width,
        longest=longest,
    )
