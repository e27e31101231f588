"""Tests makespans and critical paths against ones computed by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from partita.models.schedule import Schedule
from partita.solver.arrays import IntArray
from partita.solver.event_graph import BACKWARD, FORWARD, EventGraph, stage_pairs
from partita.solver.pipeline import arrange


def graph_of(
    schedule: str | Sequence[str], stages: int, microbatches: int, skipping: bool = False, blocking: bool = False
) -> EventGraph:
    """Give the event graph of a schedule, by its name or by the actions of every rank."""
    if isinstance(schedule, str):
        read = Schedule.model_validate({"kind": schedule})
    else:
        read = Schedule.model_validate({"kind": "custom", "orders": [order.split() for order in schedule]})
    return EventGraph(arrange(read, stages, microbatches), skipping, blocking)


def times(*passes: list[int], delay: list[int] | None = None, back: list[int] | None = None) -> IntArray:
    """Give the times of one plan, of every stage in each pass; of transfers the same in either pass, if not told."""
    forward = [0] * (len(passes[0]) - 1) if delay is None else delay
    columns = [*passes, forward, forward if back is None else back]
    return np.array([[time for column in columns for time in column]], dtype=np.int64)


def path_of(graph: EventGraph, row: IntArray) -> tuple[int, list[list[int]]]:
    """Give the makespan, and how often its path takes the passes and the transfers forward and backward."""
    makespans, visits = graph.critical_paths(row)
    assert makespans.tolist() == graph.makespans_by_case(row).tolist()
    (path,) = visits
    if not graph.blocking:
        assert (path * row[0]).sum() == makespans[0, 0]
    moved = [graph.transfers(path, direction) for direction in (FORWARD, BACKWARD)]
    return int(makespans[0, 0]), [each.tolist() for each in (*graph.passes(path), *moved)]


@pytest.mark.parametrize("kind", ["1f1b", "gpipe"])
@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("microbatches", [1, 2, 3, 8])
def test_equal_stages_without_transfers(kind: str, stages: int, microbatches: int) -> None:
    """Tests T = (m + p - 1)(F + B)."""
    graph = graph_of(kind, stages, microbatches)
    makespans = graph.makespans(times([3] * stages, [5] * stages))
    assert makespans.tolist() == [(microbatches + stages - 1) * 8]


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_zero_bubbles(ranks: int, rounds: int) -> None:
    """Tests that 1F1B waits (p - 1)(F + I + W), ZB-H1 (p - 1)(F + I - W), for F = I = 3, W = 2 and m = p rounds."""
    microbatches = ranks * rounds
    whole = graph_of("1f1b", ranks, microbatches).makespans(times([3] * ranks, [5] * ranks))
    split = graph_of("zb_h1", ranks, microbatches).makespans(times([3] * ranks, [3] * ranks, [2] * ranks))
    assert whole.tolist() == [microbatches * 8 + (ranks - 1) * 8]
    assert split.tolist() == [microbatches * 8 + (ranks - 1) * 4]


@pytest.mark.parametrize("microbatches", [1, 2, 8])
def test_inference(microbatches: int) -> None:
    """Tests T = (m + p - 1) F + (p - 1) c."""
    graph = graph_of("forward_only", 4, microbatches)
    assert graph.makespans(times([3] * 4, [0] * 4, delay=[2] * 3)).tolist() == [(microbatches + 3) * 3 + 6]


@pytest.mark.parametrize("microbatches", [1, 2, 8])
def test_inference_over_a_slow_boundary(microbatches: int) -> None:
    """Tests transfers of 5 between stages of 3: they go one at a time, T = 2 F + m c."""
    makespan, visited = path_of(graph_of("forward_only", 2, microbatches), times([3] * 2, [0] * 2, delay=[5]))
    assert makespan == 6 + 5 * microbatches
    assert visited == [[1, 1], [0, 0], [microbatches], [0]]


def test_gpipe_over_a_boundary() -> None:
    """Tests F = 2, B = 3, c = 2, m = 3, p = 2: each way is waited for once, T = 4 (2 + 3) + 2 * 2."""
    makespan, _ = path_of(graph_of("gpipe", 2, 3), times([2, 2], [3, 3], delay=[2]))
    assert makespan == 24


def test_gpipe_over_a_slow_boundary() -> None:
    """Tests F = 2, B = 3, c = 5, m = 3, p = 2: the transfers of either pass wait for each other."""
    # Forward 2-7, 7-12, 12-17; stage 1: F0 7-9, F1 12-14, F2 17-19, B0 19-22, B1 22-25, B2 25-28;
    # backward 22-27, 27-32, 32-37; stage 0: B0 27-30, B1 32-35, B2 37-40.
    makespan, visited = path_of(graph_of("gpipe", 2, 3), times([2, 2], [3, 3], delay=[5]))
    assert makespan == 40
    assert visited == [[1, 1], [1, 1], [3], [3]]


def test_1f1b_over_a_slow_boundary() -> None:
    """Tests the same in 1F1B, where F2 of the first stage waits for B0, which waited for the way and back."""
    # Stage 0: F0 0-2, F1 2-4, B0 17-20, F2 20-22, B1 22-25, B2 37-40.
    # Stage 1: F0 7-9, B0 9-12, F1 12-14, B1 14-17, F2 27-29, B2 29-32.
    makespan, visited = path_of(graph_of("1f1b", 2, 3), times([2, 2], [3, 3], delay=[5]))
    assert makespan == 40
    assert visited == [[2, 2], [2, 2], [2], [2]]  # F0 F0 B0 B0 F2 F2 B2 B2


def test_the_path_through_a_heavy_stage() -> None:
    """Tests that the path visits the heavy middle stage m times and its neighbors once."""
    makespan, visited = path_of(graph_of("gpipe", 3, 4), times([1, 5, 1], [1, 5, 1]))
    assert makespan == 1 + 20 + 1 + 1 + 20 + 1
    assert visited == [[1, 4, 1], [1, 4, 1], [1, 1], [1, 1]]


def test_a_weight_gradient_fills_the_bubble() -> None:
    """Tests ZB-H1 on two stages, two microbatches, F = 2, I = 3, W = 1, c = 1."""
    # Stage 0: F0 0-2, F1 2-4, I0 9-12, W0 12-13, I1 14-17, W1 17-18.
    # Stage 1: F0 3-5, I0 5-8, F1 8-10, I1 10-13, W0 13-14, W1 14-15; transfers back 8-9 and 13-14.
    graph = graph_of("zb_h1", 2, 2)
    row = times([2, 2], [3, 3], [1, 1], delay=[1])
    makespan, visited = path_of(graph, row)
    assert makespan == 18
    assert visited == [[1, 2], [1, 2], [1, 0], [1], [1]]  # F0, F0 I0 F1 I1, I1 W1
    nodes = graph.nodes
    ends = graph.ends(row[0])[: nodes.num_actions]
    found = {
        f"{stage}{'FBIW'[kind]}{microbatch}": int(end)
        for kind, stage, microbatch, end in zip(nodes.kind, nodes.stage, nodes.microbatch, ends, strict=False)
    }
    assert found == {
        **{"0F0": 2, "0F1": 4, "0I0": 12, "0W0": 13, "0I1": 17, "0W1": 18},
        **{"1F0": 5, "1I0": 8, "1F1": 10, "1I1": 13, "1W0": 14, "1W1": 15},
    }


def test_whole_and_split_passes_mixed() -> None:
    """Tests that a whole backward pass takes its input gradient and its weight gradient, and both are on the path."""
    makespan, visited = path_of(graph_of(["0F0 0F1 0B0 0I1 0W1"], 1, 2), times([2], [3], [5]))
    assert makespan == 2 + 2 + 8 + 3 + 5
    assert visited == [[2], [2], [2], [], []]


def test_two_stages_of_one_rank() -> None:
    """Tests stages 0 and 3 on rank 0, 1 and 2 on rank 1: nothing is sent between 1 and 2, whatever its column says."""
    graph = graph_of(["0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"], 4, 1)
    assert graph.local.tolist() == [False, True, False]
    makespan, visited = path_of(graph, times([1] * 4, [2] * 4, delay=[10, 100, 10]))
    assert makespan == 4 * 1 + 4 * 2 + 4 * 10
    assert visited == [[1] * 4, [1] * 4, [1, 0, 1], [1, 0, 1]]


def test_transfers_go_in_the_order_of_the_sender() -> None:
    """Tests that microbatch 1, sent first, delays microbatch 0, and that the other direction is free meanwhile."""
    # Stage 0: F1 0-1, F0 1-2; transfers 1-5 and 5-9. Stage 1: F1 5-6, B1 6-7, F0 9-10, B0 10-11; back 7-11, 11-15.
    graph = graph_of(["0F1 0F0 0B1 0B0", "1F1 1B1 1F0 1B0"], 2, 2)
    makespan, visited = path_of(graph, times([1, 1], [1, 1], delay=[4]))
    assert makespan == 16
    # F1, both transfers, F0 B0 and one way back, B0 of stage 0; or F1, one transfer, F1 B1 and both ways back.
    assert [sum(column) for column in visited] in ([2, 2, 2, 1], [2, 2, 1, 2])


def test_blocking_transfers_overlap_at_both_ends() -> None:
    """Tests computing times 1, 2 and a transfer of 2 that is part of both passes: 1 + 2 + 2 there, as much back."""
    makespan, visited = path_of(graph_of("1f1b", 2, 1, blocking=True), times([3, 4], [3, 4], delay=[2]))
    assert makespan == 10
    assert visited == [[1, 1], [1, 1], [-1], [-1]]


def test_blocking_between_two_stages_of_one_rank() -> None:
    """Tests that the second stage then waits for the end of the first."""
    graph = graph_of(["0F0 1F0 1B0 0B0"], 2, 1, blocking=True)
    makespan, visited = path_of(graph, times([3, 4], [3, 4], delay=[2]))
    assert makespan == 14
    assert visited == [[1, 1], [1, 1], [0], [0]]


def test_a_tensor_that_skips_a_stage() -> None:
    """Tests that a slow way from the first to the last stage decides, past the stage between."""
    graph = graph_of("forward_only", 3, 1, skipping=True)
    assert graph.pairs.tolist() == [[0, 1], [1, 2], [0, 2]]
    makespan, visited = path_of(graph, times([1, 1, 1], [0, 0, 0], delay=[0, 0, 10]))
    assert makespan == 12
    assert visited == [[1, 0, 1], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_batches_are_independent() -> None:
    """Tests two plans at once."""
    graph = graph_of("1f1b", 2, 2)
    both = np.concatenate([times([1, 1], [1, 1]), times([10, 10], [10, 10])])
    assert graph.makespans(both).tolist() == [6, 60]


def test_pairs_of_stages() -> None:
    """Tests that neighbors come first, and that one stage has no pair."""
    assert stage_pairs(4, True).tolist() == [[0, 1], [1, 2], [2, 3], [0, 2], [0, 3], [1, 3]]
    assert stage_pairs(4, False).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert stage_pairs(1, True).shape == (0, 2)
