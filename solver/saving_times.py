"""How much longer backward passes of intervals take at least because they recompute to fit into memory.

Every layer runs by one of its options; each takes some time beyond the least and keeps some bytes of a microbatch
beyond the least. What a stage may keep is given, so its least time is that of a multiple-choice knapsack. Two bounds
are taken on it: for all intervals at once by Lagrange multipliers on the bytes, and interval by interval by the
undominated sums of time and bytes, which is exact unless there are too many of these.
"""

from functools import cached_property

import numpy as np

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.costs import sum_by
from partita.solver.figures import Figures
from partita.solver.grouping import Groups
from partita.solver.instance import Instance

MOST_MULTIPLIERS = 48
"""Multipliers that are tried; of more, evenly chosen ones."""

MOST_SUMS = 512
"""Undominated sums of an interval that are told apart; more are thinned out, each standing for some that are longer."""

NEVER = 2**60
"""Ticks of an interval that does not fit whatever is recomputed."""

SAFETY = 1e-12
"""By which fraction a bound in floating point is lowered."""


class SavingTimes:
    """What recompute adds to the backward pass of a microbatch, in ticks, where there is one kind of device.

    Parameters
    ----------
    instance, figures, groups
        The problem, its times in ticks and its groups in a topological order.
    """

    def __init__(self, instance: Instance, figures: Figures, groups: Groups) -> None:
        self._by_stage = instance.ways.by_stage
        _, backward = figures.tables(2)
        times = backward - backward.min(axis=(0, 1))
        kept = instance.ways.costs.activation - instance.layers.activation
        self._times, self._bytes = times[0].astype(np.int64), kept[0].astype(np.int64)
        self._group_of, self._size = groups.group_of, len(groups)
        self._layers = [np.flatnonzero(groups.group_of == group) for group in range(len(groups))]

    @staticmethod
    def of(instance: Instance, figures: Figures, groups: Groups) -> "SavingTimes | None":
        """Give the saving times of a problem; None where plans do not choose, or more than memory decides."""
        suited = len(instance.cases) == len(instance.ways.kinds) == 1 and not instance.schedule.splits
        return SavingTimes(instance, figures, groups) if instance.ways.choosable and suited else None

    def _sums(self, values: IntArray) -> IntArray:
        """Add up values of the layers, shape (n, L), before every position, shape (n, G + 1)."""
        found: IntArray = np.zeros((len(values), self._size + 1), dtype=np.int64)
        for row, each in zip(found, values, strict=True):
            row[1:] = np.cumsum(sum_by(self._group_of, each, self._size).astype(np.int64))
        return found

    @cached_property
    def _options(self) -> tuple[IntArray, IntArray]:
        """Sums of times and bytes before every position where all layers run by one option, shape (O, G + 1) each."""
        return self._sums(self._times), self._sums(self._bytes)

    @cached_property
    def _multipliers(self) -> FloatArray:
        """Ticks per byte at which some layer changes its option, shape (M,)."""
        slopes = []
        for a in range(len(self._times)):
            for b in range(len(self._times)):
                longer, fewer = self._times[b] - self._times[a], self._bytes[a] - self._bytes[b]
                slopes.append((longer / np.maximum(fewer, 1))[(longer > 0) & (fewer > 0)])
        found = np.unique(np.concatenate(slopes))
        if len(found) > MOST_MULTIPLIERS:
            found = found[np.linspace(0, len(found) - 1, MOST_MULTIPLIERS).astype(np.int64)]
        return found

    @cached_property
    def _relaxed(self) -> FloatArray:
        """Sums of the layers' least of time and priced bytes, before every position, shape (M, G + 1)."""
        found = np.zeros((len(self._multipliers), self._size + 1))
        for row, multiplier in zip(found, self._multipliers.tolist(), strict=True):
            least = (self._times + multiplier * self._bytes).min(axis=0)
            row[1:] = np.cumsum(np.bincount(self._group_of, least, self._size))
        return found

    def at_least(self, starts: IntArray, ends: IntArray, room: IntArray) -> IntArray:
        """Bound the ticks that every interval takes longer, shape (I, J).

        Parameters
        ----------
        starts, ends
            Positions, shape (I,) and (J,).
        room
            Bytes of a microbatch that the interval may keep beyond the least, shape (I, J).
        """
        found: IntArray = np.zeros(room.shape, dtype=np.int64)
        if self._by_stage:
            found[:] = NEVER
            for times, kept in zip(*self._options, strict=True):
                fits = kept[ends][None, :] - kept[starts][:, None] <= room
                found = np.where(fits, np.minimum(found, times[ends][None, :] - times[starts][:, None]), found)
            return np.maximum(found, 0)
        for multiplier, sums in zip(self._multipliers.tolist(), self._relaxed, strict=True):
            priced = multiplier * room
            bound = sums[ends][None, :] - sums[starts][:, None] - priced
            bound -= SAFETY * (sums[-1] + np.abs(priced))
            np.maximum(found, np.floor(np.maximum(bound, 0)).astype(np.int64), out=found)
        return found

    def exactly(self, start: int, ends: IntArray, room: IntArray) -> IntArray:
        """Give the ticks that intervals take longer; a bound on them where sums had to be thinned out.

        Parameters
        ----------
        start
            The position where all of them start.
        ends
            Where each ends, ascending, shape (n,).
        room
            Bytes of a microbatch that each may keep beyond the least, shape (n,).
        """
        if self._by_stage:
            return np.array(
                [self.at_least(np.array([start]), ends[[n]], room[None, [n]])[0, 0] for n in range(len(ends))]
            )
        times, kept = np.zeros((2, 1), dtype=np.int64)
        found: IntArray = np.zeros(len(ends), dtype=np.int64)
        number = 0
        for group in range(start, int(ends[-1])):
            for layer in self._layers[group]:
                times, kept = _undominated(
                    (times[None] + self._times[:, layer, None]).ravel(),
                    (kept[None] + self._bytes[:, layer, None]).ravel(),
                )
            while number < len(ends) and ends[number] == group + 1:
                fits = kept <= room[number]
                found[number] = times[fits.argmax()] if fits.any() else NEVER
                number += 1
        return found


def _undominated(times: IntArray, kept: IntArray) -> tuple[IntArray, IntArray]:
    """Keep the sums that take least for what they keep, by ascending time, and at most so many.

    Where there are more, neighbors are put together, with the time of the fastest and the bytes of the smallest.
    """
    order = np.lexsort((kept, times))
    least = np.minimum.accumulate(kept[order])
    order = order[np.concatenate([[True], least[1:] < least[:-1]])]
    times, kept = times[order], kept[order]
    if len(times) > MOST_SUMS:
        first = np.unique(np.linspace(0, len(times), MOST_SUMS + 1).astype(np.int64))
        times, kept = times[first[:-1]], kept[first[1:] - 1]
    return times, kept
