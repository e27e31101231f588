"""Tests what goes with degrees for each stage, what is refused with a remedy, and what happens in little time."""

from typing import Any

import pytest

from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.errors import NotSupportedYet
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.frontier import frontier
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan
from partita.solver.timeline import timeline

LAYERS = [
    {"name": name, "forward_s": 1.0, "backward_s": seconds, "weight_bytes": 1000, "activation_bytes": 100}
    for name, seconds in (("a", 2.0), ("b", 5.0), ("c", 2.0))
]


def document(**changes: object) -> dict[str, Any]:
    """Give three layers on four devices; changes are named as in ``training__num_stages``."""
    problem: dict[str, Any] = {
        "model": {"layers": [dict(layer) for layer in LAYERS]},
        "cluster": {
            "devices": {"card": {"memory_bytes": 50_000}},
            "nodes": [{"name": "node0", "device": "card", "count": 4, "fabric": {"bandwidth_bytes_per_s": 1e6}}],
        },
        "training": {"schedule": "1f1b", "num_microbatches": 4, "data_parallel": [1, 2], "per_stage_degrees": True},
        "objective": "bottleneck_time",
    }
    for place, value in changes.items():
        *path, field = place.split("__")
        here = problem
        for step in path:
            here = here.setdefault(step, {})
        here[field] = value
    return problem


def planned(**changes: object) -> Answer:
    """Plan it."""
    return plan_problem(validate(Problem, document(**changes)))


def test_degrees_follow_the_work() -> None:
    """Tests a plan checked by hand: the middle layer takes twice as long, so it gets two replicas."""
    answer = planned()
    (plan,) = answer.candidates
    assert [stage.data_parallel for stage in plan.stages] == [1, 2, 1]
    assert [stage.tensor_parallel for stage in plan.stages] == [1, 1, 1]
    assert [stage.memory.in_flight for stage in plan.stages] == [4, 2, 1]
    assert [stage.devices for stage in plan.stages] == [("node0:0",), ("node0:1", "node0:2"), ("node0:3",)]
    exchange = 2 * 1 / 2 * 2000 / 1e6 / 4  # adam_mixed: two bytes of gradient for every byte of weights
    assert plan.metrics.bottleneck_time_s == answer.best_bound == pytest.approx(6.0 / 2 + exchange)
    assert plan.metrics.iteration_time_s == pytest.approx(4 * plan.metrics.bottleneck_time_s)
    assert plan.metrics.tokens_per_second == pytest.approx(1 / plan.metrics.bottleneck_time_s)
    assert plan.metrics.bubble_fraction == pytest.approx(exchange / 2 / (3.0 + exchange))


LINKED = {"name": "t", "producer": "a", "consumers": ["b", "c"], "bytes": 8}


@pytest.mark.parametrize(
    ("changes", "pointer", "remedy"),
    [
        ({"objective": "iteration_time"}, "/objective", "write 'bottleneck_time'"),
        ({"training__schedule": "gpipe"}, "/training/schedule", "write '1f1b'"),
        ({"training__schedule": ["1f1b", "gpipe"]}, "/training/schedule", "write '1f1b'"),
        ({"training__num_stages": 2}, "/training/num_stages", "leave it out"),
        ({"training__routing": "host"}, "/training/routing", "'direct' or 'relay'"),
        ({"training__queueing": True}, "/training/queueing", "leave it false"),
        ({"training__data_parallel": [1, 3]}, "/training/data_parallel", "list divisors"),
        ({"training__routing": "direct"}, "/training/routing", "communication 'blocking'"),
        ({"limits__iteration_time_s": 9.0}, "/limits/iteration_time_s", "limit bottleneck_time_s"),
        ({"limits__tokens_per_second": 9.0}, "/limits/tokens_per_second", "limit bottleneck_time_s"),
        ({"limits__num_devices": 2}, "/limits/num_devices", "limit bottleneck_time_s"),
        ({"search__keep": {"stage_sizes": [1, 2]}}, "/search/keep", "leave it out"),
        ({"constraints__pins": {"a": 0}}, "/constraints/pins", "write 'together'"),
        ({"constraints__apart": [["a", "b"]]}, "/constraints/apart", "write 'cut_after'"),
        ({"model__weights": [{"name": "w", "bytes": 8, "layers": ["a", "c"]}]}, "/model/weights/0", "to one layer"),
        ({"model__shared_activations": [{"bytes": 8, "layers": ["a"]}]}, "/model/shared_activations", "count them"),
        (
            {"model__tensors": [LINKED], "training__routing": "direct", "training__communication": "blocking"},
            "/model/tensors",
            "a tensor of its own",
        ),
        (
            {"model__tensors": [{**LINKED, "resharding": [{"tensor_parallel": 1, "send_bytes": 8}]}]},
            "/model/tensors",
            "write routing 'direct'",
        ),
        ({"model__tensors": [{**LINKED, "pass": "backward"}]}, "/model/tensors", "gradient_bytes"),
        (
            {"scenarios": [{"name": "x", "share": 0.5}, {"name": "y", "share": 0.5}]},
            "/scenarios",
            "plan each one",
        ),
    ],
)
def test_the_rest_is_refused(changes: dict[str, object], pointer: str, remedy: str) -> None:
    """Tests that nothing is ignored: pointer and remedy of everything that does not go with it."""
    with pytest.raises(NotSupportedYet) as refused:
        planned(**changes)
    assert [(fault.pointer, remedy in fault.detail) for fault in refused.value.faults] == [(pointer, True)]


