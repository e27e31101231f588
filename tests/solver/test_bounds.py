"""Tests of the bounds by arithmetic: no plan is better, and where layers are equal they are nearly met."""

import numpy as np
import pytest

from oracle.small import equal_layers, small_problem
from partita.solver.bounds import least_metric
from partita.solver.event_graph import EventGraph
from partita.solver.pipeline import arrange
from partita.solver.planner import plan_problem
from partita.solver.variants import make_variants

LINK = {"bandwidth_bytes_per_s": 1e3, "latency_s": 0.1}


@pytest.mark.parametrize("kind", ["1f1b", "gpipe", "forward_only"])
@pytest.mark.parametrize("seed", range(40))
def test_no_pipeline_is_faster_than_the_bound(kind: str, seed: int) -> None:
    """Tests the exact makespan of random stages, one layer each, against the bound of their problem."""
    random = np.random.default_rng(seed)
    stages, microbatches = int(random.integers(1, 7)), int(random.integers(1, 14))
    times = random.integers(1, 60, (2, stages)) * (1.0 if seed % 3 else random.choice([1.0, 9.0], (2, stages)))
    layers = {f"l{number}": {"forward_s": times[0, number], "backward_s": times[1, number]} for number in range(stages)}
    problem = small_problem(
        layers, devices=stages, schedule=kind, num_stages=stages, num_microbatches=microbatches, optimizer="none"
    )
    (variant,) = make_variants(problem)
    graph = EventGraph(arrange(variant.instance.schedule, stages, microbatches), skipping=False, blocking=False)
    row = np.zeros((1, graph.num_columns))
    row[0, : 2 * stages] = (times * [[1], [kind != "forward_only"]]).ravel()
    bound = variant.judge.figures.seconds(least_metric(variant.judge, stages, "iteration_time"))
    assert bound <= graph.makespans(row)[0] * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "factor"), [("1f1b", 9 + 3), ("gpipe", 9 + 3), ("forward_only", 9 + 3)])
def test_the_bound_of_equal_stages_is_met(kind: str, factor: int) -> None:
    """Tests (m + S - 1) times the load for four equal stages and nine microbatches."""
    layers = equal_layers("abcdefgh", forward_s=1.0, backward_s=2.0)
    problem = small_problem(layers, devices=4, schedule=kind, num_stages=4, num_microbatches=9)
    (variant,) = make_variants(problem)
    bound = variant.judge.figures.seconds(least_metric(variant.judge, 4, "iteration_time"))
    assert bound == pytest.approx(factor * (2.0 if kind == "forward_only" else 6.0), rel=1e-8)


def test_the_bound_counts_what_follows_the_pipeline() -> None:
    """Tests the mean all-reduce on the best path and the step, which equal stages on equal nodes need."""
    layers = equal_layers("abcd", forward_s=1.0, backward_s=2.0, weight_bytes=1000)
    optimizer = {"gradient_bytes_per_weight_byte": 1.0, "state_bytes_per_weight_byte": 0.0, "step_s": 0.5}
    problem = small_problem(
        layers,
        nodes=[{"name": "n", "device": "gpu", "count": 4, "fabric": LINK}],
        schedule="1f1b",
        num_stages=2,
        num_microbatches=5,
        data_parallel=2,
        optimizer=optimizer,
    )
    (variant,) = make_variants(problem)
    bound = variant.judge.figures.seconds(least_metric(variant.judge, 2, "iteration_time"))
    assert bound == pytest.approx((5 + 1) * 6.0 + 0.5 + 0.1 + 2.0, rel=1e-8)
    (best, *_) = plan_problem(problem).candidates
    assert bound <= best.metrics.iteration_time_s


@pytest.mark.parametrize("seed", range(10))
def test_the_load_is_that_of_the_best_division(seed: int) -> None:
    """Tests the bottleneck of a chain without transfers, which no division into intervals undercuts."""
    random = np.random.default_rng(seed)
    layers = {f"l{number}": {"forward_s": float(random.integers(1, 20))} for number in range(9)}
    problem = small_problem(layers, devices=3, num_stages=3, num_microbatches=4, objective="bottleneck_time")
    (variant,) = make_variants(problem)
    bound = variant.judge.figures.seconds(least_metric(variant.judge, 3, "bottleneck_time"))
    assert bound == pytest.approx(plan_problem(problem).candidates[0].metrics.bottleneck_time_s, rel=1e-8)
