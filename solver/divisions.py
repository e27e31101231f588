"""Simple ways to divide layers into stages: equal counts, and the smallest largest load."""

from itertools import pairwise

import numpy as np

from partita.solver.arrays import IntArray


def uniform_sizes(num_layers: int, num_stages: int) -> list[int]:
    """Give stage sizes that differ by one at most, the larger ones first."""
    size, larger = divmod(num_layers, num_stages)
    return [size + (stage < larger) for stage in range(num_stages)]


def balanced_sizes(work: IntArray, num_stages: int) -> list[int]:
    """Give the sizes of non-empty stages that make the largest work of a stage as small as possible.

    Bisection over the largest work; stages are filled from the front.
    """
    total = np.concatenate([[0], np.cumsum(work)])
    low, high = int(work.max()), int(total[-1])
    while low < high:
        middle = (low + high) // 2
        if _stages_needed(total, middle) <= num_stages:
            high = middle
        else:
            low = middle + 1
    cuts, size = [0], len(work)
    for stage in range(num_stages - 1):
        end = int(np.searchsorted(total, total[cuts[-1]] + low, side="right")) - 1
        cuts.append(min(end, size - (num_stages - 1 - stage)))
    return [end - start for start, end in pairwise([*cuts, size])]


def _stages_needed(total: IntArray, most: int) -> int:
    stages = start = 0
    while start < len(total) - 1:
        start = int(np.searchsorted(total, total[start] + most, side="right")) - 1
        stages += 1
    return stages
