"""The recompute choice of one stage: the least time in which its layers fit into its memory.

Every layer has several ways to run, each with a time and bytes; the times add up, and so do the bytes, which must not
exceed what there is. ``Ladders`` gives bounds for many stages at once by the linear relaxation, in which a layer may
run partly in one way and partly in another; ``least_time`` is exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from partita.solver.arrays import BoolArray, FloatArray, IntArray
from partita.solver.costs import sum_by
from partita.solver.deadline import Deadline

CHUNK = 4096
"""Stages that are bounded at once."""


@dataclass(frozen=True, slots=True)
class Ladders:
    """The ways of all layers that the relaxation can use, from the fastest, as steps that save bytes for time.

    Attributes
    ----------
    fastest, bytes
        Time and bytes of every layer's fastest way, shape (L,).
    layer, longer, saved
        Layer, more seconds and fewer bytes of every step, by ascending price of a byte, shape (E,).
    """

    fastest: FloatArray
    bytes: IntArray
    layer: IntArray
    longer: FloatArray
    saved: IntArray

    @classmethod
    def of(cls, time: FloatArray, sizes: IntArray, has: BoolArray) -> "Ladders":
        """Make the steps from times and bytes of all ways and whether a layer has them, shape (Q, L) each."""
        steps: list[tuple[float, int, float, int]] = []
        count = time.shape[1]
        fastest, least = np.zeros(count), np.zeros(count, dtype=np.int64)
        for layer in range(count):
            ways = lower_hull(
                [(float(time[q, layer]), int(sizes[q, layer])) for q in range(len(time)) if has[q, layer]]
            )
            fastest[layer], least[layer] = ways[0]
            for (t0, b0), (t1, b1) in pairwise(ways):
                steps.append(((t1 - t0) / (b0 - b1), layer, t1 - t0, b0 - b1))
        steps.sort(key=lambda step: (step[0], step[1]))
        return cls(
            fastest,
            least,
            np.array([step[1] for step in steps], dtype=np.int64),
            np.array([step[2] for step in steps], dtype=np.float64),
            np.array([step[3] for step in steps], dtype=np.int64),
        )

    @property
    def most_saved(self) -> IntArray:
        """The bytes that each layer can save, shape (L,)."""
        return sum_by(self.layer, self.saved, len(self.fastest))

    def bounds(
        self, members: Callable[[IntArray], BoolArray], fastest: FloatArray, need: IntArray, most: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bound the least time of stages from below and, by a choice that fits, from above; infinite where none fits.

        Parameters
        ----------
        members
            Gives the layers of some stages, shape (stages, L).
        fastest, need, most
            For every stage the least time of its layers, the bytes that must then be saved, and those that can be,
            shape (P,).
        """
        lower = np.where(need <= most, fastest, np.inf)
        upper = lower.copy()
        short = np.flatnonzero((need > 0) & (need <= most))
        for start in range(0, len(short), CHUNK):
            rows = short[start : start + CHUNK]
            lower[rows], upper[rows] = self._bounds(members(rows), need[rows], lower[rows])
        return lower, upper

    def _bounds(self, members: BoolArray, need: IntArray, fastest: FloatArray) -> tuple[FloatArray, FloatArray]:
        taken = members[:, self.layer]
        saved = np.cumsum(taken * self.saved, axis=1)
        longer = np.cumsum(taken * self.longer, axis=1)
        last = (saved < need[:, None]).sum(axis=1)  # the first step after which it fits
        row = np.arange(len(need))
        after, step = fastest + longer[row, last], self.longer[last]
        missing = need - (saved[row, last] - self.saved[last])
        part = np.clip(missing / self.saved[last], 0.0, 1.0)
        return after - step * (1 - part), after


def lower_hull(ways: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Give the ways (time, bytes) that some price of a byte makes best, fastest first."""
    hull: list[tuple[float, int]] = []
    for time, size in undominated(ways):
        while len(hull) > 1 and (time - hull[-2][0]) * (hull[-2][1] - hull[-1][1]) <= (hull[-1][0] - hull[-2][0]) * (
            hull[-2][1] - size
        ):
            hull.pop()
        hull.append((time, size))
    return hull


def undominated(ways: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Give the ways (time, bytes) than which none is at least as fast and as small, fastest first."""
    kept: list[tuple[float, int]] = []
    for time, size in sorted(ways):
        if not kept or size < kept[-1][1]:
            kept.append((time, size))
    return kept


def least_time(
    time: FloatArray, sizes: IntArray, has: BoolArray, room: int, enough: float, deadline: Deadline
) -> tuple[float, tuple[int, ...]] | None:
    """Give the least time in which all layers fit into ``room`` bytes, and the way of every layer; None for no way.

    Parameters
    ----------
    time, sizes, has
        Of all ways of these layers, shape (Q, L) each.
    enough
        A time that some choice is known to reach (infinite if none is): slower parts of choices are dropped.

    Raises
    ------
    TimeOver
        When the time is over.

    Notes
    -----
    The layers are added one by one; of the choices for those added only the undominated ones are kept, of which the
    relaxation of the rest does not show that they lead nowhere (Nemhauser and Ullmann, 1969).
    """
    count = time.shape[1]
    order = _by_size(sizes, has)
    times, used, came = np.zeros(1), np.zeros(1, dtype=np.int64), []
    slack = 1e-12 * (1.0 + float(np.where(has, time, 0.0).max(axis=0, initial=0.0).sum()))
    for place, layer in enumerate(order):
        deadline.check()
        ways = np.flatnonzero(has[:, layer])
        all_times = (times[:, None] + time[ways, layer]).ravel()
        all_used = (used[:, None] + sizes[ways, layer]).ravel()
        by_time = np.lexsort((all_used, all_times))
        best = np.minimum.accumulate(np.concatenate([[np.iinfo(np.int64).max], all_used[by_time][:-1]]))
        kept = by_time[all_used[by_time] < best]
        rest = order[place + 1 :]
        floor = _relaxed(Ladders.of(time[:, rest], sizes[:, rest], has[:, rest]), room - all_used[kept])
        kept = kept[np.isfinite(floor) & (all_times[kept] + floor <= enough + slack)]
        if not len(kept):
            return None
        times, used = all_times[kept], all_used[kept]
        came.append((kept // len(ways), ways[kept % len(ways)]))
    best_one = int(np.argmin(times))  # sorted by time, all fit
    least, chosen = float(times[best_one]), [0] * count
    for layer, (parent, way) in zip(reversed(order), reversed(came), strict=True):
        chosen[layer], best_one = int(way[best_one]), int(parent[best_one])
    return least, tuple(chosen)


def _by_size(sizes: IntArray, has: BoolArray) -> list[int]:
    """Order the layers by how much their choice matters, most first: the small ones then fill what is left."""
    spread = np.where(has, sizes, sizes[0]).max(axis=0) - np.where(has, sizes, sizes[0]).min(axis=0)
    return [int(layer) for layer in np.argsort(-spread, kind="stable")]


def _relaxed(ladders: Ladders, room: IntArray) -> FloatArray:
    """Give the relaxation's least time of all these layers for each room; infinite where they never fit."""
    need = int(ladders.bytes.sum()) - room
    base = float(ladders.fastest.sum())
    saved = np.concatenate([[0], np.cumsum(ladders.saved)])
    longer = np.concatenate([[0.0], np.cumsum(ladders.longer)])
    result: FloatArray = base + np.interp(np.maximum(need, 0), saved, longer)
    return np.where(need > saved[-1], np.inf, result)
