"""Tests the orders of the schedules against ones written out by hand."""

import pytest

from partita.solver.in_flight import find_moments
from partita.solver.pipeline import GENERATORS
from partita.solver.schedules.actions import Orders


def written(orders: Orders) -> list[str]:
    """Write the actions of every rank, such as F0 B0, where rank r runs stage r."""
    for stage, order in enumerate(orders):
        assert {at for _, at, _ in order} == {stage}
    return [" ".join(f"{kind}{microbatch}" for kind, _, microbatch in order) for order in orders]


def with_stages(orders: Orders) -> list[str]:
    """Write the actions of every rank with their stages, such as 2F0."""
    return [" ".join(f"{stage}{kind}{microbatch}" for kind, stage, microbatch in order) for order in orders]


def in_flight(orders: Orders) -> list[int]:
    """Give the most microbatches that every stage keeps, one stage on every rank."""
    (most,) = find_moments(orders).alone(len(orders))[0]
    return [int(each) for each in most]


def test_1f1b_with_fewer_microbatches_than_stages() -> None:
    """Tests that two microbatches on four stages cut the warm-up short."""
    orders = GENERATORS["1f1b"](4, 1, 2)
    assert written(orders) == ["F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"]
    assert in_flight(orders) == [2, 2, 2, 1]


def test_1f1b_with_many_microbatches() -> None:
    """Tests that stage s of four warms up with 3 - s passes, alternates, and cools down."""
    orders = GENERATORS["1f1b"](4, 1, 8)
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
    orders = GENERATORS["gpipe"](4, 1, microbatches)
    forward, backward = (" ".join(f"{kind}{i}" for i in range(microbatches)) for kind in "FB")
    assert written(orders) == [f"{forward} {backward}"] * 4
    assert in_flight(orders) == [microbatches] * 4


@pytest.mark.parametrize("microbatches", [2, 8])
def test_inference_keeps_nothing(microbatches: int) -> None:
    """Tests that forward passes alone keep nothing for later."""
    orders = GENERATORS["forward_only"](4, 1, microbatches)
    assert written(orders) == [" ".join(f"F{i}" for i in range(microbatches))] * 4
    assert in_flight(orders) == [0] * 4


@pytest.mark.parametrize("kind", ["1f1b", "gpipe"])
def test_one_stage_alternates_or_not(kind: str) -> None:
    """Tests that on one stage 1F1B keeps one microbatch and GPipe all three."""
    assert in_flight(GENERATORS[kind](1, 1, 3)) == [1 if kind == "1f1b" else 3]


def test_zb_h1() -> None:
    """Tests that rank r warms up as in 1F1B and lets r weight gradients wait."""
    assert written(GENERATORS["zb_h1"](3, 1, 4)) == [
        "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3",
        "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3",
        "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3",
    ]


def test_zb_h2() -> None:
    """Tests a warm-up of 5, 3 and 1 passes, and 0, 2 and 4 weight gradients that wait, each before a forward pass."""
    assert written(GENERATORS["zb_h2"](3, 1, 6)) == [
        "F0 F1 F2 F3 F4 I0 W0 F5 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5",
        "F0 F1 F2 I0 F3 I1 F4 I2 W0 F5 I3 W1 I4 W2 I5 W3 W4 W5",
        "F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 F5 I5 W1 W2 W3 W4 W5",
    ]


ROWS = [
    ("interleaved_1f1b", 2, 2, 2, ["0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"]),
    # Three microbatches on two ranks are one round of three.
    (
        *("interleaved_1f1b", 2, 2, 3),
        ["0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2", "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1B0 1B1 1B2"],
    ),
    (
        *("interleaved_zb", 2, 2, 2),
        ["0F0 0F1 2F0 2F1 2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1", "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1"],
    ),
    ("looped_bfs", 2, 2, 2, ["0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0", "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0"]),
    (
        *("zb_v", 2, 2, 2),
        ["0F0 0F1 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 0I1 0W1", "1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1"],
    ),
    (
        *("dualpipe_v", 2, 2, 4),
        [
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3",
            "1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3",
        ],
    ),
]


@pytest.mark.parametrize(("kind", "ranks", "chunks", "microbatches", "expected"), ROWS)
def test_several_stages_on_a_rank(kind: str, ranks: int, chunks: int, microbatches: int, expected: list[str]) -> None:
    """Tests all actions of small pipelines in which every rank runs two stages."""
    assert with_stages(GENERATORS[kind](ranks, chunks, microbatches)) == expected
