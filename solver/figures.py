"""The times of an instance, as the user's seconds or as whole ticks.

The solver counts in integer ticks so that every backend solves the same numbers exactly; what is reported is computed
from seconds. Both go through the same code: ``Figures`` is the only thing that differs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from partita.solver.instance import FloatArray, Instance
from partita.solver.topology import IntArray

Times = npt.NDArray[Any]
"""Seconds as floats or ticks as 64-bit integers."""

ACCURACY = 1e-9
"""Rounding to ticks changes an objective by less than this fraction."""

MOST_TICKS = 2**60
"""A time that no plan reaches, still far from the end of 64 bits."""

MAX_TICKS = 2**55
"""All work of an iteration done one after the other stays below this, so that no sum overflows 64 bits."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Times of the layers, shape (L,), and the prices of transfers.

    Attributes
    ----------
    tick
        Seconds per unit of time; None where the unit is the second itself.
    forward, backward
        Of the layers for one microbatch.
    bandwidth, latency
        Of the classes of path, shape (C,); latency in the unit of time.
    """

    tick: float | None
    forward: Times
    backward: Times
    bandwidth: FloatArray
    latency: Times

    def transfer(self, sizes: IntArray, path_class: IntArray | int) -> Times:
        """Give the time that bytes take on paths of a class, latency apart."""
        return _in_unit(sizes / self.bandwidth[path_class], self.tick)

    def reduction(self, sizes: IntArray, members: int, path_class: IntArray | int) -> Times:
        """Give the time in which n members reduce bytes in a ring, latency apart: 2 (n - 1) / n of a transfer."""
        return _in_unit(sizes / self.bandwidth[path_class] * (2 * (members - 1) / members), self.tick)

    def time(self, seconds: float) -> float | int:
        """Give a time of the problem in the unit of these figures."""
        return seconds if self.tick is None else round(seconds / self.tick)

    def seconds(self, time: float) -> float:
        """Give a time in this unit as seconds."""
        return time if self.tick is None else time * self.tick

    def zeros(self, *shape: int) -> Times:
        """Give an array of no time."""
        return np.zeros(shape, dtype=np.float64 if self.tick is None else np.int64)


def _in_unit(seconds: FloatArray, tick: float | None) -> Times:
    return seconds if tick is None else np.rint(seconds / tick).astype(np.int64)


def make_figures(instance: Instance, tick: float | None = None) -> Figures:
    """Give the instance's times in seconds, or rounded to ticks of so many seconds."""
    bandwidth, latency = (np.array(column) for column in zip(*instance.topology.classes, strict=True))
    return Figures(
        tick=tick,
        forward=_in_unit(instance.layers.forward, tick),
        backward=_in_unit(instance.layers.backward, tick),
        bandwidth=bandwidth,
        latency=_in_unit(latency, tick),
    )


def roundings(instance: Instance, num_stages: int) -> float:
    """Bound how many rounded numbers a makespan and what follows it add up.

    A path of the event graph has at most 2 (m + S) actions; each adds up at most all layers and, at both ends, all
    tensors. Every weight may be synchronised once.
    """
    each = instance.num_layers + 2 * len(instance.edges.producer)
    return 2.0 * (instance.microbatches + num_stages) * each + len(instance.weights.names) + instance.num_layers


def choose_tick(instance: Instance, num_stages: int) -> float:
    """Choose the seconds per tick for plans of up to so many stages.

    Every number added up is off by half a tick at most; the tick is chosen so that the error stays below ``ACCURACY``
    of the time that all layers take once. Where work is so large that its sum would overflow, the tick is coarser.
    """
    once, moved, after = _totals(instance, num_stages)
    smallest = once if once > 0 else moved
    if smallest == 0:
        smallest = after
    if smallest == 0:
        return 1.0
    most = (instance.microbatches + num_stages) * (once + 2 * moved) + after
    return max(ACCURACY * smallest / roundings(instance, num_stages), most / MAX_TICKS)


def longest_time(instance: Instance, figures: Figures, num_stages: int) -> int:
    """Give a time that no plan exceeds: everything, one after the other, on the slowest paths; in ticks, capped."""
    assert figures.tick is not None, "the solver counts in ticks"
    once, moved, after = _totals(instance, num_stages)
    hops = 4.0 * num_stages * (num_stages + len(instance.edges.producer))
    latency = float(make_figures(instance).latency.max())
    seconds = instance.microbatches * (once + 4 * num_stages * moved + hops * latency) + after
    return int(min(seconds / figures.tick + roundings(instance, num_stages) * num_stages, MOST_TICKS))


def _totals(instance: Instance, num_stages: int) -> tuple[float, float, float]:
    """Give the seconds of all layers once, of all tensors once on the slowest path, and of what follows a makespan."""
    layers, figures = instance.layers, make_figures(instance)
    slowest = int(np.argmin(figures.bandwidth))
    latency = float(figures.latency.max())
    sent = figures.transfer(instance.edges.forward_bytes + instance.edges.backward_bytes, slowest).sum()
    reduced = 0.0
    for sizes in (layers.weight, layers.gradient, instance.weights.bytes, instance.weights.gradient_bytes):
        reduced += 2 * float(figures.transfer(sizes, slowest).sum())
    after = reduced * num_stages + latency * (1 + len(instance.weights.names)) + instance.factors.step_s
    once = float(layers.forward.sum() + layers.backward.sum())
    return once, float(sent) + 2 * num_stages * latency, after * instance.trains
