"""Tests of pins, groups and allowed boundaries."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.models.demands import joined
from partita.models.document import validate
from partita.models.problem import Problem


@pytest.mark.parametrize(
    ("constraints", "pointer", "detail"),
    [
        ({"pins": {"q": 0}}, "/constraints/pins/q", "no layer 'q'"),
        ({"pins": {"a": -1}}, "/constraints/pins/a", "at least 0"),
        ({"pins": {"a": 3}}, "/constraints/pins/a", "numbered 0 to 2"),
        ({"together": [["a"]]}, "/constraints/together/0", "at least 2"),
        ({"together": [["a", "a"]]}, "/constraints/together/0/1", "listed twice"),
        ({"together": [["a", "q"]]}, "/constraints/together/0/1", "no layer 'q'"),
        ({"apart": [["a", "b"], ["q", "a"]]}, "/constraints/apart/1/0", "no layer 'q'"),
        ({"cut_after": ["a", "q"]}, "/constraints/cut_after/1", "no layer 'q'"),
        ({"together": [["a", "b"]], "pins": {"a": 0, "b": 1}}, "/constraints/pins/b", "stages 1 and 0"),
        # b joins the two groups
        ({"together": [["a", "b"], ["b", "c"]], "pins": {"a": 0, "c": 1}}, "/constraints/pins/c", "together"),
        ({"together": [["a", "b"]], "apart": [["c", "a", "b"]]}, "/constraints/apart/0/2", "cannot be apart"),
        ({"together": [["a", "b"], ["c", "b"]], "apart": [["a", "c"]]}, "/constraints/apart/0/1", "cannot be apart"),
        ({"apart": [["a", "b", "c"]], "pins": {"a": 1, "c": 1}}, "/constraints/pins/c", "'c' and 'a' are apart but"),
        ({"apart": [["b", "a"]], "pins": {"a": 1, "b": 1}}, "/constraints/pins/a", "pinned to one stage, 1; pin one"),
        # each layer of two that are apart has a mate with a pin
        (
            {"together": [["a", "b"], ["c", "d"]], "apart": [["a", "c"]], "pins": {"b": 1, "d": 1}},
            "/constraints/pins/d",
            "('c' by 'd', which shares its stage)",
        ),
    ],
)
def test_demands_that_cannot_be_met_are_refused(
    five_layers: Any, refused: Any, constraints: object, pointer: str, detail: str
) -> None:
    """Tests every rule on demands, with at most three stages."""
    five_layers["training"]["num_stages"] = [2, 3]
    five_layers["constraints"] = constraints
    assert detail in refused(five_layers)[pointer].detail


@pytest.mark.parametrize(
    ("demands", "pointer", "detail"),
    [
        ({"apart": [["c", "a", "b"]]}, "/constraints/apart/0/2", "'b' and 'a' write to one buffer, 'cache', so they"),
        # b and c are together, so a and c share a stage by b
        ({"together": [["b", "c"]], "apart": [["a", "c"]]}, "/constraints/apart/0/1", "'c' and 'a' share a stage by"),
        ({"apart": [["a", "e"]], "pins": {"b": 0, "e": 0}}, "/constraints/pins/e", "'e' and 'a' are apart but pinned"),
    ],
)
def test_layers_that_write_to_one_buffer_cannot_be_apart(
    five_layers: Any, refused: Any, demands: object, pointer: str, detail: str
) -> None:
    """Tests a buffer that a and b write to, and that one which is only read contradicts nothing."""
    buffer = {"name": "cache", "bytes": 1, "layers": ["a", "b"], "mutated": True}
    five_layers["model"]["buffers"] = [buffer]
    five_layers["constraints"] = demands
    (found,) = refused(five_layers).items()
    assert found[0] == pointer
    assert detail in found[1].detail
    five_layers["model"]["buffers"] = [buffer | {"mutated": False}]
    validate(Problem, five_layers)


def test_demands_that_can_be_met_are_accepted(five_layers: Any) -> None:
    """Tests all kinds of demand at once."""
    five_layers["constraints"] = {
        "pins": {"a": 0, "b": 0, "e": 3},
        "together": [["a", "b"], ["d", "e"]],
        "apart": [["a", "c", "e"]],
        "cut_after": [],
    }
    assert validate(Problem, five_layers).constraints.pins == {"a": 0, "b": 0, "e": 3}


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=3, unique=True), max_size=5))
def test_joined_groups_are_those_that_share_a_layer(groups: list[list[str]]) -> None:
    """Tests the joining against merging sets until nothing changes."""
    sets = [set(group) for group in groups]
    for _ in groups:
        for one in sets:
            for other in sets:
                if one & other:
                    one |= other
    leader = joined(groups)
    for one in sets:
        assert len({leader[name] for name in one}) == 1
    assert len(set(leader.values())) == len({frozenset(one) for one in sets})
