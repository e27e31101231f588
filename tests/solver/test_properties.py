"""Tests what must hold for the plans of any problem, and between the plans of related problems."""

from copy import deepcopy
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


def best_value(problem: Json) -> float | None:
    """Give the value of the best plan; None where there is none."""
    answer = plan(problem, candidates=1)
    assert answer.status in ("optimal", "infeasible")
    return value_of(read(problem), answer.candidates[0]) if answer.candidates else None


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
def test_the_names_of_nodes_do_not_matter(problem: Json) -> None:
    """Tests that listing the nodes in another order and under other names keeps the value."""
    renamed = deepcopy(problem)
    renamed["cluster"]["nodes"].reverse()
    for node in renamed["cluster"]["nodes"]:
        node["name"] = f"other-{node['name']}"
    for link in renamed["cluster"].get("links", []):
        link["between"] = [f"other-{end}" for end in reversed(link["between"])]
    before, after = best_value(problem), best_value(renamed)
    assert (after is None) == (before is None)
    if before is not None:
        assert after == pytest.approx(before, rel=1e-9)


@some
@given(problem=problems(), factor=st.sampled_from([0.125, 0.5, 2.0, 8.0]))
def test_scaling_the_times_scales_the_best_plan(problem: Json, factor: float) -> None:
    """Tests that a cluster slower by a factor gives times larger by that factor, and the same memory."""
    before = best_value(problem)
    after = best_value(slower(problem, factor))
    if before is None:
        assert after is None
        return
    assert after is not None
    expected = {"peak_memory": before, "tokens_per_second": before / factor}.get(problem["objective"], before * factor)
    assert after == pytest.approx(expected, rel=1e-9)


def slower(problem: Json, factor: float) -> Json:
    """Multiply every time by a factor."""
    scaled = deepcopy(problem)
    costs = [*scaled["model"]["layers"], *(o for layer in scaled["model"]["layers"] for o in layer.get("options", []))]
    optimizer = scaled["training"].get("optimizer")
    for place in [*costs, scaled.get("limits", {}), *([optimizer] if isinstance(optimizer, dict) else [])]:
        for field in [field for field in place if field.endswith("_s")]:
            place[field] *= factor
    ways = [node[end] for node in scaled["cluster"]["nodes"] for end in ("fabric", "uplink")]
    for way in [*ways, *scaled["cluster"].get("links", [])]:
        way["bandwidth_bytes_per_s"] /= factor
        way["latency_s"] *= factor
    return scaled


@some
@given(problem=problems(), more=st.integers(1, 2**40))
def test_more_memory_never_hurts(problem: Json, more: int) -> None:
    """Tests that a plan stays possible, and none gets worse, when every device has more memory."""
    larger = deepcopy(problem)
    larger["cluster"]["devices"]["gpu"]["memory_bytes"] += more
    before, after = best_value(problem), best_value(larger)
    if before is None:
        return
    assert after is not None
    if problem["objective"] == "tokens_per_second":
        assert after >= before * (1 - 1e-9)
    else:
        assert after <= before * (1 + 1e-9)


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
