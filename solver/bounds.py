"""Bounds on the metrics of all plans, by arithmetic."""

from bisect import bisect_right

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.costs import sum_by
from partita.solver.figures import MOST_TICKS
from partita.solver.kinds import fast_ranks
from partita.solver.plans import Judge
from partita.solver.replicas import least_reduction
from partita.solver.targets import Target

ROUNDING = 1e-12
"""Bounds computed in floating point are taken down by this fraction."""


def least_objective(judge: Judge, num_stages: int) -> int:
    """Bound the objective from below by arithmetic, in its own unit."""
    return judge.target.value(least_metrics(judge, num_stages, judge.target))


def least_metrics(judge: Judge, num_stages: int, target: Target) -> dict[str, int]:
    """Bound the metrics of a target from below by arithmetic."""
    return {part.metric: least_metric(judge, num_stages, part.metric) for part in target.parts}


def least_metric(judge: Judge, num_stages: int, metric: str) -> int:
    """Bound a metric from below by arithmetic, in ticks, bytes or devices.

    Times by the mean load, the largest group and one microbatch's way through all stages with the latencies on it, and
    by what follows the pipeline at least; memory by that of the mean rank and of the largest layer.
    """
    figures, groups, instance = judge.figures, judge.groups, judge.instance
    if metric == "num_devices":
        return instance.num_ranks(num_stages) * instance.width
    if metric == "inter_node_bytes":
        return _least_traffic(judge, num_stages)
    if metric == "peak_memory":
        state = instance.layers.state
        return max(-(-int(state.sum()) // instance.num_ranks(num_stages)), int(state.max()))
    work = (figures.forward + figures.backward).astype(np.int64)
    by_group = sum_by(groups.group_of, work, len(groups))
    total, schedule = int(work.sum()), instance.schedule
    ranks = fast_ranks(instance.topology, figures, instance.num_ranks(num_stages))
    shared = -(-total // int(ranks)) if ranks.is_integer() else int(total / ranks * (1 - ROUNDING))
    load = max(shared, int(by_group.max()))
    if groups.total_order and schedule.chunks == 1 and schedule.orders is None:
        load = _least_interval(by_group, num_stages, load)
    if metric == "bottleneck_time":
        return load
    microbatches = instance.microbatches
    once = figures.step(instance)
    once += least_reduction(instance, figures, instance.num_ranks(num_stages))
    sent = _least_latency(judge, num_stages)
    if schedule.chunks > 1 or schedule.splits:
        # A weight gradient can wait until its rank is idle anyway, so that a microbatch's way does not count it.
        without = total - int(figures.weight_gradient.sum()) * schedule.splits
        return once + max(without + sent, microbatches * load)
    # A stage's m passes come after one pass of all stages before it: T >= sum of earlier loads + m * load. So every
    # stage can take at most 1 / m of what the stages before it leave of T, and all together must take everything.
    shared = int(total / (1 - (1 - 1 / microbatches) ** num_stages) * (1 - ROUNDING))
    return once + max(total + sent, microbatches * load, shared, _round_the_heaviest(judge, num_stages, total, load))


def _least_latency(judge: Judge, num_stages: int) -> int:
    """Bound the latencies on one microbatch's way through all stages and, where training, back, in ticks.

    Neighbors always exchange a message. Ranks that do not all fit on one node cross between nodes at least as often as
    they need further ones. 0 where ranks run several stages, between which nothing is sent, where a transfer is part of
    the passes or goes by the host, and where there is no room anyway.
    """
    instance, topology = judge.instance, judge.instance.topology
    num_ranks, hops = instance.num_ranks(num_stages), num_stages - 1
    if num_ranks < num_stages or instance.blocking or instance.routing == "host":
        return 0
    room = np.cumsum(np.sort(np.bincount(topology.node_of, weights=topology.slots))[::-1])
    if not hops or num_ranks > room[-1]:
        return 0
    cases = [case.latency.astype(np.int64) for case in judge.figures.cases]
    latency = np.min(cases, axis=0) if instance.worst else np.sum(cases, axis=0)
    crossings = int(np.searchsorted(room, num_ranks))
    between = latency[topology.between_classes].min(initial=MOST_TICKS)
    anywhere = latency[topology.inside_classes].min(initial=between)
    return int(crossings * between + (hops - crossings) * anywhere) * (2 if instance.trains else 1)


def _round_the_heaviest(judge: Judge, num_stages: int, total: int, load: int) -> int:
    """Bound the makespan by paths through the heaviest stage, whose load is M >= ``load``.

    1F1B, more microbatches m than stages S: one microbatch goes down and back once before and once after stage s
    alternates. With S - 1 - s more forward passes than backward ones before that, T >= loads before s + 2 * loads after
    s + (m - (S - 1 - s)) * M, and as no stage has more than M, T >= 2 * total + (m - S - 1) * M. All forward passes
    first, or alone: T >= total + (m - 1) * M.
    """
    schedule, microbatches = judge.instance.schedule, judge.instance.microbatches
    if schedule.kind in ("gpipe", "forward_only"):
        return total + (microbatches - 1) * load
    if schedule.kind == "1f1b" and microbatches > num_stages:
        return 2 * total + (microbatches - num_stages - 1) * load
    return 0


def _least_interval(work: IntArray, parts: int, least: int) -> int:
    """Give the smallest maximum of any division of work into so many intervals; it is at least ``least``."""
    ends = np.cumsum(work).tolist()
    low, high = least, least + int(work.max())
    while low < high:
        middle = (low + high) // 2
        reached, used = 0, 0
        while reached < ends[-1] and used < parts:
            place = bisect_right(ends, reached + middle)
            reached, used = ends[place - 1] if place else 0, used + 1
        low, high = (low, middle) if reached == ends[-1] else (middle + 1, high)
    return low


def _least_traffic(judge: Judge, num_stages: int) -> int:
    """Bound the bytes between nodes: as many nodes as the ranks need change at least once less, at some boundary each.

    A boundary carries no less than the cheapest place in the order of the groups, where every stage is an interval and
    tensors are relayed; else nothing is known.
    """
    instance, groups = judge.instance, judge.groups
    relayed = instance.routing == "relay" or instance.problem.model.tensors is None
    changes = -(-instance.num_ranks(num_stages) // instance.topology.most_on_a_node) - 1
    if not (groups.total_order and relayed and changes > 0):
        return 0
    edges, across = instance.edges, np.zeros(len(groups) + 1, dtype=np.int64)
    for producer, consumers, size in zip(
        edges.producer, edges.consumers, edges.forward_bytes + edges.backward_bytes, strict=True
    ):
        ends = groups.group_of[np.append(consumers, producer)]
        across[int(ends.min()) + 1] += size
        across[int(ends.max()) + 1] -= size
    between = np.cumsum(across)[1 : len(groups)]
    return changes * instance.microbatches * int(between.min(initial=int(between[0]) if len(between) else 0))
