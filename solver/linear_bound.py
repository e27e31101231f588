"""Bounds of a program in whole numbers by its linear relaxation, which hold although floating point finds them.

Any multipliers of the rows give a bound: they add the rows up to one in which every column is at its better end. HiGHS
finds good multipliers; what they prove is computed anew, allowing for rounding, and in whole numbers where it is close
(Neumaier and Shcherbina, Safe bounds in linear and mixed-integer linear programming, 2004).
"""

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.backends.highs import relaxation

IMPOSSIBLE = 2**62
"""The bound of a program without any solution, and the end of a row that has none."""

ROUNDING = float(np.finfo(np.float64).eps)
"""What an operation may be off, as a part of its result."""

CLOSE = 1e-8
"""By which part a bound must miss what it should exceed, for a second look to be useless."""

PARTS = (5040, 2**50)
"""In parts of which multipliers are counted in whole numbers; often they are simple fractions."""

NEGLIGIBLE = 1e-9
"""Multipliers of such a part of the largest are taken for none, and shares of a column below it as well."""


@dataclass(frozen=True, slots=True)
class Box:
    """The least and the largest that every column may be, shape (n,) each."""

    low: IntArray
    high: IntArray

    def below(self, column: int, value: int) -> "Box":
        """Give the part in which a column is at most a value."""
        high = self.high.copy()
        high[column] = value
        return Box(self.low, high)

    def above(self, column: int, value: int) -> "Box":
        """Give the part in which a column is at least a value."""
        low = self.low.copy()
        low[column] = value
        return Box(low, self.high)

    def without(self, first: int, end: int) -> "Box":
        """Give the part in which the columns from ``first`` to before ``end`` are none."""
        high = self.high.copy()
        high[first:end] = 0
        return Box(self.low, high)


@dataclass(frozen=True, slots=True)
class Relaxed:
    """What is known of the solutions in a box.

    Attributes
    ----------
    bound
        None has less in the column that is minimized.
    values
        A solution of the relaxation, shape (n,); None where there is none, or none was found.
    box
        Where all solutions lie with no more than was asked for.
    """

    bound: int
    values: FloatArray | None
    box: Box


@dataclass(frozen=True, slots=True)
class _Sum:
    """Rows added up: what they prove, and by how much the figure may be off; the price of every column, shape (n,)."""

    value: float
    off: float
    prices: FloatArray

    @property
    def bound(self) -> float:
        """What is proven."""
        return self.value - self.off


