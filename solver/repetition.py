"""Equal groups that repeat along a chain, by which a position is a number of repetitions and a place within the next.

Sums over the groups before a position are then a straight line by repetitions and a few steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import FloatArray, IntArray

LONGEST, FEWEST = 32, 3
"""Groups of a repetition, and repetitions from which they count as such."""

MOST_PLACES = 48
"""Places within a repetition and positions outside of all, up to which one form for all of them is worth it."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """Positions in a row of which most lie in repetitions of the same groups.

    One position is C columns of whole numbers: the repetitions before it, then one column for every place, of which one
    is 1: the L places within a repetition, and every position outside of all, where no repetition is counted.

    Attributes
    ----------
    first
        Where the first repetition begins.
    length
        Groups that repeat, L.
    most
        How many repetitions there are.
    outside
        The positions outside, shape (O,).
    """

    first: int
    length: int
    most: int
    outside: IntArray

    @classmethod
    def find(cls, low: int, high: int, arrays: Sequence[IntArray]) -> "Repetition | None":
        """Find the one with the fewest columns in which all arrays by position rise evenly; None for none.

        Parameters
        ----------
        low, high
            The first and the last position.
        arrays
            Shape (..., G + 1).
        """
        found = None
        for length in range(1, min(LONGEST, (high - low) // FEWEST) + 1):
            first, positions = _longest_run(low, high, length, arrays)
            most = (positions - 1) // length
            last = first + most * length
            outside = np.array([*range(low, first), *range(last + 1, high + 1)], dtype=np.int64)
            if most >= FEWEST and length + len(outside) <= MOST_PLACES:
                each = cls(first, length, most, outside)
                found = each if found is None or each.columns < found.columns else found
        return found

    @property
    def columns(self) -> int:
        """C."""
        return 1 + self.length + len(self.outside)

    def constant(self, by_position: IntArray) -> IntArray:
        """Give what arrays have where the first repetition begins, shape (..., G + 1) to (...)."""
        return np.asarray(by_position[..., self.first])

    def rises(self, by_position: IntArray) -> IntArray:
        """Give what arrays have more than there for each column, shape (..., G + 1) to (..., C)."""
        begin = self.first
        places = np.array([begin + self.length, *range(begin, begin + self.length), *self.outside])
        return np.asarray(by_position[..., places] - by_position[..., begin, None])

    def positions(self, columns: FloatArray) -> FloatArray:
        """Give positions by their columns, shape (..., C) to (...)."""
        steps = np.array([self.length, *range(self.length), *(self.outside - self.first)])
        return np.asarray(self.first + columns @ steps)

    def rows(self) -> tuple[IntArray, IntArray, IntArray]:
        """Give the rows that every position keeps, shape (2, C), and the least and the most of each, shape (2,).

        A position is at one place, and no repetition lies before it that is not before its place.
        """
        one_place = np.ones(self.columns, dtype=np.int64)
        one_place[0] = 0
        none_beyond = np.ones(self.columns, dtype=np.int64)
        none_beyond[1] = 0
        none_beyond[1 + self.length :] = self.most
        return np.stack([one_place, none_beyond]), np.array([1, 0]), np.array([1, self.most])


def _longest_run(low: int, high: int, length: int, arrays: Sequence[IntArray]) -> tuple[int, int]:
    """Give the first position and the number of the most in a row that rise evenly by a length."""
    even = np.ones(high - low - length, dtype=bool)
    for each in arrays:
        part = each[..., low : high + 1]
        rise = part[..., length:] - part[..., :-length]
        even &= (rise[..., 1:] == rise[..., :-1]).reshape(-1, len(even)).all(axis=0)
    ends = np.flatnonzero(np.diff(np.concatenate([[False], even, [False]]).astype(np.int8)))
    if not len(ends):
        return low, length + 1
    begins, runs = ends[::2], np.diff(ends)[::2]
    longest = int(runs.argmax())
    return low + int(begins[longest]), int(runs[longest]) + length + 1
