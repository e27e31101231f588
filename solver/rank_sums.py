"""Where stages can start when every rank runs two of them and only their sum is bounded.

The two stages of rank r advance along two tracks: in a looped pipeline one from the beginning and one from position M,
in a V one from the beginning and one from the end backward. After r ranks the first track is at a and the second at b.
Every bound on a rank is an upper one, so of the positions that r ranks can reach all earlier ones can be reached as
well: they are described by the farthest a for every b. The same from the other end gives the nearest a from which the
rest can be done.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.pipeline import Pipeline

UNREACHED = -1


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on what a plan weighs, as far as it depends on the two intervals of one rank.

    Attributes
    ----------
    starts, ends
        What the start of the interval on either track takes off and its end adds, by position, shape (2, G + 1) each;
        they never fall along their track.
    most
        What is allowed.
    """

    starts: IntArray
    ends: IntArray
    most: int

    def __post_init__(self) -> None:
        """Make sure of what the search for positions relies on."""
        rises = (np.diff(self.starts) >= 0).all() and (np.diff(self.ends) >= 0).all()
        assert rises, "a limit never falls along its track"

    @classmethod
    def plain(cls, first: IntArray, second: IntArray, most: int) -> "Limit":
        """Bound the weights of both intervals together; ``first`` and ``second`` are sums before every position."""
        return cls(np.stack([first, second]), np.stack([first, second]), most)


@dataclass(frozen=True, slots=True)
class Corridor:
    """What is left of the two tracks.

    Attributes
    ----------
    low, high
        First and last position at which every stage can start, and the end, shape (S + 1,).
    pairs
        For every rank boundary r from 1 to R - 1 the positions b that the second track can have, and the nearest and
        the farthest position of the first track with each.
    """

    low: IntArray
    high: IntArray
    pairs: list[tuple[IntArray, IntArray, IntArray]]

    @property
    def empty(self) -> bool:
        """Whether some stage has no position left."""
        return bool((self.low > self.high).any())


def two_tracks(pipeline: Pipeline) -> str | None:
    """Tell how two stages on every rank are laid out, ``looped`` or ``v``; None where they are not."""
    ranks, stages = pipeline.num_ranks, pipeline.num_stages
    if stages != 2 * ranks or ranks < 2:
        return None
    there = np.arange(ranks)
    if (pipeline.rank_of == np.concatenate([there, there])).all():
        return "looped"
    return "v" if (pipeline.rank_of == np.concatenate([there, there[::-1]])).all() else None


class TwoTracks:
    """The starts of stages under limits on every rank, within windows.

    Parameters
    ----------
    shape
        ``looped`` or ``v``.
    limits
        Of every rank.
    low, high
        First and last position at which every stage can start, and the end, shape (S + 1,).
    """

    def __init__(self, shape: str, limits: Sequence[Sequence[Limit]], low: IntArray, high: IntArray) -> None:
        self._looped, self._low, self._high, self.limits = shape == "looped", low, high, limits
        self._ranks, self._size = len(limits), int(high[-1])
        ranks, size = self._ranks, self._size
        if self._looped:
            second = low[ranks:], high[ranks:]
        else:
            second = size - high[ranks:][::-1], size - low[ranks:][::-1]
            limits = [[_mirrored(each) for each in of_rank] for of_rank in limits]
        self._tracks = _Tracks(limits, (low[: ranks + 1], high[: ranks + 1]), second)

    def corridor(self) -> Corridor:
        """Give where stages can start so that every rank keeps its limits; empty where they nowhere can.

        In a looped pipeline M may be anywhere in its window, and the tracks need not agree on it.
        """
        size = self._size
        low, high = self._low.copy(), self._high.copy()
        pairs = []
        for rank, (near, far) in enumerate(self._tracks.between(self._looped, size)):
            b = np.flatnonzero(near <= far)
            if not len(b):
                return Corridor(high + 1, high, [])
            place = b if self._looped else size - b
            for stage, lowest, highest in (
                (rank, near[b].min(), far[b].max()),
                (self._second_stage(rank), place.min(), place.max()),
            ):
                low[stage], high[stage] = max(low[stage], lowest), min(high[stage], highest)
            if 0 < rank < self._ranks:
                pairs.append((place, near[b], far[b]))
        return Corridor(low, high, pairs)

    def _second_stage(self, rank: int) -> int:
        """Give the stage that starts where the second track is after so many ranks."""
        return self._ranks + rank if self._looped else 2 * self._ranks - rank


