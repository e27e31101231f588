"""Tests that a given plan is priced, and that every limit and demand that it breaks is named with its numbers."""

from typing import Any

import pytest

from oracle.small import FREE, Json, edges, small_problem
from partita.models.answer import Answer, Finding
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.review import evaluate_plan

LAYERS: dict[str, Json] = {
    "a": {"forward_s": 1.0, "weight_bytes": 40},
    "b": {"forward_s": 2.0, "weight_bytes": 30},
    "c": {"forward_s": 4.0, "weight_bytes": 20},
}


def review(problem: Problem, *stages: str, devices: list[list[str]] | None = None) -> Answer:
    """Evaluate the plan whose stages have the layers named by letters."""
    listed: list[Json] = [{"layers": list(stage)} for stage in stages]
    if devices is not None:
        listed = [stage | {"devices": each} for stage, each in zip(listed, devices, strict=True)]
    return evaluate_plan(problem, validate(GivenPlan, {"stages": listed}))


def findings(answer: Answer) -> list[Finding]:
    """Give what the plan breaks."""
    assert answer.status == "infeasible"
    assert len(answer.candidates) == 1
    assert answer.infeasibility is not None
    return list(answer.infeasibility.findings)


def refusal(problem: Problem, *stages: str, devices: list[list[str]] | None = None) -> list[tuple[str, str]]:
    """Give pointer and code of every fault for which a plan is refused."""
    with pytest.raises(InvalidInput) as caught:
        review(problem, *stages, devices=devices)
    return [(fault.pointer, fault.code) for fault in caught.value.faults]


def test_a_good_plan() -> None:
    """Tests stages of 3 s and 4 s with two microbatches: 3 + 2 * 4 = 11 s, which arithmetic shows to be the least."""
    answer = review(small_problem(LAYERS, num_microbatches=2), "ab", "c")
    (plan,) = answer.candidates
    assert answer.status == "feasible"
    assert answer.infeasibility is None
    assert plan.metrics.iteration_time_s == 11.0
    assert plan.metrics.peak_memory_bytes == 70
    assert [stage.devices for stage in plan.stages] == [("node0:0",), ("node0:1",)]
    assert answer.best_bound == pytest.approx(11.0)
    assert answer.relative_gap == pytest.approx(0.0, abs=1e-9)


def test_sizes_instead_of_names() -> None:
    """Tests a plan given by the numbers of layers."""
    answer = evaluate_plan(small_problem(LAYERS), validate(GivenPlan, {"stage_sizes": [1, 2]}))
    assert [stage.layers for stage in answer.candidates[0].stages] == [("a",), ("b", "c")]


@pytest.mark.parametrize(
    ("memory", "limits", "limit", "available"),
    [
        (60, {}, "memory_bytes of gpu", 60),
        (100, {"peak_memory_bytes": 65}, "limits.peak_memory_bytes", 65),
        (60, {"peak_memory_bytes": 100}, "memory_bytes of gpu", 60),
        (60, {"peak_memory_bytes": 60}, "memory_bytes of gpu", 60),
    ],
)
def test_too_little_memory(memory: int, limits: Json, limit: str, available: int) -> None:
    """Tests the limit that is named for a stage of 70 bytes, and its numbers."""
    (finding,) = findings(review(small_problem(LAYERS, memory=memory, limits=limits), "ab", "c"))
    assert (finding.limit, finding.stage, finding.device) == (limit, 0, "node0:0")
    assert (finding.needed, finding.available, finding.short_by) == (70, available, 70 - available)
    assert finding.unit == "bytes"
    assert f"needs 70 bytes, {available} bytes are allowed: short by {70 - available} bytes" in finding.message


def test_too_much_between_nodes() -> None:
    """Tests that bytes are whole numbers in words too: 1234567 of a million."""
    link = {"bandwidth_bytes_per_s": 1e9}
    nodes = [{"name": name, "device": "gpu", "count": 1, "fabric": link, "uplink": link} for name in ("x", "y")]
    layers = LAYERS | {"b": LAYERS["b"] | {"output_bytes": 1_234_567}}
    problem = small_problem(layers, nodes=nodes, limits={"inter_node_bytes": 10**6})
    (finding,) = findings(review(problem, "ab", "c"))
    words = "inter_node_bytes is 1234567 bytes, the limit is 1000000 bytes: short by 234567 bytes"
    assert (finding.message, finding.unit) == (words, "bytes")


