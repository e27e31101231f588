"""Weights for path cuts: those whose mean is longest on its shortest way rule out most.

The shortest ways met so far bound what any weights can reach. The best weights for these alone are a small linear
program (Kelley, The cutting-plane method for solving convex programs, 1960); between them and the best weights so far
lies what is tried next.
"""

from collections.abc import Callable
from typing import TypeVar

import highspy
import numpy as np

from partita.solver.arrays import FloatArray, Times
from partita.solver.backends.highs import relaxation
from partita.solver.deadline import Deadline

ROUNDS, FIRST = 40, 5
"""Weights that are tried, and how many of them before the linear program is asked: it knows too few ways at first."""

GREED = 30.0
"""How strongly the first weights follow the lengths of cuts."""

CAUTION = 0.3
"""How much of the best weights so far is in what is tried next."""

ENOUGH = 0.1
"""The part of what is missing that is not worth a further round, where the weights cannot rule out everything."""

SAFETY = 1e-11
"""By which fraction a weighted length in floating point must exceed what is allowed, to count as longer."""

Way = TypeVar("Way")


def weigh(
    number: int,
    most: int,
    shortest: Callable[[FloatArray], tuple[float, Way]],
    lengths: Callable[[Way], Times],
    deadline: Deadline,
) -> tuple[FloatArray, list[Way]]:
    """Look for the weights of cuts whose mean is longest on its shortest way; stop where that is longer than ``most``.

    Parameters
    ----------
    number
        How many cuts there are.
    shortest, lengths
        Give the shortest way of the mean by some weights, and its length; the length of every cut on a way.

    Returns
    -------
    array of shape (number,), list
        The weights, and the ways that were the shortest ones of some weights.

    Raises
    ------
    TimeOver
        When the deadline passes.
    """
    weights: FloatArray = np.full(number, 1 / number)
    longest, best = -np.inf, weights
    known, ways = _Known(number, most), []
    for count in range(1, ROUNDS + 1):
        deadline.check()
        length, way = shortest(weights)
        if length > longest:
            longest, best = length, weights
        if length > most * (1 + SAFETY):
            break
        ways.append(way)
        each = lengths(way)
        known.add(each)
        if count < FIRST:
            weights = weights * np.exp(GREED * (each - each.max()) / max(most, 1))
            weights = weights / weights.sum()
            continue
        found = known.weights()
        if found is None:
            break
        best_of_known, reachable = found
        if reachable <= most and reachable - longest <= ENOUGH * (most - longest):
            break
        weights = CAUTION * best + (1 - CAUTION) * best_of_known
    return best, ways


class _Known:
    """The ways that are known, as rows over the weights of cuts; lengths count in parts of ``most``."""

    def __init__(self, number: int, most: int) -> None:
        self._scale = float(max(most, 1))
        self._columns = np.arange(number + 1, dtype=np.int32)
        self._lengths: list[FloatArray] = []
        self._solver: highspy.Highs | None = None

    def add(self, lengths: Times) -> None:
        """Add a way by its length for every cut, shape (number,)."""
        self._lengths.append(np.asarray(lengths / self._scale))

    def weights(self) -> tuple[FloatArray, float] | None:
        """Give the weights whose mean is longest on the shortest of these ways, and its length there.

        None where rounding keeps them from being found.
        """
        if self._solver is None:
            size = len(self._columns)
            self._solver = relaxation()
            self._solver.addVars(size, np.zeros(size), np.full(size, highspy.kHighsInf))
            self._solver.changeColCost(0, -1.0)
            self._solver.addRow(1.0, 1.0, size - 1, self._columns[1:], np.ones(size - 1))
        for each in self._lengths:
            row = np.concatenate([[-1.0], each])
            self._solver.addRow(0.0, highspy.kHighsInf, len(row), self._columns, row)
        self._lengths = []
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        values = np.array(self._solver.getSolution().col_value)
        weights = np.maximum(values[1:], 0)
        return weights / weights.sum(), float(values[0]) * self._scale
