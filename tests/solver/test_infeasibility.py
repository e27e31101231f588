"""Tests that limits which only the search proves impossible are explained: by a core, and by changes that help."""

from functools import cache
from random import Random
from typing import Any

import pytest

from oracle.random_conflicts import draw_conflict, with_field, without
from oracle.search import every_plan
from oracle.small import small_problem
from partita.models.answer import Infeasibility
from partita.models.errors import InvalidInput
from partita.models.infeasibility import Change
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.infeasibility import core as core_module
from partita.solver.infeasibility.attempts import attempt
from partita.solver.infeasibility.changes import last_working, memory_by_halving, memory_by_minimum
from partita.solver.infeasibility.core import CoreSearch
from partita.solver.infeasibility.demands import keep_only, named_limits
from partita.solver.infeasibility.explanation import explain
from partita.solver.planner import plan_problem

ALL_SEEDS = range(0, 500, 50)
SEEDS = [*ALL_SEEDS[:4], *(pytest.param(first, marks=pytest.mark.slow) for first in ALL_SEEDS[4:])]
A_LITTLE = 1e-6


@cache
def explained(first: int) -> list[tuple[Problem, Infeasibility]]:
    """Give those of 50 random problems that have no plan for reasons beyond arithmetic, with the reasons."""
    found = []
    for seed in range(first, first + 50):
        try:
            problem = draw_conflict(Random(seed))
        except InvalidInput:
            continue
        reason = plan_problem(problem).infeasibility
        if reason is not None and not reason.findings:
            found.append((problem, reason))
    assert len(found) > 5
    return found


@pytest.mark.parametrize("first", SEEDS)
def test_every_core_is_impossible_and_every_part_of_it_possible(first: int) -> None:
    """Tests against all plans that the core leaves none, and that it does without any one of its limits."""
    for problem, reason in explained(first):
        every, core = {limit.pointer for limit in named_limits(problem)}, {limit.pointer for limit in reason.core}
        assert reason.minimal
        assert core
        assert not every_plan(without(problem, every - core))
        for spared in core:
            assert every_plan(without(problem, every - core | {spared})), spared


@pytest.mark.parametrize("first", SEEDS)
def test_every_change_works_and_reaches_what_it_says(first: int) -> None:
    """Tests against all plans of the changed problem, written by the change's own pointer and value."""
    for problem, reason in explained(first):
        assert reason.all_tried
        for change in reason.changes:
            plans = every_plan(with_field(problem, change.pointer, change.to_value))
            assert plans, change
            assert change.objective_value == pytest.approx(plans[0].value, rel=1e-9), change


@pytest.mark.parametrize("first", SEEDS)
def test_no_change_is_missing(first: int) -> None:
    """Tests that a limit of the core without a change cannot be changed alone, and the order of the others."""
    for problem, reason in explained(first):
        pointers = {change.pointer for change in reason.changes}
        for limit in reason.core:
            assert limit.pointer in pointers or not every_plan(without(problem, [limit.pointer])), limit
        order = [(change.pointer.endswith("num_microbatches"), change.size) for change in reason.changes]
        assert order == sorted(order)
        assert reason.smallest_change == (reason.changes[0].words if reason.changes else None)


@pytest.mark.parametrize("first", SEEDS)
def test_a_smaller_change_does_not_work(first: int) -> None:
    """Tests one byte, a millionth of the time, one stage, or one microbatch less of a change."""
    for problem, reason in explained(first):
        for change in reason.changes:
            for value in _smaller(change):
                assert not every_plan(with_field(problem, change.pointer, value)), (change, value)


