"""Tests that plans of one value are ranked by their peak memory."""

import pytest

from oracle.small import Json, optimal, small_problem
from partita.models.answer import Answer


def peaks(answer: Answer) -> list[int]:
    """Give the peak memory of every candidate."""
    return [candidate.metrics.peak_memory_bytes for candidate in answer.candidates]


def weighing(*rows: tuple[float, int]) -> dict[str, Json]:
    """Give layers by their seconds and their bytes of weights."""
    return {
        name: {"forward_s": time, "weight_bytes": size} for name, (time, size) in zip("abcdefg", rows, strict=False)
    }


@pytest.mark.parametrize("objective", ["iteration_time", "tokens_per_second", "bottleneck_time"])
def test_the_smaller_peak_comes_first(objective: str) -> None:
    """Tests 4 s + 0 s + 0 s + 4 s with 10, 50, 20, 10 bytes on two stages: peaks 60 | 30, 80 | 10 and 10 | 80."""
    layers = weighing((4.0, 10), (0.0, 50), (0.0, 20), (4.0, 10))
    answer = optimal(small_problem(layers, num_microbatches=3, num_stages=2, objective=objective))
    assert peaks(answer) == [60, 80, 80]
    assert len({candidate.metrics.iteration_time_s for candidate in answer.candidates}) == 1


def test_fewer_or_more_stages() -> None:
    """Tests one microbatch of inference without transfers: 2, 1 and 3 stages take as long; three hold least."""
    layers = weighing((1.0, 10), (1.0, 10), (1.0, 10))
    answer = optimal(small_problem(layers, devices=3, num_microbatches=1))
    assert peaks(answer) == [10, 20, 20, 30]
    assert [len(candidate.stages) for candidate in answer.candidates] == [3, 2, 2, 1]


def test_ties_in_a_graph() -> None:
    """Tests two equal branches beside a light one: the light branch goes where less is held."""
    layers = weighing((2.0, 50), (2.0, 10), (0.0, 30))
    model: Json = {"tensors": []}
    problem = small_problem(layers, num_microbatches=4, num_stages=2, objective="bottleneck_time", model=model)
    answer = optimal(problem)
    assert peaks(answer)[:4] == [50, 50, 80, 80]
    assert answer.candidates[0].metrics.bottleneck_time_s == 2.0


def test_equal_memory_then_fewer_bytes_between_nodes() -> None:
    """Tests that of plans equal in time and memory the one that sends less between nodes comes first."""
    link = {"bandwidth_bytes_per_s": 1e18}
    nodes = [{"name": name, "device": "gpu", "count": 2, "fabric": link, "uplink": link} for name in "uv"]
    layers = {"a": {"forward_s": 1.0, "output_bytes": 8}, "b": {"forward_s": 1.0}}
    answer = optimal(small_problem(layers, nodes=nodes, num_stages=2))
    assert [candidate.metrics.inter_node_bytes for candidate in answer.candidates] == [0, 8]


def test_peak_memory_as_objective_is_in_order() -> None:
    """Tests every plan of a chain of 10, 20, 30, 40 bytes on at most two stages."""
    answer = optimal(small_problem(weighing((1.0, 10), (1.0, 20), (1.0, 30), (1.0, 40)), objective="peak_memory"))
    assert peaks(answer) == [60, 70, 90, 100]
