"""Tests makespans and critical paths against ones computed by hand."""

import numpy as np
import pytest

from partita.solver.event_graph import Counts, EventGraph, Weights, stage_pairs


def weights(forward: list[int], backward: list[int], delay: list[int] | None = None) -> Weights:
    """Give the weights of one plan; the same delay in either pass."""
    delays = np.array([[0] * (len(forward) - 1) if delay is None else delay], dtype=np.int64)
    return Weights(np.array([forward]), np.array([backward]), delays, delays)


def path_of(graph: EventGraph, of: Weights) -> tuple[int, list[list[int]]]:
    """Give the makespan, and how often its path visits forward and backward passes and their delays."""
    makespans, counts = graph.critical_paths(of)
    assert makespans.tolist() == graph.makespans(of).tolist()
    return int(makespans[0]), visits(counts)


def visits(counts: Counts) -> list[list[int]]:
    """Give the visits of the first path."""
    return [each[0].tolist() for each in (counts.forward, counts.backward, counts.forward_delay, counts.backward_delay)]


@pytest.mark.parametrize("kind", ["1f1b", "gpipe"])
@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("microbatches", [1, 2, 3, 8])
def test_equal_stages_without_transfers(kind: str, stages: int, microbatches: int) -> None:
    """Tests T = (m + p - 1)(F + B)."""
    graph = EventGraph(kind, stages, microbatches, skipping=False)
    makespans = graph.makespans(weights([3] * stages, [5] * stages))
    assert makespans.tolist() == [(microbatches + stages - 1) * 8]


@pytest.mark.parametrize("microbatches", [1, 2, 8])
def test_inference(microbatches: int) -> None:
    """Tests T = (m + p - 1) F + (p - 1) c."""
    graph = EventGraph("forward_only", 4, microbatches, skipping=False)
    assert graph.makespans(weights([3] * 4, [0] * 4, [2] * 3)).tolist() == [(microbatches + 3) * 3 + 6]


def test_gpipe_over_a_slow_boundary() -> None:
    """Tests F = 2, B = 3, c = 5, m = 3, p = 2: each way is waited for once, T = 4 (2 + 3) + 2 * 5."""
    makespan, _ = path_of(EventGraph("gpipe", 2, 3, skipping=False), weights([2, 2], [3, 3], [5]))
    assert makespan == 30


def test_1f1b_over_a_slow_boundary() -> None:
    """Tests the same in 1F1B, where F2 of the first stage waits for B0, which waited for the way and back."""
    # Stage 0: F0 0-2, F1 2-4, B0 17-20, F2 20-22, B1 22-25, B2 37-40.
    # Stage 1: F0 7-9, B0 9-12, F1 12-14, B1 14-17, F2 27-29, B2 29-32.
    makespan, visited = path_of(EventGraph("1f1b", 2, 3, skipping=False), weights([2, 2], [3, 3], [5]))
    assert makespan == 40
    assert visited == [[2, 2], [2, 2], [2], [2]]  # F0 F0 B0 B0 F2 F2 B2 B2


def test_the_path_through_a_heavy_stage() -> None:
    """Tests that the path visits the heavy middle stage m times and its neighbors once."""
    makespan, visited = path_of(EventGraph("gpipe", 3, 4, skipping=False), weights([1, 5, 1], [1, 5, 1]))
    assert makespan == 1 + 20 + 1 + 1 + 20 + 1
    assert visited == [[1, 4, 1], [1, 4, 1], [1, 1], [1, 1]]


def test_blocking_transfers_overlap_at_both_ends() -> None:
    """Tests computing times 1, 2 and a transfer of 2 that is part of both passes: 1 + 2 + 2 there, as much back."""
    makespan, visited = path_of(EventGraph("1f1b", 2, 1, skipping=False), weights([3, 4], [3, 4], [-2]))
    assert makespan == 10
    assert visited == [[1, 1], [1, 1], [1], [1]]


def test_a_tensor_that_skips_a_stage() -> None:
    """Tests that a slow way from the first to the last stage decides, past the stage between."""
    graph = EventGraph("forward_only", 3, 1, skipping=True)
    assert graph.pairs.tolist() == [[0, 1], [1, 2], [0, 2]]
    makespan, visited = path_of(graph, weights([1, 1, 1], [0, 0, 0], [0, 0, 10]))
    assert makespan == 12
    assert visited == [[1, 0, 1], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_batches_are_independent() -> None:
    """Tests two plans at once."""
    graph = EventGraph("1f1b", 2, 2, skipping=False)
    both = np.array([[1, 1], [10, 10]])
    none = np.zeros((2, 1), dtype=np.int64)
    assert graph.makespans(Weights(both, both, none, none)).tolist() == [6, 60]


def test_pairs_of_stages() -> None:
    """Tests that neighbors come first, and that one stage has no pair."""
    assert stage_pairs(4, True).tolist() == [[0, 1], [1, 2], [2, 3], [0, 2], [0, 3], [1, 3]]
    assert stage_pairs(4, False).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert stage_pairs(1, True).shape == (0, 2)