def _smaller(change: Change) -> list[Any]:
    """Give values between what is and what would be, next to the latter; all numbers of stages that are nearer."""
    after: Any = change.to_value
    if change.pointer.endswith("_bytes"):
        return [after - 1]
    if change.pointer.endswith("_s"):
        return [after * (1 - A_LITTLE)]
    if change.pointer.endswith("num_microbatches"):
        return [after + 1]
    if change.pointer.endswith("num_stages"):
        asked: Any = change.from_value
        numbers = asked if isinstance(asked, list) else [asked]
        far = min(abs(after - number) for number in numbers)
        return [near for near in range(1, 5) if min(abs(near - number) for number in numbers) < far]
    return []


@pytest.mark.slow
def test_all_kinds_of_change_are_met() -> None:
    """Tests that the random problems above put every kind of change to the test, on more than 100 problems."""
    reasons = [reason for first in ALL_SEEDS for _, reason in explained(first)]
    assert len(reasons) > 100
    fields = {change.pointer.split("/")[-1] for reason in reasons for change in reason.changes}
    assert fields >= {"memory_bytes", "peak_memory_bytes", "iteration_time_s", "bottleneck_time_s"}
    assert fields >= {"num_stages", "num_microbatches", "recompute", "cut_after"}
    sections = {change.pointer.split("/")[2] for reason in reasons for change in reason.changes}
    assert sections >= {"pins", "together", "apart"}


def weighing(**layers: int) -> dict[str, dict[str, float]]:
    """Give layers of 1 s and so many bytes of weights."""
    return {name: {"forward_s": 1.0, "weight_bytes": size} for name, size in layers.items()}


def conflict(**given: Any) -> Problem:
    """Give four layers of 60, 60, 10 and 10 bytes: fast stages hold two each, and then 120 bytes, light ones 80."""
    usual: dict[str, Any] = {"limits": {"peak_memory_bytes": 100, "bottleneck_time_s": 2.0}, "num_stages": 2}
    return small_problem(weighing(a=60, b=60, c=10, d=10), **usual | given)


def why_not(problem: Problem) -> Infeasibility:
    """Plan a problem that has no plan and give the reason."""
    answer = plan_problem(problem)
    assert answer.status == "infeasible"
    assert answer.infeasibility is not None
    return answer.infeasibility


def test_in_the_words_and_numbers_of_the_user() -> None:
    """Tests fast stages that are too heavy, or light ones that are too slow; a pin and a group have no part in it."""
    reason = why_not(conflict(devices=3, constraints={"pins": {"a": 0}, "together": [["c", "d"]]}))
    assert [(limit.name, limit.pointer, limit.value, limit.words) for limit in reason.core] == [
        ("training.num_stages", "/training/num_stages", 2, "the number of stages is 2"),
        ("limits.peak_memory_bytes", "/limits/peak_memory_bytes", 100, "no device holds more than 100 bytes"),
        (
            "limits.bottleneck_time_s",
            "/limits/bottleneck_time_s",
            2.0,
            "a microbatch takes at most 2 s in steady state",
        ),
    ]
    assert [(change.words, change.size) for change in reason.changes] == [
        ("raise limits.peak_memory_bytes from 100 bytes to 120 bytes", pytest.approx(0.2)),
        ("take 3 stages instead of 2", pytest.approx(0.5)),
        ("raise limits.bottleneck_time_s from 2 to 3", pytest.approx(0.5)),
    ]
    assert all(change.smallest for change in reason.changes)
    assert reason.smallest_change == "raise limits.peak_memory_bytes from 100 bytes to 120 bytes"


def test_the_times_in_words_are_long_enough() -> None:
    """Tests that a limit is rounded up in words and exact in numbers."""
    layers = {name: costs | {"forward_s": 1 / 7} for name, costs in weighing(a=60, b=60, c=10, d=10).items()}
    limits = {"peak_memory_bytes": 100, "bottleneck_time_s": 0.3}
    changes = {change.pointer: change for change in why_not(small_problem(layers, limits=limits, num_stages=2)).changes}
    change = changes["/limits/bottleneck_time_s"]
    assert change.words == "raise limits.bottleneck_time_s from 0.3 to 0.428572"
    assert change.to_value == pytest.approx(3 / 7, rel=1e-12)


