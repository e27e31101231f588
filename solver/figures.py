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
"""Rounding to ticks changes an objective by less than this fraction (design, section 1)."""

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


def choose_tick(instance: Instance, num_stages: int) -> float:
    """Choose the seconds per tick for plans of up to so many stages.

    A path of the event graph runs at most 2 (m + S) L layers, each rounded by half a tick, and takes at least as long
    as all layers once; the tick is chosen so that the error stays below ``ACCURACY`` of that. Where work is so large
    that its sum would overflow, the tick is coarser.
    """
    layers = instance.layers
    once = float(layers.forward.sum() + layers.backward.sum())
    figures = make_figures(instance)
    slowest = int(np.argmin(figures.bandwidth))
    moved = float(
        figures.transfer(instance.edges.forward_bytes + instance.edges.backward_bytes, slowest).sum()
        + 2 * num_stages * figures.latency.max()
    )
    runs = 2.0 * (instance.microbatches + num_stages) * instance.num_layers
    smallest = once if once > 0 else moved
    if smallest == 0:
        return 1.0
    most = (instance.microbatches + num_stages) * (once + 2 * moved)
    return max(ACCURACY * smallest / runs, most / MAX_TICKS)
