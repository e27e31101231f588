"""Tests the orders of the schedules against ones written out by hand."""

import pytest

from partita.solver.schedules import SCHEDULES, Orders, in_flight


def written(orders: Orders) -> list[str]:
    """Write the actions of every rank, such as F0 B0."""
    for stage, order in enumerate(orders):
        assert {at for _, at, _ in order} == {stage}
    return [" ".join(f"{kind}{microbatch}" for kind, _, microbatch in order) for order in orders]


def test_1f1b_with_fewer_microbatches_than_stages() -> None:
    """Tests that two microbatches on four stages cut the warm-up short."""
    orders = SCHEDULES["1f1b"](4, 2)
    assert written(orders) == ["F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"]
    assert in_flight(orders) == [2, 2, 2, 1]


def test_1f1b_with_many_microbatches() -> None:
    """Tests that stage s of four warms up with 3 - s passes, alternates, and cools down."""
    orders = SCHEDULES["1f1b"](4, 8)
    assert written(orders) == [
        "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7",
        "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7",
        "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7",
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7",
    ]
    assert in_flight(orders) == [4, 3, 2, 1]


@pytest.mark.parametrize("microbatches", [2, 8])
def test_gpipe_keeps_everything(microbatches: int) -> None:
    """Tests that all forward passes come first, so that every stage keeps every microbatch."""
    orders = SCHEDULES["gpipe"](4, microbatches)
    forward, backward = (" ".join(f"{kind}{i}" for i in range(microbatches)) for kind in "FB")
    assert written(orders) == [f"{forward} {backward}"] * 4
    assert in_flight(orders) == [microbatches] * 4


@pytest.mark.parametrize("microbatches", [2, 8])
def test_inference_keeps_nothing(microbatches: int) -> None:
    """Tests that forward passes alone keep nothing for later."""
    orders = SCHEDULES["forward_only"](4, microbatches)
    assert written(orders) == [" ".join(f"F{i}" for i in range(microbatches))] * 4
    assert in_flight(orders) == [0] * 4


@pytest.mark.parametrize("kind", ["1f1b", "gpipe"])
def test_one_stage_alternates_or_not(kind: str) -> None:
    """Tests that on one stage 1F1B keeps one microbatch and GPipe all three."""
    assert in_flight(SCHEDULES[kind](1, 3)) == [1 if kind == "1f1b" else 3]
