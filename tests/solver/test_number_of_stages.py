"""Tests the best number of stages where the problem leaves it open and fewer than possible are enough."""

import pytest

from oracle.comparison import check_candidate
from oracle.small import Json, optimal, small_problem

LAYERS: dict[str, Json] = {
    "a": {"forward_s": 0.0, "backward_s": 0.0, "weight_bytes": 1},
    "b": {"forward_s": 1.0, "backward_s": 2.0, "weight_bytes": 1},
}


@pytest.mark.parametrize("schedule", ["forward_only", "gpipe", "1f1b", "zb_h1", "zb_h2"])
@pytest.mark.parametrize("objective", ["iteration_time", "bottleneck_time", "peak_memory"])
def test_a_layer_without_time(schedule: str, objective: str) -> None:
    """Tests a layer that takes no time before one that does: one stage is as fast as two, and two hold less each."""
    problem = small_problem(LAYERS, schedule=schedule, num_microbatches=2, objective=objective)
    candidates = optimal(problem).candidates
    for candidate in candidates:
        check_candidate(problem, candidate)
    assert [len(candidate.stages) for candidate in candidates] == [2, 1]
    assert candidates[0].metrics.bottleneck_time_s == candidates[1].metrics.bottleneck_time_s


@pytest.mark.parametrize(("schedule", "stages"), [("interleaved_1f1b", 2), ("looped_bfs", 2), ("zb_v", 2)])
def test_two_stages_on_every_rank(schedule: str, stages: int) -> None:
    """Tests that two layers are two stages of one rank, however many devices there are."""
    problem = small_problem(LAYERS, devices=4, schedule=schedule, num_microbatches=4, objective="bottleneck_time")
    candidates = optimal(problem).candidates
    assert [len(candidate.stages) for candidate in candidates] == [stages]
    assert {stage.rank for stage in candidates[0].stages} == {0}
    assert candidates[0].metrics.bottleneck_time_s == 3.0