def test_too_slow() -> None:
    """Tests both limits on time: 11 s of 10, and 4 s of 3.5."""
    limits = {"iteration_time_s": 10.0, "bottleneck_time_s": 3.5}
    found = findings(review(small_problem(LAYERS, num_microbatches=2, limits=limits), "ab", "c"))
    assert [(each.limit, each.needed, each.available, each.short_by, each.unit) for each in found] == [
        ("limits.iteration_time_s", 11.0, 10.0, 1.0, "s"),
        ("limits.bottleneck_time_s", 4.0, 3.5, 0.5, "s"),
    ]


@pytest.mark.parametrize(
    ("limits", "needed", "available", "unit"),
    [
        ({"tokens_per_second": 0.2}, 11.0, 10.0, "s"),
        ({"microbatches_per_second": 0.5}, 4.0, 2.0, "s"),
        ({"num_devices": 1}, 2, 1, "devices"),
        ({"bubble_fraction": 0.25}, 4 / 11, 0.25, None),
    ],
)
def test_limits_on_rates_devices_and_the_bubble(
    limits: dict[str, float], needed: float, available: float, unit: str | None
) -> None:
    """Tests 2 tokens in 11 s, a bottleneck of 4 s, 2 devices, and a bubble, each beyond its limit."""
    (found,) = findings(review(small_problem(LAYERS, num_microbatches=2, limits=limits), "ab", "c"))
    assert found.limit == f"limits.{next(iter(limits))}"
    assert (found.needed, found.available) == (pytest.approx(needed), pytest.approx(available))
    assert found.unit == unit


def test_a_limit_that_is_just_met() -> None:
    """Tests that a limit equal to the time is kept."""
    limits = {"iteration_time_s": 11.0, "bottleneck_time_s": 4.0, "peak_memory_bytes": 70}
    assert review(small_problem(LAYERS, num_microbatches=2, limits=limits), "ab", "c").status == "feasible"


@pytest.mark.parametrize(
    ("constraints", "training", "limit", "layer"),
    [
        ({}, {"num_stages": 1}, "training.num_stages", None),
        ({"pins": {"c": 0}}, {}, "constraints.pins", "c"),
        ({"together": [["a", "c"]]}, {}, "constraints.together", "a"),
        ({"apart": [["a", "b"]]}, {}, "constraints.apart", "a"),
        ({"cut_after": ["a"]}, {}, "constraints.cut_after", "b"),
    ],
)
def test_a_demand_that_is_broken(
    constraints: dict[str, Any], training: dict[str, Any], limit: str, layer: str | None
) -> None:
    """Tests each demand with the plan ab, c."""
    answer = review(small_problem(LAYERS, constraints=constraints, **training), "ab", "c")
    (finding,) = findings(answer)
    assert (finding.limit, finding.layer) == (limit, layer)
    assert answer.infeasibility is not None
    assert answer.infeasibility.limits_in_force == (limit,)


def test_demands_that_are_kept() -> None:
    """Tests that the plan ab, c keeps demands that hold of it."""
    constraints = {"pins": {"c": 1}, "together": [["a", "b"]], "apart": [["a", "c"]], "cut_after": ["b"]}
    assert review(small_problem(LAYERS, constraints=constraints, num_stages=2), "ab", "c").status == "feasible"


def test_a_buffer_written_to_by_two_stages() -> None:
    """Tests that writers of one buffer must share a stage."""
    buffer = {"name": "cache", "bytes": 1, "layers": ["a", "c"], "mutated": True}
    (finding,) = findings(review(small_problem(LAYERS, model={"buffers": [buffer]}), "ab", "c"))
    assert finding.limit == "model.buffers"
    assert "'cache'" in finding.message


def test_several_at_once() -> None:
    """Tests that all that is broken is named, limits first."""
    problem = small_problem(LAYERS, devices=3, memory=60, constraints={"pins": {"a": 1}}, num_stages=3)
    found = findings(review(problem, "ab", "c"))
    assert [each.limit for each in found] == ["memory_bytes of gpu", "training.num_stages", "constraints.pins"]


