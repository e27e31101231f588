"""Tests which layers become one group, and how the groups are ordered."""

from typing import Any

import pytest

from oracle.small import Json, edges, grouped_names, groups_of, small_problem

DIAMOND = edges("a>bc", "b>d", "c>d")


@pytest.mark.parametrize(
    ("constraints", "groups"),
    [
        ({}, ["a", "b", "c", "d"]),
        ({"together": [["b", "c"]]}, ["a", "bc", "d"]),
        ({"together": [["b", "d"]]}, ["a", "bcd"]),  # c lies between them
        ({"together": [["a", "b"], ["b", "c"]]}, ["abc", "d"]),
        ({"cut_after": ["b"]}, ["ab", "cd"]),
        ({"cut_after": []}, ["abcd"]),
        ({"cut_after": ["a", "b", "c", "d"]}, ["a", "b", "c", "d"]),
        ({"cut_after": ["a", "b"], "together": [["b", "c"]]}, ["a", "bcd"]),
    ],
)
def test_groups_of_a_chain(constraints: dict[str, Any], groups: list[str]) -> None:
    """Tests together and cut_after on the chain a, b, c, d."""
    problem = small_problem("abcd", constraints=constraints)
    assert grouped_names(problem) == groups
    found = groups_of(problem)
    assert found.total_order
    assert found.successors == tuple((i + 1,) if i + 1 < len(groups) else () for i in range(len(groups)))
    assert [int(found.group_of[layer]) for layer in range(4)] == [
        next(number for number, names in enumerate(groups) if name in names) for name in "abcd"
    ]


@pytest.mark.parametrize(
    ("model", "constraints", "groups"),
    [
        (DIAMOND, {}, [{"a"}, {"b"}, {"c"}, {"d"}]),
        (DIAMOND, {"cut_after": ["a", "c"]}, [{"a"}, {"c"}, {"b", "d"}]),
        (DIAMOND, {"cut_after": ["b", "c"]}, [{"a", "b", "c"}, {"d"}]),
        (edges("a>b", "c>d"), {"together": [["a", "d"], ["b", "c"]]}, [{"a", "b", "c", "d"}]),  # ad > bc > ad
        (edges("a>b", "c>d"), {"together": [["a", "c"]]}, [{"a", "c"}, {"b"}, {"d"}]),
        (edges("a>b", "c<a"), {"cut_after": []}, [{"a", "b"}, {"c"}, {"d"}]),  # no order in the backward pass
        (edges(), {"cut_after": []}, [{"a"}, {"b"}, {"c"}, {"d"}]),
    ],
)
def test_groups_of_graphs(model: Json, constraints: dict[str, Any], groups: list[set[str]]) -> None:
    """Tests graphs: what must share a stage is one group, cycles between such sets as well."""
    problem = small_problem("abcd", model=model, constraints=constraints, schedule="1f1b")
    found = [set(names) for names in grouped_names(problem)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, groups))


@pytest.mark.parametrize("mutated", [True, False])
def test_a_buffer_that_is_written_to(mutated: bool) -> None:
    """Tests that layers that write to one buffer share a stage, with what lies between; readers need not."""
    buffer = {"name": "cache", "bytes": 8, "layers": ["a", "c"], "mutated": mutated}
    problem = small_problem("abcd", model={"buffers": [buffer]})
    assert grouped_names(problem) == (["abc", "d"] if mutated else ["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("model", "together", "total"),
    [
        (DIAMOND, [], False),
        (DIAMOND, [["b", "c"]], True),
        (edges("a>bd", "b>c", "c>d"), [], True),  # a way past others changes nothing
        (edges("a>b", "b>d"), [["a", "c"]], True),
        (edges("a>b", "b>c"), [], False),  # d can be anywhere
        (edges(), [], False),
    ],
)
def test_the_only_order_or_one_of_several(model: Json, together: list[list[str]], total: bool) -> None:
    """Tests whether the groups can be put in one order only."""
    found = groups_of(small_problem("abcd", model=model, constraints={"together": together}))
    assert found.total_order == total
    assert all(after > group for group, each in enumerate(found.successors) for after in each)
