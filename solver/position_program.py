"""The program over positions: where stages start in a chain of repetitions, as a few whole numbers for each.

Path cuts and what ranks hold are rows over these. How many groups a rank has in all is a column too, which divides the
plans better than any single start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.intervals import IntervalView
from partita.solver.linear_bound import IMPOSSIBLE, Box, LinearBound, Relaxed
from partita.solver.path_prices import Paths, Prices
from partita.solver.pruning import memory_limits
from partita.solver.repetition import Repetition
from partita.solver.unsuited import Unsuited
from partita.solver.warm_start import Frame

MAKESPAN, MEMORY = 0, 1
"""The columns that can be minimized: ticks, and bytes on the fullest rank."""

FRACTION = 1e-6
"""How far a value must be from a whole number to be none."""

MOST = 2**60
"""The largest value of a column."""

MOST_COLUMNS = 1_000
"""Columns of all positions beyond which a relaxation takes too long: it is solved some hundred times at first."""

FINE = 10_000
"""Parts of the largest value that count as one of a column in floating point."""


@dataclass(frozen=True, slots=True)
class Division:
    """A way to divide a box in two, on either side of a solution.

    Attributes
    ----------
    what
        The column, or the first of the columns of which one is 1.
    parts
        The two boxes.
    moved
        How much of the solution is outside of either.
    """

    what: int
    parts: tuple[Box, Box]
    moved: tuple[float, float]


class PositionProgram:
    """The program.

    Parameters
    ----------
    view, frame
        Costs of intervals, and the stages.
    window
        First and last position at which every stage can start, and the end, shape (S + 1,) each.
    prices
        What paths pay by position.
    busiest
        The most computing time of a rank; None for any.
    objective
        ``MAKESPAN`` or ``MEMORY``.
    most
        The largest makespan that counts.

    Attributes
    ----------
    objective
        The column that is minimized.
    bound
        The program's relaxation.
    num_paths
        How many paths of the pool it knows.

    Raises
    ------
    Unsuited
        Where no groups repeat, or positions take too many columns.
    """

    def __init__(
        self,
        view: IntervalView,
        frame: Frame,
        window: tuple[IntArray, IntArray],
        prices: Prices,
        busiest: int | None,
        objective: int,
        most: int,
    ) -> None:
        self._view, self._frame, self._window, self._prices = view, frame, window, prices
        self._ranks, self._inner, self._size = frame.pipeline.num_ranks, frame.num_stages - 1, view.size
        self.objective, self.num_paths = objective, 0
        limits = self._memory_rows() + self._busy_rows(busiest)
        arrays = [prices.work, prices.least, *(each for parts, _, _ in limits for _, each in parts)]
        low, high = window
        found = Repetition.find(int(low[1:-1].min()), int(high[1:-1].max()), arrays)
        if found is None or self._inner * found.columns > MOST_COLUMNS:
            raise Unsuited
        self._repetition = found
        self._first = 2 + self._ranks
        self._num_columns = self._first + self._inner * found.columns
        scales = np.ones(self._num_columns, dtype=np.int64)
        scales[[MAKESPAN, MEMORY]] = max(1, most // FINE), max(1, frame.capacity // FINE)
        self.bound = LinearBound(objective, scales)
        self._add_order()
        self._add_totals()
        for parts, column, limit in limits:
            row, constant = self._sum(parts)
            if column is not None:
                row[column] -= 1
            self._add(row, -IMPOSSIBLE, limit - constant)

    def root(self, makespan: tuple[int, int], memory: tuple[int, int]) -> Box:
        """Give the box of all plans, for the least and the largest makespan and memory."""
        low = np.zeros(self._num_columns, dtype=np.int64)
        high = np.ones_like(low)
        for column, (least, most) in ((MAKESPAN, makespan), (MEMORY, memory)):
            low[column], high[column] = least, min(most, MOST)
        low[2 : self._first], high[2 : self._first] = 1, self._size
        high[self._first :: self._repetition.columns] = self._repetition.most
        return Box(low, high)

    def add_paths(self, paths: Paths) -> None:
        """Let the makespan be at least as long as those paths of a pool that are not known yet."""
        prices, repetition = self._prices, self._repetition
        new = paths.part(np.arange(self.num_paths, len(paths.base)))
        self.num_paths, self._paths = len(paths.base), paths
        always = new.base - np.tensordot(new.transfers, prices.cheapest, 2)
        before = new.passes[:, :, :-1] - new.passes[:, :, 1:]  # a start ends one stage and begins the next
        each = np.einsum("qks,kc->qsc", before, repetition.rises(prices.work))
        each += np.einsum("qds,dc->qsc", new.transfers, repetition.rises(prices.least))
        constant = before.sum(axis=2) @ repetition.constant(prices.work)
        constant += new.transfers.sum(axis=2) @ repetition.constant(prices.least)
        constant += new.passes[:, :, -1] @ prices.work[:, -1] - new.passes[:, :, 0] @ prices.work[:, 0]
        rows = np.zeros((len(always), self._num_columns), dtype=np.int64)
        rows[:, MAKESPAN] = 1
        rows[:, self._first :] = -each.reshape(len(always), self._inner * repetition.columns)
        self.bound.add(rows, always + constant, np.full(len(always), IMPOSSIBLE))

    def starts(self, values: FloatArray) -> IntArray:
        """Give where every stage starts, and the end, as near to a solution as the windows allow, shape (S + 1,)."""
        found = np.rint(self._repetition.positions(self._places(values))).astype(np.int64)
        low, high = self._window
        return np.concatenate([[0], np.clip(found, low[1:-1], high[1:-1]), [self._size]])

    def makespan(self, starts: IntArray) -> int:
        """Give the length of the longest path of stages that start so."""
        return int(self._prices.lengths(self._paths, starts).max())

    def divisions(self, relaxed: Relaxed) -> Iterator[Division]:
        """Give the ways to divide a box in which a solution has fractions: for every total, repetition and place.

        Both parts of a way are smaller than the box, even where rounding puts the solution outside of it.
        """
        box, values = relaxed.box, relaxed.values
        assert values is not None, "only where there is a solution"
        columns = self._repetition.columns
        for column in [*range(2, self._first), *range(self._first, len(values), columns)]:
            value = float(values[column])
            below = int(np.floor(value))
            more = value - below
            if FRACTION < more < 1 - FRACTION and box.low[column] <= below < box.high[column]:
                yield Division(column, (box.below(column, below), box.above(column, below + 1)), (more, 1 - more))
        for place in range(self._first + 1, len(values), columns):
            (left,) = np.nonzero(box.high[place : place + columns - 1])
            shares = values[place + left]
            if len(left) > 1 and shares.max() < 1 - FRACTION:
                so_far = np.clip(np.cumsum(shares)[:-1], FRACTION, 1 - FRACTION)
                last = int(np.minimum(so_far, 1 - so_far).argmax())
                count = int(left[last]) + 1
                yield self._at_places(box, place, count, (1 - float(so_far[last]), float(so_far[last])))

    def halves(self, box: Box) -> Division | None:
        """Divide a box where it is widest; None for a single plan."""
        columns = self._repetition.columns
        repetitions = np.arange(self._first, len(box.low), columns)
        widths = box.high[repetitions] - box.low[repetitions]
        column = int(repetitions[widths.argmax()])
        if widths.max() > 0:
            middle = int(box.low[column] + box.high[column]) // 2
            return Division(column, (box.below(column, middle), box.above(column, middle + 1)), (1.0, 1.0))
        for place in (repetitions + 1).tolist():
            (left,) = np.nonzero(box.high[place : place + columns - 1])
            if len(left) > 1:
                return self._at_places(box, place, int(left[len(left) // 2]), (1.0, 1.0))
        return None

    def _at_places(self, box: Box, place: int, count: int, moved: tuple[float, float]) -> Division:
        """Divide a box between the first places of a position and the others."""
        middle, end = place + count, place + self._repetition.columns - 1
        return Division(place, (box.without(middle, end), box.without(place, middle)), moved)

    def _places(self, values: FloatArray) -> FloatArray:
        """Give the columns of every position, shape (S - 1, C)."""
        return values[self._first :].reshape(self._inner, -1)

    def _sum(self, parts: Sequence[tuple[int, IntArray]]) -> tuple[IntArray, int]:
        """Give the row that adds up what arrays by position have where stages start, and the constant part of it."""
        columns = self._repetition.columns
        row = np.zeros(self._num_columns, dtype=np.int64)
        constant = 0
        for stage, by_position in parts:
            if stage in (0, self._inner + 1):
                constant += int(by_position[0 if stage == 0 else self._size])
            else:
                begin = self._first + (stage - 1) * columns
                row[begin : begin + columns] += self._repetition.rises(by_position)
                constant += int(self._repetition.constant(by_position))
        return row, constant

    def _add(self, row: IntArray, low: int, high: int) -> None:
        self.bound.add(row[None], np.array([low]), np.array([high]))

    def _add_order(self) -> None:
        """Let stages follow each other, within their windows, and every position be one."""
        position = np.arange(self._size + 1)
        columns = self._repetition.columns
        low, high = self._window
        places, least, most = self._repetition.rows()
        for stage in range(1, self._inner + 1):
            row, constant = self._sum([(stage, position)])
            self._add(row, int(low[stage]) - constant, int(high[stage]) - constant)
            if stage < self._inner:
                row, constant = self._sum([(stage + 1, position), (stage, -position)])
                self._add(row, 1 - constant, IMPOSSIBLE)
            rows = np.zeros((len(places), len(row)), dtype=np.int64)
            rows[:, self._first + (stage - 1) * columns : self._first + stage * columns] = places
            self.bound.add(rows, least, most)

    def _add_totals(self) -> None:
        """Count the groups of every rank."""
        position = np.arange(self._size + 1)
        everything = np.zeros(self._num_columns, dtype=np.int64)
        for rank, stages in enumerate(self._frame.pipeline.stages_of):
            row, constant = self._sum(_within(stages, position))
            row[2 + rank] = -1
            everything[2 + rank] = 1
            self._add(row, -constant, -constant)
        self._add(everything, self._size, self._size)

    def _busy_rows(self, busiest: int | None) -> list["_Limit"]:
        """Bound how long ranks compute."""
        if busiest is None:
            return []
        return [(_within(stages, self._view.compute), None, busiest) for stages in self._frame.pipeline.stages_of]

    def _memory_rows(self) -> list["_Limit"]:
        """Let the memory be at least what every rank holds at every moment, apart from what several layers share."""
        received, pipeline = self._view.received_from_others(), self._frame.pipeline
        sent = np.diff(pipeline.rank_of, prepend=-1, append=-1) != 0  # across the start of every stage, and the end
        found: list[_Limit] = []
        for rank, stages in enumerate(pipeline.stages_of):
            for limit in memory_limits(self._view, self._frame, rank):
                parts = []
                for track, stage in enumerate(stages.tolist()):
                    parts.append((stage + 1, limit.ends[track] + received[1] * sent[stage + 1]))
                    parts.append((stage, received[0] * sent[stage] - limit.starts[track]))
                found.append((parts, MEMORY, limit.most - self._frame.capacity))
        return found


_Limit = tuple[list[tuple[int, IntArray]], int | None, int]
"""What arrays have where stages start, together; the column that this must not exceed, and by how much."""


def _within(stages: IntArray, by_position: IntArray) -> list[tuple[int, IntArray]]:
    """Give what stages have together of sums before every position."""
    return [part for stage in stages.tolist() for part in ((stage + 1, by_position), (stage, -by_position))]
