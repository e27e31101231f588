"""Tests that equal layers side by side are recognized, searched in one order, and ranked in all."""

from itertools import islice
from typing import Any

import pytest

from oracle.ranking import check_ranking
from oracle.small import FREE, Json, edges, session_of, small_problem
from oracle.ways import every_way, ranked
from partita.models.problem import Problem
from partita.solver.equal_layers import equal_layers
from partita.solver.planner import plan_problem
from partita.solver.twins import _orders, _together

COSTS: Json = {"forward_s": 1.0, "backward_s": 2.0, "weight_bytes": 10, "activation_bytes": 5}
BLOCK = ("a>bcd", "b>e", "c>e", "d>e", "e>f")


def block(model: Json | None = None, **given: Any) -> Problem:
    """Give three equal layers b, c and d between a and e, and f behind."""
    tensors = edges(*given.pop("ways", BLOCK), size=100)
    layers = {name: dict(COSTS) for name in "abcdef"} | given.pop("layers", {})
    usual: Json = {"num_stages": 2, "num_microbatches": 4, "schedule": "1f1b"}
    return small_problem(layers, model=tensors | (model or {}), **usual | given)


def twins_of(problem: Problem) -> list[str]:
    """Give the names of every set of equal layers, joined."""
    names = [layer.name for layer in problem.model.layers]
    return ["".join(names[at] for at in each) for each in equal_layers(problem)]


def test_layers_side_by_side_are_found() -> None:
    """Tests three of one set, which leave one order of all layers."""
    problem = block()
    assert twins_of(problem) == ["bcd"]
    (variant,) = session_of(problem).variants
    assert variant.judge.groups.twins == ((1, 2, 3),)
    assert variant.judge.groups.total_order


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"layers": {"b": COSTS | {"forward_s": 1.5}}}, ["cd"]),
        ({"layers": {"b": COSTS | {"options": [{"recompute": "full", "activation_bytes": 1}]}}}, ["cd"]),
        ({"ways": ("a>bcd", "b>e", "c>e", "d>ef", "e>f")}, ["bc"]),
        ({"ways": ("a>bc", "a>d", "b>e", "c>e", "d>e", "e>f")}, ["bc"]),
        ({"ways": (*BLOCK, "f<b")}, ["cd"]),
        ({"constraints": {"pins": {"b": 0}}}, ["cd"]),
        ({"constraints": {"together": [["b", "c"]]}}, ["bc"]),
        ({"constraints": {"apart": [["b", "c"]]}}, ["bc"]),
        ({"constraints": {"cut_after": ["a", "c", "e"]}}, ["bd"]),
        ({"model": {"weights": [{"name": "w", "bytes": 9, "layers": ["b", "f"]}]}}, ["cd"]),
        ({"model": {"weights": [{"name": f"w{x}", "bytes": 9, "layers": [x]} for x in "bcd"]}}, ["bcd"]),
        ({"model": {"shared_activations": [{"bytes": 9, "layers": ["b", "c"]}]}}, ["bc"]),
        ({"model": {"buffers": [{"name": "n", "bytes": 9, "layers": ["d"]}]}}, ["bc"]),
    ],
)
def test_what_makes_a_difference(given: Json, expected: list[str]) -> None:
    """Tests costs, options, tensors in either pass, demands and storages of one of the layers."""
    assert twins_of(block(**given)) == expected


def test_layers_in_a_row_are_no_twins() -> None:
    """Tests equal layers that read from each other, and a chain."""
    assert twins_of(block(ways=("a>b", "b>c", "c>d", "d>e", "e>f"))) == []
    assert twins_of(small_problem("abcd")) == []


@pytest.mark.parametrize("candidates", [1, 2, 5, 9, 40])
@pytest.mark.parametrize(
    "given", [{}, {"memory": 300}, {"num_stages": None, "devices": 4}, {"objective": "peak_memory"}]
)
def test_all_images_are_ranked(candidates: int, given: Json) -> None:
    """Tests that plans which differ in which of the layers is where are all ranked, each once."""
    links = {"fabric": FREE | {"bandwidth_bytes_per_s": 1e3}}
    devices = given.get("devices", 2)
    nodes = [{"name": "node", "device": "gpu", "count": devices, **links}]
    problem = block(nodes=nodes, search={"candidates": candidates}, **given)
    plans = ranked(problem, every_way(problem))
    assert len(plans) > 3
    check_ranking(problem, plan_problem(problem), plans)


def test_a_plan_in_use_with_layers_the_other_way_round() -> None:
    """Tests that a plan which the search knows in another order of equal layers is kept as it is, and named once."""
    stages = [{"layers": ["a", "d"]}, {"layers": ["b", "c", "e", "f"]}]
    problem = block(search={"candidates": 8, "keep": {"stages": stages}, "keep_if_within": 1.0})
    answer = plan_problem(problem)
    assert answer.status in ("optimal", "feasible")
    found = [tuple(stage.layers for stage in each.stages) for each in answer.candidates]
    assert found[0] == (("a", "d"), ("b", "c", "e", "f"))
    assert len(set(found)) == len(found)
    values = [each.metrics.iteration_time_s for each in answer.candidates[1:]]
    assert values == sorted(values)


@pytest.mark.parametrize(("solver", "tolerance"), [("cp-sat", 1e-9), ("highs", 1e-6)])
@pytest.mark.parametrize("memory", [62, 75, 90])
def test_how_many_are_recomputed(memory: int, solver: str, tolerance: float) -> None:
    """Tests equal layers in a row with two options each, of which only how many run by which counts, and one with."""
    full = {"recompute": "full", "activation_bytes": 1, "backward_s": 3.0}
    selective = {"recompute": "selective", "activation_bytes": 4, "backward_s": 2.25}
    keeping = COSTS | {"activation_bytes": 10, "options": [full, selective]}
    working = keeping | {"options": [full | {"workspace_bytes": 7}, selective]}
    problem = small_problem(
        {"a": working, **dict.fromkeys("bcde", keeping)}, memory=memory, schedule="1f1b", num_microbatches=4,
        num_stages=2, constraints={"recompute": "choose"}, search={"solver": solver, "candidates": 5},
    )  # fmt: skip
    plans = ranked(problem, every_way(problem))
    assert plans
    check_ranking(problem, plan_problem(problem), plans, tolerance)


def test_many_twins_are_exchanged_one_after_the_other() -> None:
    """Of 1200 equal layers side by side, as of many pairs of them, the next images come without end or recursion."""
    wide = [list(order) for order in islice(_orders([0] * 600 + [1] * 600), 3)]
    assert wide == sorted(wide)
    assert len({tuple(order) for order in wide}) == 3
    assert [order.count(1) for order in wide] == [600] * 3
    pairs = list(islice(_together([[0, 1]] * 1500), 3))
    assert [each[-2:] for each in pairs] == [[[0, 1], [0, 1]], [[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    assert sorted(map(tuple, _orders([2, 1, 1]))) == [(1, 1, 2), (1, 2, 1), (2, 1, 1)]
