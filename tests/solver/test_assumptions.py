"""Tests that an answer says what its figures rest on, as far as it matters, and what looks like a mistake."""

from typing import Any

import pytest

from partita.models.problem import Problem
from partita.solver.planner import plan_problem

QUEUES = "in order; nothing else queues"
LOCAL = "between stages of one rank nothing is sent"
ONE_BUFFER = "communication_bytes holds one receive buffer per direction, for one microbatch"
ALL_BUFFERS = "communication_bytes holds one receive buffer per direction for every microbatch, as torch.distributed"
SPLIT = "a split backward pass takes backward_s - weight_gradient_s for the input gradient"
DUALPIPE = "where dualpipe_v overlaps a forward and a backward pass, they run one after the other here"
HOST = "stages of one rank exchange their tensors through the host too"
WHOLE = "4 of 4 layers keep all activation_bytes until the weight gradient is done"
SHARED = "shared activations are kept whole until the weight gradient is done"
POSTPONE = "but no layer has any weight_gradient_s"


def problem(layer: dict[str, Any] | None = None, **training: Any) -> Problem:
    """Give four equal layers on two devices, four microbatches."""
    costs = {"forward_s": 1.0, "backward_s": 2.0, "weight_gradient_s": 1.0, "activation_bytes": 10, **(layer or {})}
    node = {"name": "n", "device": "d", "count": 2, "fabric": {"bandwidth_bytes_per_s": 1e6}}
    return Problem.model_validate(
        {
            "model": {"layers": [{"name": name, **costs} for name in "abcd"]},
            "cluster": {"devices": {"d": {"memory_bytes": "1GB"}}, "nodes": [node]},
            "training": {"schedule": "1f1b", "num_microbatches": 4, **training},
            "search": {"candidates": 1},
        }
    )


@pytest.mark.parametrize(
    ("training", "said", "unsaid"),
    [
        ({}, [QUEUES, ONE_BUFFER], [LOCAL, ALL_BUFFERS, SPLIT, DUALPIPE, WHOLE]),
        ({"runtime": "torch"}, [ALL_BUFFERS], [ONE_BUFFER]),
        ({"schedule": "forward_only", "runtime": "torch"}, [ALL_BUFFERS], [ONE_BUFFER]),
        ({"schedule": "forward_only"}, [], [ONE_BUFFER, ALL_BUFFERS]),
        ({"communication": "blocking"}, ["path; nothing queues", ONE_BUFFER], [QUEUES]),
        ({"communication": "blocking", "routing": "host"}, [], [ONE_BUFFER, LOCAL, HOST]),
        ({"schedule": "looped_bfs"}, [LOCAL], [SPLIT, HOST]),
        ({"schedule": "looped_bfs", "communication": "blocking", "routing": "host"}, [HOST], [LOCAL]),
        ({"schedule": "zb_h1"}, [SPLIT, WHOLE], [LOCAL, DUALPIPE, SHARED]),
        ({"schedule": "dualpipe_v"}, [SPLIT, WHOLE, LOCAL, DUALPIPE], []),
        ({"schedule": ["1f1b", "dualpipe_v"]}, [SPLIT, LOCAL, DUALPIPE], []),
        ({"schedule": {"kind": "custom", "orders": "0F0,0I0,0W0"}, "num_microbatches": 1}, [SPLIT], [LOCAL, DUALPIPE]),
    ],
)
def test_what_is_assumed(training: dict[str, Any], said: list[str], unsaid: list[str]) -> None:
    """Tests that every assumption stands where it matters, and nowhere else."""
    found = plan_problem(problem(**training)).assumptions
    assert len(set(found)) == len(found)
    for words in said:
        assert sum(words in line for line in found) == 1, words
    for words in unsaid:
        assert not any(words in line for line in found), words


def test_what_stays_for_the_weight_gradient() -> None:
    """Tests that layers that say what stays are not counted among those that keep all, and that shared storage is."""
    assert not any(
        "keep all" in line for line in plan_problem(problem({"weight_gradient_bytes": 4}, schedule="zb_v")).assumptions
    )
    asked = problem(schedule="zb_h1").model_dump(mode="json", by_alias=True)
    asked["model"]["shared_activations"] = [{"bytes": 8, "layers": ["a", "b"]}]
    assert SHARED in plan_problem(Problem.model_validate(asked)).assumptions


@pytest.mark.parametrize(
    ("schedule", "names"),
    [("zb_h1", "zb_h1 "), (["1f1b", "zb_v", "zb_h2"], "zb_v, zb_h2 "), ("1f1b", None), ("gpipe", None)],
)
def test_nothing_to_postpone(schedule: Any, names: str | None) -> None:
    """Tests the warning where a schedule splits the backward pass and no layer says which part can wait."""
    found = [
        line
        for line in plan_problem(problem({"weight_gradient_s": 0.0}, schedule=schedule)).warnings
        if POSTPONE in line
    ]
    assert [line.startswith(names or "") for line in found] == ([True] if names else [])
    assert not any(POSTPONE in line for line in plan_problem(problem(schedule=schedule)).warnings)