def test_devices_that_cannot_be() -> None:
    """Tests a device that is not there, one of two stages, too many of one stage, and one of another node."""
    problem = small_problem(LAYERS)
    place = "/plan/stages/1/devices"
    for name in ("node0:2", "node0:00", "node0", "other:0", "node0:-1", "node0:1x"):
        assert (f"{place}/0", "unknown_name") in refusal(problem, "ab", "c", devices=[["node0:0"], [name]])
    assert refusal(problem, "ab", "c", devices=[["node0:0"], ["node0:0"]]) == [(f"{place}/0", "repeated")]
    assert refusal(problem, "ab", "c", devices=[["node0:0"], []]) == [(place, "devices")]
    nodes = [{"name": name, "device": "gpu", "count": 2, "fabric": FREE, "uplink": FREE} for name in "uv"]
    wide = small_problem(LAYERS, nodes=nodes, tensor_parallel=2)
    assert refusal(wide, "abc", devices=[["u:0", "v:0"]]) == [("/plan/stages/0/devices", "devices")]
    assert review(wide, "abc", devices=[["v:1", "v:0"]]).candidates[0].stages[0].devices == ("v:1", "v:0")


def test_devices_in_another_order() -> None:
    """Tests that the devices given are the ones priced: over the link from v to u, 1 s for a byte."""
    slow = {"bandwidth_bytes_per_s": 1e3}
    nodes = [{"name": name, "device": "gpu", "count": 1, "uplink": slow} for name in "uv"]
    layers = {"a": {"forward_s": 1.0, "output_bytes": 1000}, "b": {"forward_s": 1.0}}
    answer = review(small_problem(layers, nodes=nodes), "a", "b", devices=[["v:0"], ["u:0"]])
    (plan,) = answer.candidates
    assert plan.metrics.iteration_time_s == 3.0
    assert plan.boundaries[0].path == ("v uplink", "u uplink")
    assert [stage.devices for stage in plan.stages] == [("v:0",), ("u:0",)]


def test_a_layer_before_what_it_reads() -> None:
    """Tests a chain and a graph in the wrong order, and a graph whose order the plan may exchange."""
    assert refusal(small_problem(LAYERS), "b", "ac") == [("/plan", "order")]
    graph = small_problem(LAYERS, model=edges("a>c"))
    assert review(graph, "b", "ac").status == "feasible"
    assert refusal(graph, "bc", "a") == [("/plan", "order")]


def test_more_stages_than_room() -> None:
    """Tests three stages on two devices."""
    assert refusal(small_problem(LAYERS), "a", "b", "c") == [("/plan", "too_many_stages")]


def test_layers_that_are_missing_or_unknown() -> None:
    """Tests that every layer is on one stage and exists."""
    assert refusal(small_problem(LAYERS), "a", "b") == [("/plan/stages", "missing_layers")]
    assert refusal(small_problem(LAYERS), "ab", "cx") == [("/plan/stages/1/layers/1", "unknown_name")]
    assert refusal(small_problem(LAYERS), "ab", "cb") == [("/plan/stages/1/layers/1", "repeated")]


def test_more_stages_than_asked_on_more_nodes() -> None:
    """Tests that a plan with more stages, on more equal nodes, than asked for is priced, and said to be so."""
    layers = [{"name": f"l{i}", "forward_s": 1.0, "backward_s": 2.0} for i in range(6)]
    link = {"bandwidth_bytes_per_s": 1e9}
    node = {"name": "n", "replicas": 3, "device": "gpu", "count": 1, "uplink": link}
    data = {
        "model": {"layers": layers},
        "cluster": {"devices": {"gpu": {"memory_bytes": "1GB"}}, "nodes": [node]},
        "training": {"schedule": "1f1b", "num_stages": 1, "num_microbatches": 2},
    }
    stages = [{"layers": [f"l{2 * k}", f"l{2 * k + 1}"], "devices": [f"n{k}:0"]} for k in range(3)]
    for plan in ({"stages": stages}, {"stage_sizes": [2, 2, 2]}):
        answer = evaluate_plan(validate(Problem, data), validate(GivenPlan, plan))
        assert [stage.devices for stage in answer.candidates[0].stages] == [("n0:0",), ("n1:0",), ("n2:0",)]
        assert answer.infeasibility is not None
        assert answer.infeasibility.limits_in_force == ("training.num_stages",)
