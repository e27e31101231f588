"""Tests moves of boundaries in models of equal blocks."""

import numpy as np
import pytest

from partita.solver.local_search import neighbors, period_of


@pytest.mark.parametrize(
    ("work", "period"),
    [
        ([7, *[1, 2, 3] * 6, 9], 3),
        ([7, *[2] * 12, 9], 1),
        ([*[1, 1, 2] * 8], 3),
        ([1, 2, 3, 4, 5, 6, 7, 8], 1),
        ([5, 5], 1),
        ([5], 1),
    ],
)
def test_after_how_many_groups_the_times_repeat(work: list[int], period: int) -> None:
    """Tests blocks between other layers, equal layers in a row, and what does not repeat."""
    assert period_of(np.array(work, dtype=np.int64)) == period


def test_boundaries_move_by_a_block() -> None:
    """Tests that one boundary and both together move by a block of three too, where no stage is then empty."""
    near = {tuple(row) for row in neighbors(np.array([0, 5, 9, 12], dtype=np.int64), period=3).tolist()}
    assert {(0, 2, 9, 12), (0, 8, 9, 12), (0, 5, 6, 12), (0, 2, 6, 12)} <= near
    assert {(0, 6, 9, 12), (0, 4, 8, 12), (0, 7, 9, 12)} <= near
    assert not any(starts[2] == 12 for starts in near)
    assert (0, 2, 9, 12) not in {tuple(row) for row in neighbors(np.array([0, 5, 9, 12], dtype=np.int64)).tolist()}
