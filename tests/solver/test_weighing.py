"""Tests of the weights for cuts, on ways that are known in full."""

from itertools import combinations
from random import Random

import numpy as np
import pytest

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.deadline import Deadline, TimeOver
from partita.solver.weighing import ENOUGH, ROUNDS, SAFETY, weigh

Found = tuple[FloatArray, list[int]]


def weighed(ways: IntArray, most: int) -> Found:
    """Weigh the cuts of ways given by their length for every cut, shape (ways, cuts)."""

    def shortest(weights: FloatArray) -> tuple[float, int]:
        lengths = ways @ weights
        return float(lengths.min()), int(lengths.argmin())

    return weigh(ways.shape[1], most, shortest, lambda way: ways[way], Deadline.after(60))


def longest_mean(ways: IntArray) -> float:
    """Give how long the mean of two cuts can be on its shortest way: at an end, or where two ways are equally long."""
    shares = [0.0, 1.0]
    for (a, b), (c, d) in combinations(ways.tolist(), 2):
        if a - b != c - d:
            shares.append(min(1.0, max(0.0, (d - b) / ((a - b) - (c - d)))))
    return float(max((ways @ np.array([share, 1 - share])).min() for share in shares))


@pytest.mark.parametrize("seed", range(100))
def test_two_cuts(seed: int) -> None:
    """Tests that the weights rule out everything where any do, and are nearly the best ones elsewhere."""
    random = Random(seed)
    ways = np.array([[random.randint(0, 10**12) for _ in range(2)] for _ in range(random.randint(1, 9))])
    best = longest_mean(ways)
    less = int(best * (1 - 1e-6)) - 1
    weights, _ = weighed(ways, less)
    assert (ways @ weights).min() > less * (1 + SAFETY)
    most = int(best * 1.1) + 1
    weights, _ = weighed(ways, most)
    reached = float((ways @ weights).min())
    assert best - reached <= ENOUGH * (most - reached) + 1


@pytest.mark.parametrize("seed", range(50))
def test_many_cuts(seed: int) -> None:
    """Tests that weights are shares, and that no more of them are tried than are worth it."""
    random = Random(seed)
    ways = np.array([[random.randint(1, 10**9) for _ in range(40)] for _ in range(60)])
    weights, met = weighed(ways, 10**9)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert len(met) <= ROUNDS


def test_time() -> None:
    """Tests that it ends when time is over."""
    with pytest.raises(TimeOver):
        weigh(1, 1, lambda weights: (0.0, 0), lambda way: np.zeros(1), Deadline.after(-1))