@pytest.mark.parametrize("field", ["weight_bytes", "workspace_bytes"])
def test_recompute_changes_no_weights(field: str) -> None:
    """Tests that an option to be chosen cannot change what the choice is not judged by."""
    layers = [{**LAYERS[0], "options": [{"recompute": "full", field: 1}]}, *LAYERS[1:]]
    with pytest.raises(NotSupportedYet, match="without recompute"):
        planned(model__layers=layers, constraints__recompute="choose")
    assert planned(model__layers=layers, constraints__recompute="full").status == "optimal"


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"training__gradient_exchange": "half_duplex"}, "/training/gradient_exchange"),
        ({"training__gradient_exchange_after": "round"}, "/training/gradient_exchange_after"),
        ({"training__runtime": "none"}, "/training/runtime"),
        ({"model__tensors": [{**LINKED, "resharding": [{"tensor_parallel": 1, "send_bytes": 8}]}]}, "/model/tensors"),
        ({"model__layers": [{**LAYERS[0], "buffer_bytes": 8}, *LAYERS[1:]]}, "/model/layers/0"),
    ],
)
def test_its_own_fields_are_refused_without_it(changes: dict[str, object], pointer: str) -> None:
    """Tests that fields that would mean nothing are not ignored."""
    with pytest.raises(NotSupportedYet) as refused:
        planned(training__per_stage_degrees=False, training__data_parallel=1, **changes)
    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_plans_are_neither_reviewed_nor_drawn() -> None:
    """Tests that evaluating a plan, drawing its timeline and fronts are refused."""
    problem = validate(Problem, document())
    with pytest.raises(NotSupportedYet, match="evaluation of plans"):
        evaluate_plan(problem, GivenPlan(stage_sizes=(1, 2)))
    with pytest.raises(NotSupportedYet, match="a front of plans"):
        frontier(problem, ("bottleneck_time_s", "peak_memory_bytes"))
    with pytest.raises(NotSupportedYet, match="a timeline"):
        timeline(problem, plan_problem(problem).candidates[0])


def test_limits_and_groups_are_kept() -> None:
    """Tests a limit on the bottleneck, and layers that must share a stage."""
    assert planned(limits__bottleneck_time_s=2.9).status == "infeasible"
    assert planned(limits__bottleneck_time_s=3.1).status == "optimal"
    (plan,) = planned(constraints__together=[["b", "c"]]).candidates
    assert [stage.layers for stage in plan.stages] == [("a",), ("b", "c")]
    (plan,) = planned(constraints__cut_after=["a"]).candidates
    assert {stage.layers for stage in plan.stages} <= {("a",), ("b", "c"), ("a", "b", "c")}


def test_a_layer_too_large_is_named() -> None:
    """Tests the finding for a layer that fits into no device."""
    answer = planned(cluster__devices={"card": {"memory_bytes": 5000}})
    assert (answer.status, answer.candidates) == ("infeasible", ())
    assert answer.infeasibility is not None
    assert [finding.needed for finding in answer.infeasibility.findings] == [9100, 9100, 9100]


def test_without_time_there_is_no_answer() -> None:
    """Tests that the time limit is kept, and that a bound by arithmetic is given anyway."""
    answer = planned(search__time_limit_s=1e-9)
    assert (answer.status, answer.candidates) == ("no_solution", ())
    assert answer.best_bound == pytest.approx(12.0 / 4)


def test_the_same_problem_has_the_same_answer() -> None:
    """Tests that two runs differ in their effort only."""
    first, second = (planned().model_copy(update={"solver": None}) for _ in range(2))
    assert first.model_dump_json() == second.model_dump_json()
