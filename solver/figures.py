"""The times of an instance, as the user's seconds or as whole ticks.

The solver counts in integer ticks so that every backend solves the same numbers exactly; what is reported is computed
from seconds. Both go through the same code: ``Figures`` is the only thing that differs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import NamedTuple

import numpy as np

from partita.solver.arrays import FloatArray, IntArray, Times
from partita.solver.instance import Instance

ACCURACY = 1e-9
"""Rounding to ticks changes an objective by less than this fraction."""

MOST_TICKS = 2**60
"""A time that no plan reaches, still far from the end of 64 bits."""

MAX_TICKS = 2**57
"""All work of an iteration done one after the other stays below this, so that no sum overflows 64 bits."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Times of the layers, shape (L,), and the prices of transfers.

    Where a problem has several scenarios these are the times of all of them together, each counted by its share, or,
    where the longest counts, a mean that no longest falls below; ``cases`` has those of each.

    Attributes
    ----------
    tick
        Seconds per unit of time; None where the unit is the second itself.
    blur
        Seconds by which a counted time can be off, where that is more than ``ACCURACY`` of it; else 0.
    cap
        Seconds that no transfer counts more than.
    count
        How often a time counts: the share of a scenario in a mean over several, else 1.
    several
        The figures of every scenario, where there are several.
    forward, backward, weight_gradient
        Of the layers for one microbatch, the least over all ways to run them, shape (L,); the weight gradient is part
        of the backward pass.
    by_way
        The same three by every kind of device and option of recompute, shape (3, Q, O, L).
    bandwidth, latency
        Of the classes of path, shape (C,); latency in the unit of time.
    """

    tick: float | None
    forward: Times
    backward: Times
    weight_gradient: Times
    by_way: Times
    bandwidth: FloatArray
    latency: Times
    blur: float = 0.0
    cap: float = np.inf
    count: float = 1.0
    several: tuple["Figures", ...] = ()

    @property
    def cases(self) -> "tuple[Figures, ...]":
        """The figures of every scenario; itself, where there are not several."""
        return self.several or (self,)

    def transfer(self, sizes: IntArray, path_class: IntArray | int) -> Times:
        """Give the time that bytes take on paths of a class, latency apart."""
        assert not self.several, "every scenario has sizes of its own"
        return _in_unit(np.minimum(sizes / self.bandwidth[path_class], self.cap) * self.count, self.tick)

    def reduction(self, sizes: IntArray, members: int, path_class: IntArray | int, share: float = 1.0) -> Times:
        """Give the time in which n members reduce bytes in a ring, latency apart: 2 (n - 1) / n of a transfer.

        Only ``share`` of it counts.
        """
        seconds = sizes / self.bandwidth[path_class] * (2 * (members - 1) / members) * share
        return _in_unit(np.minimum(seconds, self.cap), self.tick)

    def delay(self, path_class: IntArray, share: float) -> Times:
        """Give a share of the latency of paths."""
        if self.tick is None or share == 1:
            return self.latency[path_class] * (int(share) if share == 1 else share)
        return np.rint(self.latency[path_class] * share).astype(np.int64)

    def passes(self, number: int) -> list[Times]:
        """Give the least times of two passes, forward and backward, or of three: the backward pass split in two.

        Those of one scenario after those of another.
        """
        return [table.min(axis=(0, 1)) for table in self.tables(number)]

    def tables(self, number: int) -> list[Times]:
        """Give the times of two or three passes by kind of device and option, shape (Q, O, L) each, by scenario."""
        return [table for case in self.cases for table in _split(number, *case.by_way)]

    def passes_by(self, number: int, kind: IntArray, option: IntArray) -> list[Times]:
        """Give the times of two or three passes of the layers on kinds of device and by options, shape (L,) each."""
        assert not self.several, "a plan has times of its own in every scenario"
        return _split(number, *self.by_way[:, kind, option, np.arange(len(kind))])

    def time(self, seconds: float) -> float | int:
        """Give a time of the problem in the unit of these figures."""
        return seconds if self.tick is None else round(seconds / self.tick)

    def step(self, instance: Instance) -> int:
        """Give the ticks of the optimizer's step; 0 where nothing is trained."""
        return int(self.time(instance.factors.step_s)) if instance.trains else 0

    def seconds(self, time: float) -> float:
        """Give a time in this unit as seconds."""
        return time if self.tick is None else time * self.tick

    def zeros(self, *shape: int) -> Times:
        """Give an array of no time."""
        return np.zeros(shape, dtype=np.float64 if self.tick is None else np.int64)


