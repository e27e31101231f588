"""Tests the recompute choice of one stage against every choice."""

from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest

from partita.solver.deadline import Deadline
from partita.solver.steady.knapsack import Ladders, least_time, lower_hull


@pytest.mark.parametrize("seed", range(40))
def test_bounds_and_exact_choice(seed: int) -> None:
    """Tests that the relaxation is a bound, its rounding a choice, and the exact choice the best of all."""
    random = Random(seed)
    count = random.randint(1, 6)
    time = np.array([[float(random.randint(0, 30)) for _ in range(count)] for _ in range(3)])
    sizes = np.array([[random.randint(0, 50) for _ in range(count)] for _ in range(3)])
    has = np.array([[True] * count, *([random.random() < 0.7 for _ in range(count)] for _ in range(2))])
    room = random.randint(0, 40 * count)
    ways = [[q for q in range(3) if has[q, layer]] for layer in range(count)]
    fitting = [
        sum(time[way, layer] for layer, way in enumerate(choice))
        for choice in product(*ways)
        if sum(sizes[way, layer] for layer, way in enumerate(choice)) <= room
    ]
    best = min(fitting, default=inf)

    ladders = Ladders.of(time, sizes, has)
    fastest, need = ladders.fastest.sum(keepdims=True), ladders.bytes.sum(keepdims=True) - room
    members = np.ones((1, count), dtype=bool)
    (lower,), (upper,) = ladders.bounds(
        lambda stages: members[stages], fastest, need, ladders.most_saved.sum(keepdims=True)
    )
    assert lower <= best + 1e-9
    assert upper in (*fitting, inf)
    assert (upper == inf) == (best == inf)

    found = least_time(time, sizes, has, room, float(upper), Deadline.after(60))
    if best == inf:
        assert found is None
    else:
        assert found is not None
        assert found[0] == best
        assert sum(time[way, layer] for layer, way in enumerate(found[1])) == best
        assert sum(sizes[way, layer] for layer, way in enumerate(found[1])) <= room


def test_ways_that_no_price_makes_best_are_left_out() -> None:
    """Tests the hull of five ways: one is dominated, one lies above the line between its neighbors."""
    ways = [(1.0, 100), (2.0, 90), (3.0, 20), (4.0, 30), (9.0, 0)]
    assert lower_hull(ways) == [(1.0, 100), (3.0, 20), (9.0, 0)]
