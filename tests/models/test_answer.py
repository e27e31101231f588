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
    "bottleneck_time_s": 0.5,
    "microbatches_per_second": 2.0,
    "bubble_fraction": 0.11,
    "inter_node_bytes": 0,
    "num_devices": 2,
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
        "candidates": [{"rank": 1, "schedule": {"kind": "zb_h1"}, "metrics": METRICS, "stages": [{**stage, **times}]}],
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


def test_what_is_not_asked_for_is_nothing(one_stage: Any) -> None:
    """Tests the defaults: no schedules compared, no queue simulated, no weight gradient outstanding."""
    answer = validate(Answer, one_stage)
    assert answer.schedules == ()
    plan = answer.candidates[0]
    assert (plan.metrics.queued_iteration_time_s, plan.metrics.queueing_gap) == (None, None)
    assert plan.stages[0].memory.awaiting_weight_gradient == 0


def test_an_answer_says_which_schedule_a_plan_runs(one_stage: Any, refused: Any) -> None:
    """Tests a custom schedule, kept whole, and that the schedule cannot be left out."""
    orders = [["0F0", "0I0", "0W0"]]
    one_stage["candidates"][0]["schedule"] = {"kind": "custom", "orders": orders}
    one_stage["candidates"][0]["metrics"] |= {"queued_iteration_time_s": 20.0, "queueing_gap": 0.04}
    answer = validate(Answer, one_stage)
    assert validate(Answer, read_json(answer.model_dump_json())) == answer
    schedule = answer.candidates[0].schedule
    assert schedule.orders is not None
    assert [[str(action) for action in order] for order in schedule.orders] == orders
    del one_stage["candidates"][0]["schedule"]
    assert list(refused(one_stage, Answer)) == ["/candidates/0/schedule"]


def test_compared_schedules_are_listed_with_what_was_found(one_stage: Any, refused: Any) -> None:
    """Tests every status, also that of a search cut off by a better schedule."""
    found = {"status": "optimal", "objective_value": 19.21, "best_bound": 19.21}
    cut_off = {"status": "cut_off", "objective_value": None, "best_bound": 20.0}
    results = [{"schedule": {"kind": "zb_h1"}, **found}, {"schedule": {"kind": "1f1b"}, **cut_off}]
    answer = validate(Answer, {**one_stage, "schedules": results})
    assert [(result.schedule.kind, result.status) for result in answer.schedules] == [
        ("zb_h1", "optimal"),
        ("1f1b", "cut_off"),
    ]
    assert validate(Answer, read_json(answer.model_dump_json())) == answer
    unknown = [{"schedule": {"kind": "zb_h1"}, **found, "status": "unknown"}]
    assert list(refused({**one_stage, "schedules": unknown}, Answer)) == ["/schedules/0/status"]
