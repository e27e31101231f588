"""Tests that demands on stages that contradict each other are found, with their numbers and what would help."""

from itertools import combinations
from random import Random
from typing import Any

import pytest

from oracle.search import every_plan
from oracle.small import Json, small_problem
from partita.models.answer import Infeasibility
from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.solver.planner import plan_problem


def why_not(problem: Problem) -> Infeasibility:
    """Plan a problem that has no plan and give the reason."""
    answer = plan_problem(problem)
    assert answer.status == "infeasible"
    assert answer.infeasibility is not None
    return answer.infeasibility


def demanding(names: str, *, devices: int = 2, num_stages: int | None = None, **constraints: Any) -> Infeasibility:
    """Tell why a chain has no plan under some constraints."""
    return why_not(small_problem(names, devices=devices, num_stages=num_stages, constraints=constraints))


@pytest.mark.parametrize(
    ("given", "change"),
    [
        ({"num_stages": 2, "devices": 4}, "num_stages of at least 3"),
        ({"num_stages": 2, "devices": 2}, "at most 2 layers in constraints.apart/1"),
        ({"devices": 2}, "at most 2 layers in constraints.apart/1"),
        ({"num_stages": 1, "devices": 2}, "at most 2 layers in constraints.apart/1"),
    ],
)
def test_more_layers_apart_than_stages(given: Json, change: str) -> None:
    """Tests three layers that are apart where stages are too few by what is asked, or by the devices."""
    reason = demanding("abcd", apart=[["a", "b"], ["b", "d", "c"]], **given)
    (finding,) = reason.findings
    available = given.get("num_stages") or 2
    assert (finding.limit, finding.needed, finding.available) == ("constraints.apart", 3, available)
    assert "the 3 layers of constraints.apart/1 (the first is 'b') need a stage each" in finding.message
    assert finding.message.endswith(f"short by {3 - available}")
    assert reason.smallest_change == change


def test_the_number_of_stages_named_is_one_that_the_schedule_can_have() -> None:
    """Tests three layers that are apart with two stages on every rank: four stages are the next."""
    problem = small_problem(
        {name: {"forward_s": 1.0, "backward_s": 1.0} for name in "abcde"},
        schedule="interleaved_1f1b",
        num_stages=2,
        num_microbatches=2,
        constraints={"apart": [["a", "b", "c"]]},
    )
    assert why_not(problem).smallest_change == "num_stages of at least 4"


def test_pairs_that_are_apart_along_a_chain() -> None:
    """Tests that b is behind a, and c behind b: three stages."""
    reason = demanding("abc", num_stages=2, devices=3, apart=[["a", "b"], ["c", "b"]])
    (finding,) = reason.findings
    assert (finding.limit, finding.needed, finding.available) == ("constraints.apart", 3, 2)
    assert finding.message.startswith("the layers that are apart need 3 stages in the order of the layers, but there")
    assert reason.smallest_change == "num_stages of at least 3"


@pytest.mark.parametrize("apart", [[list(pair) for pair in combinations("abc", 2)], [list("abc")]])
def test_every_pair_apart_is_one_group_apart(apart: list[list[str]]) -> None:
    """Tests that all pairs of three layers need as many stages as the group of the three."""
    assert [each.needed for each in demanding("abcd", num_stages=2, devices=3, apart=apart).findings] == [3]


def test_a_pin_that_leaves_no_stage_for_what_is_apart() -> None:
    """Tests d, which is behind b on the last stage, or pinned to one before the third."""
    reason = demanding("abcd", num_stages=2, devices=3, pins={"b": 1}, apart=[["b", "d"]])
    (finding,) = reason.findings
    assert (finding.needed, finding.available) == (3, 2)
    assert "apart and the pins need 3 stages" in finding.message
    reason = demanding("abcde", num_stages=3, devices=3, pins={"d": 1}, apart=[["a", "b"], ["b", "d"]])
    (finding,) = reason.findings
    assert (finding.limit, finding.layer, finding.stage) == ("constraints.pins", "d", 1)
    assert finding.message == (
        "'d' is pinned to stage 1, but by the layers that are apart before it, and their pins, it must be on stage 2 "
        "or later"
    )
    assert reason.smallest_change == "pin 'd' to stage 2 or later"


def test_layers_apart_without_a_boundary_between_them() -> None:
    """Tests b and c that cut_after keeps on one stage."""
    reason = demanding("abcd", apart=[["a", "c", "b"]], cut_after=["a", "c"])
    (finding,) = reason.findings
    assert (finding.limit, finding.layer) == ("constraints.apart", "b")
    assert finding.message == (
        "'c' and 'b' must share a stage (by cut_after, together or what they write to), but are apart"
    )
    assert reason.smallest_change is not None
    assert "constraints.cut_after" in reason.smallest_change


def test_layers_apart_whose_mates_are_pinned_to_one_stage() -> None:
    """Tests a and c, of which c shares a stage with d by cut_after; a and d are pinned to one."""
    reason = demanding("abcd", apart=[["a", "c"]], cut_after=["a", "b", "d"], pins={"a": 0, "d": 0})
    (finding,) = reason.findings
    assert (finding.limit, finding.layer, finding.stage) == ("constraints.pins", "d", 0)
    assert finding.message == (
        "'a' and 'c' are apart, but pinned to one stage, 0 ('c' by 'd', which must share its stage)"
    )


def random_demands(random: Random) -> Json:
    """Draw pins, groups that are apart, and sometimes boundaries, for six layers and at most three stages."""
    apart = [random.sample("abcdef", random.choice([2, 2, 3])) for _ in range(random.randint(1, 3))]
    pins = {name: random.randint(0, 2) for name in random.sample("abcdef", random.choice([0, 0, 1, 2]))}
    cuts = {"cut_after": random.sample("abcdef", 4)} if random.random() < 0.3 else {}
    return {"apart": apart, "pins": pins} | cuts


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_reason_is_given_only_where_there_is_no_plan(first: int) -> None:
    """Tests random demands on a chain against all plans, and that a contradiction in the input alone is refused."""
    explained = 0
    for seed in range(first, first + 50):
        random = Random(seed)
        asked = random_demands(random)
        given: Json = {"devices": 3, "num_stages": random.choice([None, 3])}
        try:
            problem = small_problem("abcdef", constraints=asked, **given)
        except InvalidInput as error:
            assert all("are apart but pinned to one stage" in fault.detail for fault in error.faults)
            continue
        answer = plan_problem(problem)
        assert (answer.status == "infeasible") == (not every_plan(problem)), seed
        if answer.infeasibility is not None:
            explained += bool(answer.infeasibility.findings)
    assert explained > 5
