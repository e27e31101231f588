"""Tests equal counts and balanced loads."""

from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest

from partita.solver.divisions import balanced_sizes, uniform_sizes


@pytest.mark.parametrize(
    ("layers", "stages", "sizes"),
    [(7, 3, [3, 2, 2]), (8, 4, [2, 2, 2, 2]), (3, 3, [1, 1, 1]), (5, 1, [5]), (94, 8, [12] * 6 + [11] * 2)],
)
def test_equal_counts(layers: int, stages: int, sizes: list[int]) -> None:
    """Tests that counts differ by one at most, larger ones first."""
    assert uniform_sizes(layers, stages) == sizes


@pytest.mark.parametrize(
    ("work", "stages", "sizes"),
    [
        ([1, 1, 1, 9], 2, [3, 1]),
        ([9, 1, 1, 1], 2, [1, 3]),
        ([1, 2, 3, 4], 2, [3, 1]),
        ([0, 0, 0], 3, [1, 1, 1]),
        ([5, 0, 0], 3, [1, 1, 1]),
        ([0, 0, 5], 2, [2, 1]),
        ([4, 4, 4], 1, [3]),
    ],
)
def test_balanced_loads(work: list[int], stages: int, sizes: list[int]) -> None:
    """Tests divisions of a few layers; no stage is empty even where layers take no time."""
    assert balanced_sizes(np.array(work), stages) == sizes


@pytest.mark.parametrize("seed", range(40))
def test_balanced_loads_are_the_best(seed: int) -> None:
    """Tests that no other division of random layers has a smaller largest load."""
    random = Random(seed)
    size = random.randint(1, 9)
    work = [random.choice([0, random.randint(0, 20)]) for _ in range(size)]
    stages = random.randint(1, size)
    sizes = balanced_sizes(np.array(work), stages)
    assert len(sizes) == stages and min(sizes) > 0 and sum(sizes) == size
    ends = np.cumsum([0, *sizes]).tolist()

    def largest(cuts: list[int]) -> int:
        return max(sum(work[a:b]) for a, b in pairwise(cuts))

    best = min(largest([0, *inner, size]) for inner in combinations(range(1, size), stages - 1))
    assert largest(ends) == best