def test_several_schedules_cannot_hold_it_together() -> None:
    """Tests that the core holds under both schedules, one of which arithmetic alone rules out."""
    layers = {
        name: {"forward_s": 1.0, "backward_s": 1.0, "activation_bytes": size}
        for name, size in zip("abcd", (30, 30, 5, 5), strict=True)
    }
    limits = {"peak_memory_bytes": 100, "bottleneck_time_s": 4.0}
    given: dict[str, Any] = {"num_stages": 2, "num_microbatches": 4, "limits": limits}
    problem = small_problem(layers, schedule=["gpipe", "1f1b"], **given)
    reason = why_not(problem)
    assert reason.findings == ()
    assert {limit.name for limit in reason.core} == {"limits.peak_memory_bytes", "limits.bottleneck_time_s"}
    assert reason.changes[0].words == "raise limits.peak_memory_bytes from 100 bytes to 120 bytes"
    assert why_not(small_problem(layers, schedule="gpipe", **given)).findings


def test_fewer_microbatches_than_any_listed() -> None:
    """Tests that a list of numbers is explained like a single one, and named as it stands."""
    layers = {
        name: {"forward_s": 1.0, "backward_s": 1.0, "activation_bytes": size}
        for name, size in zip("abcd", (30, 30, 5, 5), strict=True)
    }
    given: dict[str, Any] = {"num_stages": 2, "limits": {"bottleneck_time_s": 4.0}, "objective": "tokens_per_second"}
    reason = why_not(small_problem(layers, memory=200, schedule="gpipe", num_microbatches=[4, 5], **given))
    (fewer,) = [change for change in reason.changes if change.pointer == "/training/num_microbatches"]
    assert (fewer.from_value, fewer.to_value, fewer.words) == ([4, 5], 3, "take 3 microbatches instead of 4 or 5")


def test_nothing_is_claimed_without_time() -> None:
    """Tests that without time all limits are named and no change, and that both are said to be unfinished."""
    problem = conflict()
    reason = explain(problem, Infeasibility(message="no plan"), Deadline.after(-1.0))
    assert list(reason.core) == named_limits(problem)
    assert (reason.minimal, reason.changes, reason.all_tried, reason.smallest_change) == (False, (), False, None)


def test_the_same_explanation_again() -> None:
    """Tests that two runs give the same bytes."""
    first, again = (why_not(conflict(devices=3)).model_dump_json() for _ in range(2))
    assert first == again


def test_many_pins_take_few_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests two of 64 pins that cannot hold together: blocks of the others are left out at once."""
    tried = []

    def has_plan(problem: Problem, deadline: Deadline) -> bool:
        tried.append(problem)
        return not {"l3", "l40"} <= set(problem.constraints.pins)

    monkeypatch.setattr(core_module, "has_plan", has_plan)
    names = {f"l{number}": {"forward_s": 1.0} for number in range(64)}
    problem = small_problem(names, devices=64, constraints={"pins": {name: at for at, name in enumerate(names)}})
    search = CoreSearch(problem, Deadline.after(60.0))
    core = search.find(named_limits(problem))
    assert [limit.name for limit in core] == ["constraints.pins.l3", "constraints.pins.l40"]
    assert search.minimal
    assert len(tried) <= 4 * 6


def test_an_unanswered_question_keeps_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a limit stays in the core where time ran out before it was known to be spared."""
    problem = conflict()
    monkeypatch.setattr(core_module, "has_plan", lambda problem, deadline: None)
    search = CoreSearch(problem, Deadline.after(60.0))
    assert search.find(named_limits(problem)) == named_limits(problem)
    assert not search.minimal