def _split(number: int, forward: Times, backward: Times, weight_gradient: Times) -> list[Times]:
    return [forward, backward] if number == 2 else [forward, backward - weight_gradient, weight_gradient]


def _in_unit(seconds: FloatArray, tick: float | None) -> Times:
    """Round to ticks; paths that no plan can use may take any time, and are cut short."""
    return seconds if tick is None else np.rint(np.minimum(seconds / tick, MOST_TICKS)).astype(np.int64)


def make_figures(instance: Instance, tick: float | None = None, blur: float = 0.0, cap: float = np.inf) -> Figures:
    """Give the instance's times in seconds, or rounded to ticks of so many seconds."""
    cases = [
        _figures_of_case(case, tick, blur, cap, count)
        for case, count in zip(instance.cases, instance.counting, strict=True)
    ]
    if len(cases) == 1:
        return cases[0]
    by_way: Times = np.sum([case.by_way for case in cases], axis=0)
    if instance.worst:  # no longest one falls below the mean; whole ticks are rounded so that no sum does either
        forward, backward, weight_gradient = by_way
        if tick is None:
            by_way = by_way / len(cases)
        else:
            number = len(cases)
            by_way = np.stack([forward // number, backward // number, -(-weight_gradient // number)])
    least, whole = by_way.min(axis=(1, 2)), _figures_of_case(instance, tick, blur, cap, 1.0)
    return replace(
        whole, forward=least[0], backward=least[1], weight_gradient=least[2], by_way=by_way, several=tuple(cases)
    )


def _figures_of_case(instance: Instance, tick: float | None, blur: float, cap: float, count: float) -> Figures:
    """Give the times of an instance in one scenario, each counted so often."""
    bandwidth, latency = (np.array(column) for column in zip(*instance.topology.classes, strict=True))
    costs = instance.ways.costs
    by_way = _in_unit(np.stack([costs.forward, costs.backward, costs.weight_gradient]) * count, tick)
    least = by_way.min(axis=(1, 2))
    return Figures(
        tick=tick,
        forward=least[0],
        backward=least[1],
        weight_gradient=least[2],
        by_way=by_way,
        bandwidth=bandwidth,
        latency=_in_unit(np.minimum(latency, cap) * count, tick),
        blur=blur,
        cap=cap,
        count=count,
    )


BUSY_PASSES = 3
"""Passes of a microbatch that add up to the busy time of a rank: forward, input gradient, weight gradient."""


def roundings(instance: Instance, longest_path: int) -> float:
    """Bound by how many ticks a makespan and what follows it can be off: half a one for each number added up.

    Each node on a path of the event graph adds up at most all layers, or all tensors of a transfer and its latency;
    with ``blocking`` all tensors at both ends as well. By the host every tensor has a latency, and is moved twice. A
    split backward pass takes two numbers from a layer. Every weight may be synchronized once. A mean over scenarios has
    a path in each of them.
    """
    layers, tensors = instance.num_layers * (2 if instance.schedule.splits else 1), len(instance.edges.producer) + 1
    if instance.routing == "host":  # every reader moves a gradient of its own
        tensors = 4 * (tensors + sum(len(readers) for readers in instance.edges.consumers))
    each = layers + 2 * tensors if instance.blocking else max(layers, tensors)
    reductions = 1 if instance.nodes_per_stage == 1 else 2  # inside nodes and between them
    paths = 1 if instance.worst else len(instance.cases)
    return 0.5 * (paths * longest_path * each + len(instance.weights.names) + reductions * instance.num_layers)


def usual_path(instance: Instance, num_stages: int) -> int:
    """Give about how many nodes the longest path of the event graph has."""
    schedule = instance.schedule
    if schedule.orders is not None:
        return 2 * max(len(order) for order in schedule.orders) + 4 * num_stages
    return 3 * instance.microbatches * schedule.chunks + 4 * num_stages


def common_tick(instances: Sequence[tuple[Instance, int]], cap: float) -> tuple[float, float]:
    """Choose the seconds per tick for instances of one problem, each with plans of up to so many stages.

    The tick is chosen so that rounding stays below ``ACCURACY`` of the time that all layers take once. Where the times
    are so far apart that their sums would overflow, the tick is coarser. Where iterations do not all have the same
    number of samples, a tick is a time for as many samples as the first one has (``sizes_of_ticks``).

    Parameters
    ----------
    instances
        Each with its largest number of stages.
    cap
        Seconds that no transfer counts more than, for as many samples as the first instance has.

    Returns
    -------
    tick, blur
        Seconds per tick, and the seconds by which a counted time can be off where that is more than ``ACCURACY`` of
        what stages take on average, for a bottleneck once and for an iteration for every microbatch; else 0.
    """
    scales = sizes_of_ticks([instance for instance, _ in instances])
    every = list(zip(instances, scales, strict=True))
    fine, coarse = zip(
        *([each / scale for each in _ticks(instance, stages, cap * scale)] for (instance, stages), scale in every),
        strict=True,
    )
    tick = float(max(min(fine), max(coarse)))
    if tick <= min(fine):
        return tick, 0.0
    blur = 0.0
    for (instance, num_stages), scale in every:
        of_stage = _least_once(instance) / num_stages / scale
        off = roundings(instance, usual_path(instance, num_stages)) * tick
        once, often = roundings(instance, BUSY_PASSES) * tick, off / instance.microbatches
        if max(once, often) > ACCURACY * of_stage:
            blur = max(blur, off)
    return tick, blur


def sizes_of_ticks(instances: Sequence[Instance]) -> list[float]:
    """Give how long a tick of each instance is, the first one's being 1: in proportion to an iteration's samples.

    So times in ticks are compared by throughput, whatever the batches are.
    """
    return [each.samples / instances[0].samples for each in instances]


def _ticks(instance: Instance, num_stages: int, cap: float) -> tuple[float, float]:
    """Give the seconds per tick that are fine enough, and those that are coarse enough for sums not to overflow."""
    least, once, moved, after = totals(instance, num_stages, cap)
    smallest = least if least > 0 else moved
    if smallest == 0:
        smallest = after
    if smallest == 0:
        return 1.0, 0.0
    path = usual_path(instance, num_stages)
    # A path takes every pass of a microbatch once at most, and between two passes one transfer.
    most = instance.microbatches * once + path * moved + after
    return ACCURACY * smallest / roundings(instance, path), most / MAX_TICKS


class Totals(NamedTuple):
    """Seconds that everything takes together.

    Attributes
    ----------
    least, computing
        Of all layers for one microbatch, at least and at most.
    moved
        Of all tensors for one microbatch, over one boundary of the slowest path.
    after
        Of what follows a makespan, at most.
    """

    least: float
    computing: float
    moved: float
    after: float


def totals(instance: Instance, num_stages: int, cap: float) -> Totals:
    """Add up the times of an instance, over its scenarios by their counts."""
    layers, figures = instance.ways.most, make_figures(instance, cap=cap)
    usable = instance.topology.usable_classes
    slowest = usable[int(np.argmin(figures.bandwidth[usable]))]
    latency = float(figures.latency[usable].max())
    sent = once = reduced = 0.0
    for case, own in zip(instance.cases, figures.cases, strict=True):
        sent += float(own.transfer(case.edges.forward_bytes + case.edges.backward_bytes, slowest).sum())
        once += float(case.ways.most.forward.sum() + case.ways.most.backward.sum()) * own.count
    moved = sent + 2 * num_stages * latency * fsum(own.count for own in figures.cases)
    shared = [instance.weights.bytes, instance.weights.gradient_bytes]
    private = [layers.weight, layers.gradient] if instance.replicas > 1 else []
    for sizes in shared + private:
        reduced += float(figures.reduction(sizes, 2, slowest, 2.0).sum())
    after = reduced * num_stages + latency * (2 + len(instance.weights.names)) + instance.factors.step_s
    return Totals(_least_once(instance), once, moved, after * instance.trains)


def _least_once(instance: Instance) -> float:
    """Give the seconds that all layers take once at least: the mean over the scenarios."""
    number = len(instance.cases) if instance.worst else 1
    each = [float(case.layers.forward.sum() + case.layers.backward.sum()) for case in instance.cases]
    return fsum(count * time for count, time in zip(instance.counting, each, strict=True)) / number