def _mirrored(limit: Limit) -> Limit:
    """Give a limit whose second track, which goes backward, is counted from its own beginning."""
    starts, ends = limit.starts.copy(), limit.ends.copy()
    # Backward along the positions an interval starts at its upper end.
    starts[1], ends[1] = _reversed(limit.ends[1]), _reversed(limit.starts[1])
    return Limit(starts, ends, limit.most - int(limit.ends[1, -1]) + int(limit.starts[1, -1]))


def _reversed(sums: IntArray) -> IntArray:
    flipped: IntArray = sums[-1] - sums[::-1]
    return flipped


class _Tracks:
    """Two tracks that both advance, with windows for their positions after every rank, shape (R + 1,) each."""

    def __init__(
        self,
        limits: Sequence[Sequence[Limit]],
        first: tuple[IntArray, IntArray],
        second: tuple[IntArray, IntArray],
    ) -> None:
        self._limits, self._first, self._second = limits, first, second

    def between(self, looped: bool, size: int) -> list[tuple[IntArray, IntArray]]:
        """Give for every rank boundary the nearest and the farthest a by b, shape (size + 1,) each.

        Looped tracks begin and end anywhere in their windows; others end when both have gone ``size`` together.
        """
        ranks = len(self._limits)
        ahead = [np.full(size + 1, UNREACHED, dtype=np.int64)]
        ahead[0][self._second[0][0] : self._second[1][0] + 1] = 0
        for rank in range(ranks):
            ahead.append(self._advance(rank, ahead[-1]))
        b = np.arange(size + 1)
        if looped:
            last = np.full(size + 1, size + 1, dtype=np.int64)
            last[size] = self._first[0][ranks]
        else:
            last = np.maximum(size - b, self._first[0][ranks])
            last[last > self._first[1][ranks]] = size + 1
        back = [last]
        for rank in range(ranks - 1, -1, -1):
            back.append(self._retreat(rank, back[-1], size))
        for rank, far in enumerate(ahead):  # every stage that is still to come needs a position
            left = ranks - rank
            far[:] = np.minimum(far, self._first[1][ranks] - left if looped else size - b - 2 * left)
        return list(zip(back[::-1], ahead, strict=True))

    def _advance(self, rank: int, far: IntArray) -> IntArray:
        """Give the farthest a by b after a rank, from those before it."""
        following = np.full_like(far, UNREACHED)
        before = np.flatnonzero(far >= 0)
        after = np.arange(self._second[0][rank + 1], self._second[1][rank + 1] + 1)
        if not len(before) or not len(after):
            return following
        a = far[before]
        reach = np.full((len(before), len(after)), self._first[1][rank + 1], dtype=np.int64)
        for limit in self._limits[rank]:
            left = limit.most - (limit.ends[1, after][None, :] - limit.starts[1, before][:, None])
            goal = limit.starts[0, a][:, None] + left
            reach = np.minimum(reach, np.searchsorted(limit.ends[0], goal, side="right") - 1)
        reach[before[:, None] >= after[None, :]] = UNREACHED
        best = reach.max(axis=0)
        following[after] = np.where(best >= self._first[0][rank + 1], best, UNREACHED)
        return following

    def _retreat(self, rank: int, near: IntArray, size: int) -> IntArray:
        """Give the nearest a by b before a rank from which the rest can be done, from those after it."""
        preceding = np.full_like(near, size + 1)
        after = np.flatnonzero(near <= size)
        before = np.arange(self._second[0][rank], self._second[1][rank] + 1)
        if not len(before) or not len(after):
            return preceding
        a = near[after]
        reach = np.full((len(before), len(after)), self._first[0][rank], dtype=np.int64)
        for limit in self._limits[rank]:
            left = limit.most - (limit.ends[1, after][None, :] - limit.starts[1, before][:, None])
            goal = limit.ends[0, a][None, :] - left
            reach = np.maximum(reach, np.searchsorted(limit.starts[0], goal, side="left"))
        reach[before[:, None] >= after[None, :]] = size + 1
        best = reach.min(axis=1)
        preceding[before] = np.where(best <= self._first[1][rank], best, size + 1)
        return preceding
