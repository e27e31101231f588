"""Tests what must hold between the plans of related problems: other names, other units, more room, tighter limits."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from oracle.choices import cases
from oracle.mixed import COUNTED, FIELDS, mixed_problem, worst_only
from oracle.ranking import on_first_nodes, priced, setting_of
from oracle.ways import levels_of
from partita.models.answer import Answer
from partita.models.problem import Problem
from partita.solver.planner import plan_problem
from strategies import Json, read

SEEDS = pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.slow) for n in range(12, 100))]
)


def changed(problem: Problem, change: Callable[[Json], None], **search: Any) -> Problem:
    """Give a problem with something changed in its JSON."""
    json = problem.model_dump(mode="json", by_alias=True)
    change(json)
    return read(json | {"search": json["search"] | search})


def best_of(problem: Problem) -> float | None:
    """Give what is minimized first, for the best plan; None where there is none."""
    answer = plan_problem(problem)
    assert answer.status in ("optimal", "infeasible")
    if not answer.candidates:
        return None
    best = answer.candidates[0]
    (alone,) = [case for case in cases(problem) if case.setting == setting_of(best)]
    return levels_of(problem.objective)[0](priced(alone, on_first_nodes(best)))


def check_not_worse(before: float | None, after: float | None, tolerance: float = 1e-6) -> None:
    """Check that a plan is left, and at least as good as before."""
    if before is not None:
        assert after is not None
        assert after <= before + tolerance * abs(before)


def text_of(answer: Answer) -> str:
    """Give all of an answer but the effort and the problem's digest."""
    return answer.model_copy(update={"solver": None, "problem_digest": ""}).model_dump_json()


@SEEDS
def test_other_names_of_nodes(seed: int) -> None:
    """Tests that nodes under other names, ordered otherwise as texts, give the same bytes up to these names."""
    problem = mixed_problem(seed)
    names = [node.name for node in problem.cluster.nodes]
    other = {name: f"z{len(names) - index}-{name}-" for index, name in enumerate(names)}

    def rename(json: Json) -> None:
        for node in json["cluster"]["nodes"]:
            node["name"] = other[node["name"]]
        for link in json["cluster"]["links"]:
            link["between"] = [renamed(end) for end in link["between"]]

    def renamed(end: str) -> str:
        name = max((name for name in names if end.startswith(name)), key=len)
        return other[name] + end.removeprefix(name)

    text = text_of(plan_problem(changed(problem, rename)))
    for name in names:
        text = text.replace(other[name], name)
    assert text == text_of(plan_problem(problem))


@SEEDS
def test_the_order_of_nodes(seed: int) -> None:
    """Tests that listing the nodes the other way round keeps the values of all candidates."""
    problem = mixed_problem(seed)
    one, other = (
        plan_problem(each) for each in (problem, changed(problem, lambda json: json["cluster"]["nodes"].reverse()))
    )
    assert other.status == one.status
    assert len(other.candidates) == len(one.candidates)
    tolerance = 1e-6 if problem.search.solver == "highs" else 1e-9
    expected = None if one.best_bound is None else pytest.approx(one.best_bound, rel=tolerance)
    assert other.best_bound == expected


@SEEDS
@pytest.mark.parametrize(("factor", "tolerance"), [(0.125, 0.0), (8.0, 0.0), (3.7, 1e-9)])
def test_all_times_scaled(seed: int, factor: float, tolerance: float) -> None:
    """Tests that seconds of another length scale every time, exactly by a power of two, and leave bytes and plans."""
    problem = changed(mixed_problem(seed), lambda json: None, solver="cp-sat")
    one, other = (plan_problem(each) for each in (problem, changed(problem, lambda json: scale(json, factor))))
    assert other.status == one.status
    assert len(other.candidates) == len(one.candidates)
    for before, after in zip(one.candidates, other.candidates, strict=True):
        for field in ("iteration_time_s", "bottleneck_time_s"):
            expected = factor * getattr(before.metrics, field)
            assert getattr(after.metrics, field) == pytest.approx(expected, rel=tolerance, abs=0), field
        assert after.metrics.peak_memory_bytes == before.metrics.peak_memory_bytes
        if not tolerance:
            assert [stage.layers for stage in after.stages] == [stage.layers for stage in before.stages]


def scale(json: Json, factor: float) -> None:
    """Multiply all seconds by a factor, and divide what is counted by the second."""
    layers = json["model"]["layers"]
    optimizer, ways = json["training"]["optimizer"], [*json["cluster"]["links"]]
    for node in json["cluster"]["nodes"]:
        ways += [node[end] for end in ("fabric", "uplink") if node[end] is not None]
    options = [option for layer in layers for option in layer["options"]]
    for place in (*layers, *options, *ways, json["limits"], *([optimizer] if isinstance(optimizer, dict) else [])):
        for field in [name for name, value in place.items() if value is not None]:
            if field.endswith("per_s") or field.endswith("per_second"):
                place[field] /= factor
            elif field.endswith("_s"):
                place[field] *= factor
    if isinstance(json["objective"], dict):
        for field in [name for name in json["objective"] if name.endswith("_s")]:
            json["objective"][field] /= factor


@SEEDS
def test_more_room_never_hurts(seed: int) -> None:
    """Tests more memory, one more device on a node, and one more node like the last."""
    random = Random(seed)
    problem, before = next((each, best) for each in problems_from(seed) if (best := best_of(each)) is not None)

    def more_memory(json: Json) -> None:
        for device in json["cluster"]["devices"].values():
            device["memory_bytes"] += random.randint(1, device["memory_bytes"])

    def another_device(json: Json) -> None:
        random.choice(json["cluster"]["nodes"])["count"] += 1

    def another_node(json: Json) -> None:
        nodes = json["cluster"]["nodes"]
        nodes.append(nodes[-1] | {"name": "another", "replicas": 1})

    check_not_worse(before, best_of(changed(problem, more_memory)))
    check_not_worse(before, best_of(changed(problem, another_device)))
    if problem.training.routing != "host":
        check_not_worse(before, best_of(changed(problem, another_node)))


@SEEDS
def test_a_tighter_limit_never_helps(seed: int) -> None:
    """Tests a limit on some metric that the best plan breaks, in the first problem from a seed that has a plan."""
    random = Random(seed)
    problem, best = next((each, plans[0]) for each in problems_from(seed) if (plans := plan_problem(each).candidates))
    fields = [field for field in FIELDS if field != "bottleneck_time_s" or not worst_only(problem)]
    field = random.choice([field for field in fields if getattr(best.metrics, field) > 1e-9])
    value = 0.9 * getattr(best.metrics, field)
    tight = int(value) if field in COUNTED else value

    def tighten(json: Json) -> None:
        json["limits"][field] = min(tight, json["limits"][field] or tight)

    check_not_worse(best_of(changed(problem, tighten)), best_of(problem))


def problems_from(seed: int) -> Iterator[Problem]:
    """Give the random problem of a seed, and further ones."""
    return (mixed_problem(number) for number in range(seed, seed + 100_000, 1000))