def test_what_cannot_be_planned_proves_nothing() -> None:
    """Tests that a changed problem which is refused counts neither as possible nor as impossible."""
    deadline = Deadline.after(60.0)
    refused = small_problem("ab", queueing=True, communication="blocking")
    assert attempt(refused, deadline, relative_gap=0.0).works is None
    assert attempt(small_problem("ab"), deadline, relative_gap=0.0).works is True


def test_halving_finds_the_same_memory() -> None:
    """Tests the memory of the only kind, found by a minimum and by halving."""
    problem = conflict(memory=100, limits={"bottleneck_time_s": 2.0})
    (memory,) = [limit for limit in named_limits(problem) if limit.name.startswith("cluster.")]
    ways = [way(problem, memory, Deadline.after(60.0)) for way in (memory_by_minimum, memory_by_halving)]
    assert ways[0] == ways[1]
    change, known = ways[0]
    assert known
    assert change is not None
    assert (change.to_value, change.smallest) == (120, True)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], (None, True)),
        ([False, False], (None, True)),
        ([None, True], (None, False)),
        ([True], (0, True)),
        ([True, True, True, False, False], (2, True)),
        ([True, True, True, True], (3, True)),
        ([True, None, None, None], (0, False)),
    ],
)
def test_the_last_number_that_works(answers: list[bool | None], expected: tuple[int | None, bool]) -> None:
    """Tests where numbers cease to work, and that what is not known does not count as working."""
    assert last_working(range(len(answers)), lambda number: answers[number]) == expected


def test_leaving_out_limits_leaves_the_others() -> None:
    """Tests the problem that keeps some limits of every kind."""
    constraints = {"pins": {"a": 0, "d": 1}, "together": [["a", "b"], ["c", "d"]], "cut_after": ["b"]}
    problem = conflict(memory=500, constraints=constraints)
    limits = named_limits(problem)
    assert keep_only(problem, limits) == problem
    kept = [limit for limit in limits if limit.pointer in ("/constraints/together/1", "/constraints/pins/d")]
    left = keep_only(problem, kept)
    assert (left.constraints.pins, left.constraints.together) == ({"d": 1}, (("c", "d"),))
    assert (left.constraints.cut_after, left.limits.peak_memory_bytes, left.training.num_stages) == (None, None, None)
    assert left.cluster.devices["gpu"].memory_bytes > 10**15


def test_a_limit_of_nothing() -> None:
    """Tests that no bytes between nodes, where memory asks for some, are explained: a change from 0 counts as whole."""
    link = {"bandwidth_bytes_per_s": 1e9}
    nodes = [{"name": name, "device": "gpu", "count": 2, "fabric": link, "uplink": link} for name in ("x", "y")]
    layers = {name: {"forward_s": 1.0, "weight_bytes": 6, "output_bytes": 4} for name in "abc"}
    reason = plan_problem(small_problem(layers, nodes=nodes, memory=11, limits={"inter_node_bytes": 0})).infeasibility
    assert reason is not None and not reason.findings
    (traffic,) = [change for change in reason.changes if change.pointer == "/limits/inter_node_bytes"]
    assert (traffic.from_value, traffic.to_value, traffic.size) == (0, 4, 1)


def test_what_arithmetic_shows_has_a_core_and_verified_changes_too() -> None:
    """A layer needs 150 of 100 bytes: the finding says so, the limit is the core, and more memory is verified."""
    layers = {"a": {"forward_s": 1.0, "weight_bytes": 150}, "b": {"forward_s": 1.0}}
    reason = plan_problem(small_problem(layers, limits={"peak_memory_bytes": 100})).infeasibility
    assert reason is not None
    assert [finding.layer for finding in reason.findings] == ["a"]
    assert reason.smallest_change == "raise limits.peak_memory_bytes to at least 150 bytes"
    assert [limit.name for limit in reason.core] == ["limits.peak_memory_bytes"]
    assert [(change.pointer, change.to_value) for change in reason.changes] == [("/limits/peak_memory_bytes", 150)]
