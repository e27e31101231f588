"""Tests of problems whose times are so far apart that they cannot all be counted in common ticks."""

from typing import Any

import pytest

from oracle.comparison import check_answer
from oracle.search import every_plan
from oracle.small import optimal, small_problem
from partita.models.plan import GivenPlan
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan

LAYERS = {
    name: {"forward_s": seconds} for name, seconds in zip("abcdef", (1e-7, 2e-7, 1e-7, 3e-7, 1e-7, 1e-7), strict=True)
}


def node(name: str, count: int, latency_s: float, uplink: float = 1e12) -> dict[str, Any]:
    """Give a node whose fabric takes so long to answer."""
    fabric = {"bandwidth_bytes_per_s": 1e12, "latency_s": latency_s}
    return {
        "name": name,
        "device": "gpu",
        "count": count,
        "fabric": fabric,
        "uplink": {"bandwidth_bytes_per_s": uplink},
    }


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("latency_s", [1e3, 1e6, 1e9])
def test_a_fabric_that_takes_years(count: int, latency_s: float) -> None:
    """Tests that a path that no good plan uses, or none at all, does not blur the others."""
    nodes = [node("x", 2, 0.0), node("y", count, latency_s)]
    problem = small_problem(
        LAYERS, nodes=nodes, schedule="1f1b", num_stages=2, num_microbatches=8, search={"candidates": 3}
    )
    check_answer(problem, optimal(problem), every_plan(problem), 1e-9)


def test_a_limit_beside_a_slow_fabric() -> None:
    """Tests that a limit which a plan meets exactly is not called impossible."""
    nodes = [node("left", 1, 1e9, 1e9), node("right", 1, 0.0, 1e9)]
    layers = {"a": {"forward_s": 1e-6}, "b": {"forward_s": 1e-6}}
    limits = {"bottleneck_time_s": 1.1e-6}
    problem = small_problem(layers, nodes=nodes, num_stages=2, num_microbatches=5, limits=limits)
    assert optimal(problem).candidates[0].metrics.bottleneck_time_s == pytest.approx(1e-6)


def test_no_way_around_a_slow_path() -> None:
    """Tests that what cannot be counted exactly is said, and nothing is called optimal for it."""
    nodes = [node("x", 1, 0.0, 1e3), node("y", 1, 0.0, 1e3), node("z", 1, 0.0, 1e3)]
    layers = {name: cost | {"output_bytes": 10**14, "weight_bytes": 1} for name, cost in LAYERS.items()}
    problem = small_problem(
        layers, nodes=nodes, memory=2**60, num_stages=2, num_microbatches=8, search={"candidates": 3}
    )
    answer = plan_problem(problem)
    assert answer.status in ("optimal", "feasible")
    assert answer.status == "optimal" or any("too far apart" in warning for warning in answer.warnings)
    times = [candidate.metrics.iteration_time_s for candidate in answer.candidates]
    assert times == sorted(times)
    assert answer.best_bound is None or answer.best_bound <= times[0]


def test_a_limit_on_another_metric_than_the_objective() -> None:
    """Tests that what a limit on the iteration forbids is counted as long as it takes, whatever the bottleneck is."""
    slow = {"bandwidth_bytes_per_s": 1e3}
    layers = {name: {"forward_s": 1e-6, "backward_s": 1e-6} for name in "abcd"}
    problem = small_problem(
        layers,
        nodes=[{"name": "n", "device": "gpu", "count": 2, "fabric": slow}],
        memory=2**60,
        model={"weights": [{"name": "w", "bytes": 10**12, "layers": ["a", "d"]}]},
        schedule="1f1b",
        num_stages=[1, 2],
        num_microbatches=4,
        objective="bottleneck_time",
        limits={"iteration_time_s": 1e8},
        search={"candidates": 1},
    )
    (best,) = plan_problem(problem).candidates
    assert len(best.stages) == 1
    assert best.metrics.bottleneck_time_s == pytest.approx(8e-6)


def test_the_bound_of_an_evaluated_plan_is_not_beyond_it() -> None:
    """Tests that rounding does not put the bound by arithmetic on the other side of the plan."""
    layers = {"a": {"forward_s": 0.1, "backward_s": 0.2}, "b": {"forward_s": 0.7, "backward_s": 0.11}}
    problem = small_problem(layers, devices=1, schedule="1f1b", num_microbatches=7)
    answer = evaluate_plan(problem, GivenPlan(stage_sizes=(2,)))
    assert answer.best_bound is not None
    assert answer.best_bound <= answer.candidates[0].metrics.iteration_time_s
    assert answer.relative_gap == 0.0
