"""Tests of answers: what is written can be read."""

import json
from typing import Any

import pytest

from partita.models.answer import Answer
from partita.models.document import read_json, validate
from partita.models.problem import Problem

METRICS = {
    "iteration_time_s": 19.21,
    "tokens_per_second": None,
    "peak_memory_bytes": 7,
    "bottleneck_time_s": 0.6,
    "bubble_fraction": 0.11,
    "inter_node_bytes": 0,
}
MEMORY = {
    "weights_bytes": 1,
    "gradients_bytes": 1,
    "optimizer_bytes": 1,
    "buffers_bytes": 1,
    "activations_bytes": 1,
    "in_flight": 4,
    "communication_bytes": 1,
    "workspace_bytes": 1,
    "reserve_bytes": 0,
    "total_bytes": 7,
    "capacity_bytes": 10,
}


@pytest.fixture
def one_stage() -> dict[str, Any]:
    """Give the smallest answer with a plan."""
    stage = {"index": 0, "rank": 0, "devices": ["node0:0"], "layers": ["embed"], "memory": MEMORY}
    times = {"forward_s": 1.0, "backward_s": 2.0, "weight_gradient_s": 0.0}
    return {
        "status": "optimal",
        "objective": "iteration_time",
        "best_bound": 19.21,
        "relative_gap": 0.0,
        "candidates": [{"rank": 1, "metrics": METRICS, "stages": [{**stage, **times}]}],
        "baselines": {"uniform": {"metrics": METRICS, "stage_sizes": [1], "fits": True}},
        "solver": {"solver": "cp-sat", "wall_s": 0.4, "iterations": 1, "cuts": 33, "variables": 625},
        "problem_digest": "sha256:0",
        "version": "0.1.0",
    }


def test_an_answer_is_read_back_as_it_was_written(one_stage: Any, two_layers: Any) -> None:
    """Tests an answer with a plan and its problem."""
    answer = validate(Answer, {**one_stage, "problem": two_layers})
    again = validate(Answer, read_json(answer.model_dump_json()))
    assert again == answer
    assert again.problem == validate(Problem, two_layers)
    assert json.loads(answer.model_dump_json())["candidates"][0]["stages"][0]["memory"]["in_flight"] == 4


def test_figures_are_finite_or_null(one_stage: Any, refused: Any) -> None:
    """Tests that an unknown bound is null and never infinity."""
    one_stage["best_bound"] = None
    assert validate(Answer, one_stage).best_bound is None
    one_stage["best_bound"] = float("inf")
    assert list(refused(one_stage, Answer)) == ["/best_bound"]


def test_infeasibility_is_in_numbers(one_stage: Any) -> None:
    """Tests a finding in bytes: integers stay integers."""
    finding = {
        "limit": "memory_s0",
        "message": "too large",
        "needed": 12,
        "available": 10,
        "short_by": 2,
        "unit": "bytes",
    }
    infeasibility = {"message": "no plan", "findings": [finding], "limits_in_force": ["memory"]}
    answer = validate(Answer, {**one_stage, "status": "infeasible", "candidates": [], "infeasibility": infeasibility})
    assert '"short_by":2,' in answer.model_dump_json()