class LinearBound:
    """The least value of a column under rows ``low <= A x <= high``, over boxes.

    Parameters
    ----------
    objective
        The column that is minimized.
    scales
        What counts as one of every column in floating point, shape (n,): 1 but for columns with large values.
    """

    def __init__(self, objective: int, scales: IntArray) -> None:
        self._objective, self._scales = objective, scales.astype(np.float64)
        size = len(scales)
        self._rows: IntArray = np.zeros((0, size), dtype=np.int64)
        self._low: IntArray = np.zeros(0, dtype=np.int64)
        self._high: IntArray = np.zeros(0, dtype=np.int64)
        self._units: FloatArray = np.zeros(0)
        self._highs = relaxation()
        self._columns = np.arange(size, dtype=np.int32)
        for _ in range(size):
            self._highs.addVar(0.0, 0.0)
        self._highs.changeColCost(objective, 1.0)

    def add(self, rows: IntArray, low: IntArray, high: IntArray) -> None:
        """Add rows, shape (rows, n), with the least and the most of each, ``IMPOSSIBLE`` for no end."""
        sized = np.abs(rows) * self._scales
        large = (sized * (self._scales > 1)).max(axis=1)
        units = np.where(large > 0, large, np.maximum(1, sized.max(axis=1)))
        for row, unit, least, most in zip(rows, units, low.tolist(), high.tolist(), strict=True):
            (used,) = np.nonzero(row)
            ends = (
                -highspy.kHighsInf if least <= -IMPOSSIBLE else least / unit,
                highspy.kHighsInf if most >= IMPOSSIBLE else most / unit,
            )
            self._highs.addRow(*ends, len(used), used.astype(np.int32), row[used] * self._scales[used] / unit)
        self._rows = np.concatenate([self._rows, rows])
        self._low, self._high = np.concatenate([self._low, low]), np.concatenate([self._high, high])
        self._units = np.concatenate([self._units, units])

    def solve(self, box: Box, most: int) -> Relaxed:
        """Bound the column that is minimized.

        Parameters
        ----------
        box
            Where the columns are. A column that may be large must have both its ends within 2**61.
        most
            Solutions with more are of no interest.
        """
        if (box.low > box.high).any():
            return Relaxed(IMPOSSIBLE, None, box)
        least = int(box.low[self._objective])
        self._highs.changeColsBounds(len(self._columns), self._columns, box.low / self._scales, box.high / self._scales)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            _, known, ray = self._highs.getDualRay()  # type: ignore[attr-defined]
            contradicts = known and self._contradicts(np.array(ray), box)
            return Relaxed(IMPOSSIBLE if contradicts else least, None, box)
        if status != highspy.HighsModelStatus.kOptimal:
            return Relaxed(least, None, box)
        solution = self._highs.getSolution()
        values = np.array(solution.col_value) * self._scales
        multipliers = self._usable(np.array(solution.row_dual)) * (self._scales[self._objective] / self._units)
        found = self._added_up(multipliers, 1.0, box)
        bound = max(least, int(np.ceil(found.bound)))
        if found.bound <= most < found.value + CLOSE * abs(found.value):
            for parts in PARTS:
                bound = max(bound, self._in_whole_numbers(multipliers, parts, box))
                if bound > most:
                    break
        return Relaxed(bound, values, box if bound > most else self._tightened(found, most, box))

    def _usable(self, multipliers: FloatArray) -> FloatArray:
        """Drop multipliers that are but noise, and those for an end that a row does not have."""
        noise = np.abs(multipliers) < NEGLIGIBLE * np.abs(multipliers).max(initial=0)
        endless = np.where(multipliers > 0, self._low <= -IMPOSSIBLE, self._high >= IMPOSSIBLE)
        return np.where(noise | endless, 0, multipliers)

    def _added_up(self, multipliers: FloatArray, cost: float, box: Box) -> _Sum:
        """Add rows up, with so much of the objective."""
        (used,) = np.nonzero(multipliers)
        by = multipliers[used]
        ends = by * np.where(by > 0, self._low[used], self._high[used])
        products = by[:, None] * self._rows[used]
        prices = -products.sum(axis=0)
        prices[self._objective] += cost
        widest = np.maximum(np.abs(box.low), np.abs(box.high))
        terms = np.abs(ends).sum() + np.abs(products).sum(axis=0) @ widest + cost * widest[self._objective]
        value = ends.sum() + prices @ np.where(prices > 0, box.low, box.high)
        return _Sum(float(value), float(terms) * ROUNDING * (len(used) + len(prices) + 8), prices)

    def _contradicts(self, ray: FloatArray, box: Box) -> bool:
        """Tell whether rows contradict each other in a box when they are added up so, with either sign."""
        return any(self._added_up(self._usable(each) / self._units, 0.0, box).bound > 0 for each in (ray, -ray))

    def _in_whole_numbers(self, multipliers: FloatArray, parts: int, box: Box) -> int:
        """Give what multipliers prove that are rounded to whole parts, once more corrected by what that leaves."""
        by = _rounded(multipliers * parts)
        by = by + _rounded(self._multipliers(self._left_by(by, parts).astype(np.float64) / parts) * parts)
        timed = self._rows[:, self._objective]
        largest = int(np.argmax(multipliers * timed))
        if timed[largest]:  # the column that is minimized must not be left with a price: it is large
            by[largest] += int(self._left_by(by, parts)[self._objective]) // int(timed[largest])
        by = np.where((by > 0) & (self._low <= -IMPOSSIBLE) | (by < 0) & (self._high >= IMPOSSIBLE), 0, by)
        prices = self._left_by(by, parts)
        total = by @ np.where(by > 0, self._low, self._high).astype(object)
        total += prices @ np.where(prices > 0, box.low, box.high).astype(object)
        return -int(-total // parts)

    def _left_by(self, by: Any, parts: int) -> Any:
        """Give the price of every column in whole parts when rows are added up so."""
        prices = np.zeros(len(self._columns), dtype=object)
        for row in np.flatnonzero(by).tolist():
            (held,) = np.nonzero(self._rows[row])
            prices[held] -= by[row] * self._rows[row, held].astype(object)
        prices[self._objective] += parts
        return prices

    def _multipliers(self, costs: FloatArray) -> FloatArray:
        """Find multipliers for other costs of the columns, shape (n,), in the box that was solved last."""
        scaled = costs * self._scales
        largest = max(float(np.abs(scaled).max()), 1e-300)
        self._highs.changeColsCost(len(scaled), self._columns, scaled / largest)
        self._highs.run()
        solved = self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        found = np.array(self._highs.getSolution().row_dual) * (largest / self._units)
        self._highs.changeColsCost(len(scaled), self._columns, (self._columns == self._objective).astype(np.float64))
        return self._usable(found) if solved else np.zeros_like(found)

    def _tightened(self, found: _Sum, most: int, box: Box) -> Box:
        """Give the box without what is too far: a column that departs from its better end pays its price."""
        spare = max(0.0, most - found.bound) * (1 + NEGLIGIBLE)
        price = np.abs(found.prices)
        steps = np.minimum(np.divide(spare, price, out=np.full_like(price, 2.0**61), where=price > 0), 2.0**61)
        whole = np.floor(steps + NEGLIGIBLE).astype(np.int64)
        large = self._scales > 1  # they follow from the others
        high = np.where((found.prices > 0) & ~large, np.minimum(box.high, box.low + whole), box.high)
        low = np.where((found.prices < 0) & ~large, np.maximum(box.low, box.high - whole), box.low)
        return Box(low, high)


def _rounded(values: FloatArray) -> Any:
    """Give whole numbers of any size, shape of the values."""
    return np.array([round(each) for each in values.tolist()], dtype=object)
