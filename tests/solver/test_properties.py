"""Tests what must hold for the plans of any problem."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oracle.comparison import check_candidate, key_of, partition_of, value_of
from oracle.facts import read_facts
from oracle.partitions import keeps_constraints
from oracle.search import every_plan, memory_limit
from partita.models.answer import Answer
from partita.solver.planner import plan_problem
from strategies import Json, problems, read, seeded_problem

some = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def plan(problem: Json, **search: object) -> Answer:
    """Plan a problem with time enough."""
    return plan_problem(read(problem | {"search": {"candidates": 3, "time_limit_s": 60.0, "workers": 1} | search}))


@some
@given(problem=problems())
def test_plans_keep_every_rule(problem: Json) -> None:
    """Tests coverage, no empty stage, precedence, constraints and memory."""
    model = read(problem)
    facts = read_facts(model)
    for candidate in plan(problem).candidates:
        names = [name for stage in candidate.stages for name in stage.layers]
        assert sorted(names) == sorted(facts.names)
        assert all(stage.layers for stage in candidate.stages)
        partition = partition_of(model, candidate)
        assert keeps_constraints(model, facts, partition)
        for tensor in facts.tensors:
            readers = () if tensor.backward else tensor.consumers
            assert all(partition[tensor.producer] <= partition[reader] for reader in readers)
        assert max(stage.memory.total_bytes for stage in candidate.stages) <= memory_limit(model, facts)
        check_candidate(model, candidate)


@some
@given(problem=problems(), seconds=st.sampled_from([1e-3, 0.05, 60.0]))
def test_bounds_hold(problem: Json, seconds: float) -> None:
    """Tests that no bound is better than the truth, whether or not time ran out, and that the order is right."""
    model = read(problem)
    answer = plan(problem, time_limit_s=seconds)
    sign = -1.0 if model.objective == "tokens_per_second" else 1.0
    truth = [sign * found.value for found in every_plan(model)]
    if answer.status == "infeasible":
        assert not truth
    if answer.best_bound is not None and truth:
        assert sign * answer.best_bound <= truth[0] + 1e-9 * abs(truth[0])
    values = [sign * value_of(model, candidate) for candidate in answer.candidates]
    assert all(one <= two + 1e-9 * abs(two) for one, two in pairwise(values))
    for rank, candidate in enumerate(answer.candidates):
        if candidate.best_bound is not None:
            assert sign * candidate.best_bound <= truth[rank] + 1e-9 * abs(truth[rank])
            assert sign * candidate.best_bound <= values[rank] + 1e-9 * abs(values[rank])


@some
@given(problem=problems())
def test_the_same_problem_gets_the_same_answer(problem: Json) -> None:
    """Tests that two runs give the same bytes but for the effort, and no plan twice."""
    first, second = (plan(problem).model_copy(update={"solver": None}).model_dump_json() for _ in range(2))
    assert first == second
    model = read(problem)
    keys = [key_of(model, candidate) for candidate in plan(problem).candidates]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("relative_gap", [0.05, 0.3, 1.0])
def test_a_gap_that_is_allowed(seed: int, relative_gap: float) -> None:
    """Tests that candidates stay in order, that no more is left than was allowed, and that bounds hold."""
    search = {"candidates": 5, "time_limit_s": 60.0, "relative_gap": relative_gap}
    problem = read(seeded_problem(5000 + seed) | {"search": search})
    answer = plan_problem(problem)
    if not answer.candidates:
        return
    rate = problem.objective == "tokens_per_second"
    field = {"tokens_per_second": "tokens_per_second", "peak_memory": "peak_memory_bytes"}
    name = field.get(str(problem.objective), f"{problem.objective}_s")
    values = [getattr(each.metrics, name) for each in answer.candidates]
    assert all(
        later <= value * (1 + 1e-9) if rate else later >= value * (1 - 1e-9) for value, later in pairwise(values)
    )
    assert answer.relative_gap is None or answer.relative_gap <= relative_gap
    assert (answer.relative_gap is None) == (answer.best_bound is None)
