"""Tests of weighted sums, lists of metrics and limits on every metric, against all plans of random problems."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from oracle.comparison import check_answer, check_candidate
from oracle.search import METRICS, Plan, every_plan, keeps_limits
from oracle.small import optimal, small_problem
from partita.models.answer import Answer
from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.solver.planner import plan_problem
from partita.solver.targets import MOST_UNITS, Span, weighted_sum
from strategies import Json, read, seeded_problem

SOLVERS = pytest.mark.parametrize(("solver", "tolerance"), [("cp-sat", 1e-9), ("highs", 1e-6)])
FIELDS = ("iteration_time_s", "peak_memory_bytes", "bottleneck_time_s", "num_devices", "inter_node_bytes")
LIMITED = (*FIELDS, "tokens_per_second", "microbatches_per_second", "bubble_fraction")


def problem_of(seed: int, solver: str, objective: Any, limits: Json | None = None) -> Problem:
    """Give the seed's problem with another objective and further limits."""
    json = seeded_problem(seed)
    search = {"candidates": 4, "time_limit_s": 120.0, "workers": 1, "solver": solver}
    limits = {**json.get("limits", {}), **(limits or {})}
    return read(json | {"objective": objective, "search": search, "limits": limits})


def weights_of(random: Random, plans: list[Plan]) -> dict[str, float]:
    """Draw weights with which several metrics count about equally."""
    chosen = random.sample(FIELDS, random.randint(1, 4))
    largest = {field: max(getattr(plan.price, field) for plan in plans) for field in chosen}
    return {field: random.randint(1, 5000) / 1000 / (largest[field] or 10**12) for field in chosen}


@SOLVERS
@pytest.mark.parametrize("seed", range(60))
def test_weighted_sums(seed: int, solver: str, tolerance: float) -> None:
    """Tests the best plans by a weighted sum, with both solvers."""
    plans = every_plan(problem_of(seed, solver, "iteration_time"))
    if not plans:
        pytest.skip("no plan keeps the limits")
    problem = problem_of(seed, solver, weights_of(Random(seed), plans))
    check_answer(problem, plan_problem(problem), every_plan(problem), tolerance)


@pytest.mark.parametrize("seed", range(80))
def test_lists_of_metrics(seed: int) -> None:
    """Tests that plans come in the order of all metrics of a list, and that every level is proven."""
    random = Random(seed)
    names = random.sample([name for name in METRICS if name != "tokens_per_second"], random.randint(1, 4))
    if "iteration_time" in names and random.random() < 0.5:
        names[names.index("iteration_time")] = "tokens_per_second"
    problem = problem_of(seed, "cp-sat", names)
    check_levels(problem, plan_problem(problem), every_plan(problem), names)


def check_levels(problem: Problem, answer: Answer, plans: list[Plan], names: list[str]) -> None:
    """Check an answer to a list of metrics against all plans in order."""
    assert answer.status == ("optimal" if plans else "infeasible")
    assert len(answer.candidates) == min(problem.search.candidates, len(plans))
    for candidate, plan in zip(answer.candidates, plans, strict=False):
        check_candidate(problem, candidate)
        for name in names:
            expected = pytest.approx(getattr(plan.price, METRICS[name]), rel=1e-9, abs=0)
            assert getattr(candidate.metrics, METRICS[name]) == expected, name
    if plans and len(names) > 1:
        assert [level.objective for level in answer.levels] == names
        assert all(level.value == level.best_bound for level in answer.levels)


@SOLVERS
@pytest.mark.parametrize("seed", range(80))
def test_limits_on_every_metric(seed: int, solver: str, tolerance: float) -> None:
    """Tests that a limit between the values of two plans rules out just those that break it."""
    random, field = Random(seed), LIMITED[seed % len(LIMITED)]
    objective = random.choice(["iteration_time", "peak_memory", "bottleneck_time", "num_devices", "inter_node_bytes"])
    free = problem_of(seed, solver, objective)
    if field == "bubble_fraction" and free.training.communication == "blocking":
        pytest.skip("refused")
    limit = between(random, every_plan(free), field)
    if limit is None:
        pytest.skip("all plans have one value")
    problem = problem_of(seed, solver, objective, {field: limit})
    plans = every_plan(problem)
    assert all(keeps_limits(problem, plan.price) for plan in plans)
    check_answer(problem, plan_problem(problem), plans, tolerance)


def between(random: Random, plans: list[Plan], field: str) -> float | int | None:
    """Draw a limit that some plans keep and others break, far from either; None where there is none."""

    def value(plan: Plan) -> float:
        if field == "microbatches_per_second":
            return 1 / plan.price.bottleneck_time_s if plan.price.bottleneck_time_s else 0.0
        return float(getattr(plan.price, field) or 0.0)

    values = sorted({value(plan) for plan in plans})
    pairs = [(low, high) for low, high in pairwise(values) if high > low * (1 + 1e-5) and low > 0]
    if not pairs:
        return None
    low, high = random.choice(pairs)
    whole = field in ("peak_memory_bytes", "num_devices", "inter_node_bytes")
    return int(low) if whole else (low + high) / 2


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
