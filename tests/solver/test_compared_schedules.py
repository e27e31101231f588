"""Tests of problems that list several schedules to compare."""

from typing import Any

import pytest

from oracle.small import small_problem
from partita.models.answer import Answer
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan

LAYERS = {
    name: {
        "forward_s": 1.0 + 0.3 * index,
        "backward_s": 2.2 + 0.5 * index,
        "weight_gradient_s": 1.0 + 0.2 * index,
        "activation_bytes": 10_000 + 1000 * index,
        "output_bytes": 5000,
    }
    for index, name in enumerate("abcdefgh")
}
EVERY = ["gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_h2", "zb_v", "interleaved_zb", "looped_bfs"]
LINK = {"bandwidth_bytes_per_s": 1e4, "latency_s": 0.05}


def problem_with(schedule: Any, num_microbatches: int = 4, **changes: Any) -> Problem:
    """Give a chain of eight layers on two nodes of two devices."""
    nodes = [{"name": f"n{i}", "device": "gpu", "count": 2, "fabric": LINK, "uplink": LINK} for i in range(2)]
    return small_problem(
        LAYERS, nodes=nodes, schedule=schedule, num_microbatches=num_microbatches, num_stages=4, **changes
    )


def value(answer: Answer, objective: str = "iteration_time_s") -> float:
    """Give the best plan's metric."""
    return float(getattr(answer.candidates[0].metrics, objective))


def test_each_schedule_gets_its_own_result() -> None:
    """Tests that the best schedule wins, and that no bound is beyond what the schedule reaches when planned alone."""
    answer = plan_problem(problem_with(EVERY, search={"candidates": 1}))
    alone = {kind: plan_problem(problem_with(kind, search={"candidates": 1})) for kind in EVERY}
    best = min(alone, key=lambda kind: value(alone[kind]))
    assert answer.status == "optimal"
    assert value(answer) == pytest.approx(value(alone[best]), rel=1e-9)
    assert answer.candidates[0].schedule.kind == answer.schedules[0].schedule.kind == best
    assert {result.schedule.kind for result in answer.schedules} == set(EVERY)
    for result in answer.schedules:
        optimum = value(alone[result.schedule.kind])
        assert result.objective_value is not None and result.best_bound is not None
        assert result.best_bound <= optimum * (1 + 1e-9) <= result.objective_value * (1 + 2e-9)
        if result.status == "optimal":
            assert result.objective_value == pytest.approx(optimum, rel=1e-9)
        else:
            assert result.status == "cut_off"
            assert result.best_bound >= value(answer)
    values = [result.objective_value for result in answer.schedules]
    assert values == sorted(values, key=lambda each: each or 0.0)


def test_a_schedule_that_does_not_fit() -> None:
    """Tests that a schedule which needs too much memory is reported as infeasible beside one that fits."""
    answer = plan_problem(problem_with(["1f1b", "gpipe"], num_microbatches=8, memory=150_000, search={"candidates": 1}))
    results = {result.schedule.kind: result for result in answer.schedules}
    assert answer.status == "optimal"
    assert results["1f1b"].status == "optimal"
    assert (results["gpipe"].status, results["gpipe"].objective_value) in (("infeasible", None), ("cut_off", None))


def test_one_schedule_is_no_comparison() -> None:
    """Tests that a single schedule, listed or not, has nothing to compare."""
    assert plan_problem(problem_with("1f1b")).schedules == ()
    assert plan_problem(problem_with(["1f1b"])).schedules == ()


def test_a_given_plan_under_all_schedules() -> None:
    """Tests that a plan is priced under every schedule, the best first."""
    problem = problem_with(["gpipe", "zb_h1", "1f1b"])
    answer = evaluate_plan(problem, GivenPlan(stage_sizes=(3, 2, 2, 1)))
    times = [candidate.metrics.iteration_time_s for candidate in answer.candidates]
    assert [candidate.rank for candidate in answer.candidates] == [1, 2, 3]
    assert times == sorted(times)
    assert answer.candidates[0].schedule.kind == "zb_h1"


def test_every_schedule_takes_the_numbers_of_stages_that_it_can_run() -> None:
    """Tests that a list of numbers of stages lets schedules with one and two stages on a rank use all ranks."""
    problem = small_problem(LAYERS, devices=4, schedule=["1f1b", "zb_v"], num_microbatches=8, num_stages=[4, 8])
    answer = plan_problem(problem)
    stages = {each.schedule.kind: len(each.stages) for each in answer.candidates}
    assert stages["zb_v"] == 8
    assert {result.schedule.kind: result.status for result in answer.schedules}["zb_v"] == "optimal"


def test_a_comparison_on_different_numbers_of_ranks_is_told() -> None:
    """Tests the warnings of a comparison that is not one of schedules alone, and of one that lacks a schedule."""
    answer = plan_problem(small_problem(LAYERS, devices=4, schedule=["1f1b", "zb_v"], num_microbatches=8, num_stages=4))
    assert any("1f1b on 4, zb_v on 2" in warning for warning in answer.warnings)
    layers = {name: cost | {"activation_bytes": 100, "output_bytes": 0} for name, cost in LAYERS.items()}
    answer = plan_problem(
        small_problem(layers, devices=2, memory=1500, schedule=["gpipe", "1f1b"], num_microbatches=16, num_stages=2)
    )
    assert answer.status == "optimal"
    assert any(warning.startswith("gpipe cannot be planned") for warning in answer.warnings)


def test_schedules_that_cannot_run_a_given_plan_are_named() -> None:
    """Tests that a plan with more stages than ranks is priced under the schedules that can run it."""
    problem = small_problem(LAYERS, devices=2, schedule=["1f1b", "zb_v"], num_microbatches=8, num_stages=[2, 4])
    answer = evaluate_plan(problem, GivenPlan(stage_sizes=(2, 2, 2, 2)))
    assert [each.schedule.kind for each in answer.candidates] == ["zb_v"]
    assert any(warning.startswith("1f1b cannot run this plan") for warning in answer.warnings)
