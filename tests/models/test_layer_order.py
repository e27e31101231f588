"""Tests that layers come in a topological order, and that cycles are named."""

from typing import Any

from partita.models.profile import ModelProfile


def model(names: str, *edges: str) -> dict[str, object]:
    """Give a model with a layer per letter and a tensor per edge: "ab" is read by b."""
    return {
        "layers": [{"name": name, "forward_s": 1.0} for name in names],
        "tensors": [
            {"name": f"{edge}{index}", "producer": edge[0], "consumers": [edge[1]], "bytes": 1}
            for index, edge in enumerate(edges)
        ],
    }


def test_a_wrong_order_says_what_to_move(refused: Any) -> None:
    """Tests that every edge against the order is told."""
    faults = refused(model("cab", "ab", "bc", "ac"), ModelProfile)
    assert list(faults) == ["/tensors/1/consumers/0", "/tensors/2/consumers/0"]
    assert "move 'b' before 'c'" in faults["/tensors/1/consumers/0"].detail
    assert {fault.code for fault in faults.values()} == {"layer_order"}


def test_a_cycle_is_named(refused: Any) -> None:
    """Tests that the cycle is told and not the order, with a pointer to an edge on it."""
    faults = refused(model("abcd", "ab", "bc", "ca", "cd"), ModelProfile)
    assert list(faults) == ["/tensors/2/consumers/0"]
    assert "cycle: a -> b -> c -> a" in faults["/tensors/2/consumers/0"].detail


def test_the_shorter_of_two_cycles_is_named(refused: Any) -> None:
    """Tests a long cycle around a short one."""
    document: Any = model("abcde", "ab", "bc", "cd", "de", "dc", "ea")
    document["tensors"].append({"name": "g", "producer": "b", "consumers": ["a"], "bytes": 1, "pass": "backward"})
    faults = refused(document, ModelProfile)
    assert "cycle: c -> d -> c" in faults["/tensors/4/consumers/0"].detail


def test_edges_against_the_order_outside_of_the_cycle_do_not_hide_it(refused: Any) -> None:
    """Tests that the edge pointed at lies on the cycle."""
    faults = refused(model("zabc", "az", "bz", "bc", "cb"), ModelProfile)
    assert list(faults) == ["/tensors/3/consumers/0"]


def test_a_cycle_through_twenty_thousand_layers_is_cut_short(refused: Any) -> None:
    """Tests that a huge cycle neither overflows the stack nor the message."""
    names = [f"l{index}" for index in range(20_000)]
    tensors = [
        {"name": name, "producer": name, "consumers": [names[(index + 1) % len(names)]], "bytes": 1}
        for index, name in enumerate(names)
    ]
    document = {"layers": [{"name": name, "forward_s": 1} for name in names], "tensors": tensors}
    fault = refused(document, ModelProfile)["/tensors/19999/consumers/0"]
    assert "(19988 more) -> l0" in fault.detail
    assert len(fault.detail) < 400
