"""Tests of weighted sums, lists of metrics and limits on metrics, by hand."""

from random import Random

import pytest

from oracle.search import every_plan
from oracle.small import optimal, small_problem
from partita.models.errors import InvalidInput
from partita.solver.planner import plan_problem
from partita.solver.targets import MOST_UNITS, Span, weighted_sum
from strategies import read


@pytest.mark.parametrize("seed", range(200))
def test_parts_of_a_sum_add_up(seed: int) -> None:
    """Tests that weights become whole numbers without losing more than a billionth, and without overflow."""
    random = Random(seed)
    names = ["iteration_time", "bottleneck_time", "peak_memory", "num_devices", "inter_node_bytes"]
    weights, spans, values = {}, {}, {}
    for name in random.sample(names, random.randint(2, 5)):
        least = random.randint(1, 2**36) if name != "num_devices" else random.randint(1, 8)
        each = 10 ** random.uniform(-15, -11) if name.endswith("time") else 1.0
        spans[name] = Span(least, least * random.randint(1, 1000), each)
        weights[name] = random.uniform(0.1, 1) * 10 ** random.randint(-3, 0) / (least * each)
        values[name] = random.randint(least, spans[name].most)
    target = weighted_sum(weights, spans)
    exact = sum(weights[name] * spans[name].each * value for name, value in values.items())
    assert target.rounding <= 1e-9
    assert target.value(values) * target.unit == pytest.approx(exact, rel=1e-9, abs=0)
    assert all(part.times * spans[part.metric].most <= MOST_UNITS for part in target.parts)
    for metric, most in target.most(target.value(values), values):
        assert most >= values[metric], "a plan is within its own value"


def test_traffic_where_a_plan_may_have_few_stages() -> None:
    """Tests that plans on one node are found although more stages, which need both, are possible in steady state."""
    link = {"bandwidth_bytes_per_s": 1e9}
    nodes = [{"name": f"n{i}", "device": "gpu", "count": 2, "fabric": link, "uplink": link} for i in range(2)]
    layers = {name: {"forward_s": 1.0, "output_bytes": 10} for name in "abcdef"}
    for objective in ("inter_node_bytes", ["inter_node_bytes", "bottleneck_time"]):
        answer = optimal(small_problem(layers, nodes=nodes, num_microbatches=3, objective=objective))
        assert answer.best_bound == answer.candidates[0].metrics.inter_node_bytes == 0
    assert answer.candidates[0].metrics.bottleneck_time_s == 3.0
    answer = optimal(small_problem(layers, nodes=nodes, num_microbatches=3, num_stages=3, objective="inter_node_bytes"))
    assert answer.best_bound == 30


def test_tied_weights_under_a_limit_on_the_bubble() -> None:
    """Tests that what follows the makespan is not taken for the same in all plans: another plan is as good."""
    times = [(13, 9), (5, 15), (7, 15), (17, 10), (18, 10), (12, 6)]
    layers = {
        name: {"forward_s": forward, "backward_s": backward, "weight_bytes": 10, "output_bytes": size}
        for name, (forward, backward), size in zip("abcdef", times, (1, 5, 1, 5, 1, 1), strict=True)
    }
    nodes = [
        {"name": name, "device": "gpu", "count": 2, "fabric": {"bandwidth_bytes_per_s": 1e4},
         "uplink": {"bandwidth_bytes_per_s": 1e3}}
        for name in ("x", "y", "z")
    ]  # fmt: skip
    weights = [
        {"name": "w", "bytes": 10_000, "layers": ["a", "f"]},
        {"name": "v", "bytes": 100_000, "layers": ["b", "e"]},
    ]
    problem = small_problem(
        layers, nodes=nodes, model={"weights": weights}, schedule="1f1b", num_stages=4, num_microbatches=4,
        optimizer="adam_mixed", limits={"bubble_fraction": 0.5018445425105632}, search={"candidates": 2},
    )  # fmt: skip
    answer, plans = plan_problem(problem), every_plan(problem)
    found = [each.metrics.iteration_time_s for each in answer.candidates]
    assert found == pytest.approx([plan.value for plan in plans[:2]], rel=1e-9)


@pytest.mark.parametrize("second", ["peak_memory_bytes", "num_devices"])
def test_weights_that_count_one_metric_only(second: str) -> None:
    """Tests a sum in which times hardly count: what they may be is more than can be counted."""
    objective = {"iteration_time_s": 1.0, second: 1e6}
    json = small_problem("abcd", num_microbatches=2, num_stages=2).model_dump(mode="json", by_alias=True)
    for layer in json["model"]["layers"]:
        layer["weight_bytes"] = 10**6
    answer = plan_problem(read(json | {"objective": objective}))
    assert answer.status in ("optimal", "feasible")
    assert [len(stage.layers) for stage in answer.candidates[0].stages] == [2, 2]


def test_weights_too_far_apart() -> None:
    """Tests that weights that 64 bits cannot hold together are refused with the place and a remedy."""
    json = small_problem("abcd", num_microbatches=2, num_stages=2).model_dump(mode="json", by_alias=True)
    json["model"]["layers"][0]["weight_bytes"] = 10**9
    with pytest.raises(InvalidInput, match="/objective: the weights are too far apart"):
        plan_problem(read(json | {"objective": {"iteration_time_s": 1.0, "peak_memory_bytes": 1e30}}))
