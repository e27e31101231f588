"""Tests of which numbers of stages and microbatches a schedule can run."""

import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.models.document import validate
from partita.models.problem import Problem
from partita.models.schedule import ScheduleKind
from partita.models.schedule_rules import can_run, microbatches_fault, stages_fault

KINDS = st.sampled_from(get_args(ScheduleKind))


@pytest.mark.parametrize(
    ("kind", "ranks", "microbatches", "detail"),
    [
        ("1f1b", 4, 1, None),
        ("zb_v", 4, 1, None),
        ("looped_bfs", 4, 3, None),
        ("dualpipe_v", 4, 8, None),
        (
            "dualpipe_v",
            4,
            6,
            "dualpipe_v on 4 ranks needs at least 8 microbatches, not 6; the nearest number that works is 8",
        ),
        (
            "dualpipe_v",
            1,
            1,
            "dualpipe_v on 1 rank needs at least 2 microbatches, not 1; the nearest number that works is 2",
        ),
        (
            "dualpipe_v",
            40_000,
            6,
            "dualpipe_v on 40000 ranks needs at least 80000 microbatches, not 6; no number works here",
        ),
        ("interleaved_1f1b", 4, 3, None),  # fewer than ranks: one short round
        ("interleaved_1f1b", 4, 7, None),  # one round of seven
        ("interleaved_1f1b", 4, 10, None),  # two rounds of five
        (
            "interleaved_1f1b",
            4,
            11,
            "interleaved_1f1b on 4 ranks runs rounds of equal size, of at least 4 microbatches: 11 do not divide into "
            "2 rounds; the nearest numbers that work are 10 and 12",
        ),
        (
            "interleaved_zb",
            4,
            14,
            "interleaved_zb on 4 ranks runs rounds of equal size, of at least 4 microbatches: 14 do not divide into "
            "3 rounds; the nearest numbers that work are 12 and 15",
        ),
        (
            "interleaved_zb",
            10,
            65_536,
            "interleaved_zb on 10 ranks runs rounds of equal size, of at least 10 microbatches: 65536 do not divide "
            "into 6553 rounds; the nearest number that works is 65530",
        ),
    ],
)
def test_schedules_run_some_numbers_of_microbatches(
    kind: ScheduleKind, ranks: int, microbatches: int, detail: str | None
) -> None:
    """Tests the rules of torch's schedules, and the numbers named."""
    assert microbatches_fault(kind, ranks, microbatches) == detail


@given(KINDS, st.integers(1, 40), st.integers(1, 300))
def test_the_numbers_named_are_the_nearest_that_work(kind: ScheduleKind, ranks: int, microbatches: int) -> None:
    """Tests that nothing between them works, and that they do."""
    detail = microbatches_fault(kind, ranks, microbatches)
    if detail is None:
        return
    named = {int(number) for number in re.findall(r"\d+", detail.rpartition("work")[2])}
    low, high = max([0, *(n for n in named if n < microbatches)]), max(named)
    assert {n for n in range(max(1, low), high + 1) if microbatches_fault(kind, ranks, n) is None} == named


@pytest.mark.parametrize(
    ("kind", "chunks", "stages", "microbatches", "detail"),
    [
        ("1f1b", 1, 7, 4, None),
        ("custom", 2, 7, 4, None),
        ("zb_v", 2, 6, 4, None),
        (
            "zb_v",
            2,
            7,
            4,
            "zb_v runs 2 stages on every rank, and 7 is no multiple of 2; the nearest numbers that work are 6 and 8",
        ),
        ("zb_v", 2, 1, 4, "no multiple of 2; the nearest number that works is 2"),
        ("interleaved_1f1b", 4, 11, 4, "no multiple of 4; the nearest number that works is 8"),  # 12 are too many
        ("interleaved_1f1b", 4, 2, 4, "no multiple of 4; the nearest number that works is 4"),
        ("looped_bfs", 12, 11, 4, "no number works here"),
        ("dualpipe_v", 2, 7, 5, "no multiple of 2; the nearest number that works is 4"),  # 6 need six microbatches
    ],
)
def test_stages_fill_every_rank(
    kind: ScheduleKind, chunks: int, stages: int, microbatches: int, detail: str | None
) -> None:
    """Tests numbers up to ten stages."""
    fault = stages_fault(kind, chunks, stages, microbatches, 10)
    assert fault is None if detail is None else detail in (fault or "")


def test_both_rules_together() -> None:
    """Tests the question that has no message."""
    assert can_run("dualpipe_v", 2, 4, 4)
    assert not can_run("dualpipe_v", 2, 6, 4)
    assert not can_run("dualpipe_v", 2, 3, 9)
    assert can_run("custom", 2, 3, 9)


FIVE_RANKS = "\n".join(f"{stage}F0,{stage}B0" for stage in range(5))
SIX_STAGES = ",".join([*(f"{stage}F0" for stage in range(6)), *(f"{stage}B0" for stage in reversed(range(6)))])
EIGHT = {"kind": "looped_bfs", "chunks_per_rank": 8}


@pytest.mark.parametrize(
    ("changes", "pointer", "detail"),
    [
        ({"schedule": "zb_v", "num_stages": 3}, "/training/num_stages", "the nearest numbers that work are 2 and 4"),
        ({"schedule": "zb_v", "num_stages": 5}, "/training/num_stages", "the nearest number that works is 4"),
        ({"schedule": "zb_v", "num_stages": [2, 3]}, "/training/num_stages/1", "3 is no multiple of 2"),
        ({"schedule": "dualpipe_v", "num_stages": 4}, "/training/num_microbatches", "on 2 ranks needs at least 4"),
        ({"schedule": "dualpipe_v", "num_stages": [2, 4]}, "/training/num_stages/1", "on 2 ranks needs at least 4"),
        ({"schedule": EIGHT}, "/training/schedule", "8 stages on every rank, which need a layer each"),
        (
            {"schedule": "dualpipe_v", "num_microbatches": 1},
            "/training/num_microbatches",
            "on 1 rank needs at least 2",
        ),
        ({"schedule": ["1f1b", "zb_v"], "num_stages": 3}, "/training/schedule/1", "3 is no multiple of 2"),
        ({"schedule": ["1f1b", "zb_v"], "num_stages": [1, 3]}, "/training/schedule/1", "none of the numbers of stages"),
        ({"schedule": ["1f1b", "dualpipe_v"], "num_stages": 4}, "/training/schedule/1", "needs at least 4"),
        ({"schedule": ["zb_v", "1f1b"], "num_stages": 5}, "/training/schedule/1", "do not fit on the 4 ranks"),
        ({"schedule": ["zb_v", "1f1b"], "num_stages": 6}, "/training/num_stages", "the nearest number that works is 4"),
        ({"schedule": ["1f1b", EIGHT]}, "/training/schedule/1", "8 stages on every rank"),
        (
            {"schedule": ["1f1b", "dualpipe_v"], "num_microbatches": 1},
            "/training/schedule/1",
            "on 1 rank needs at least 2",
        ),
        (
            {"schedule": {"kind": "custom", "orders": FIVE_RANKS}, "num_microbatches": 1},
            "/training/schedule/orders",
            "orders for 5 ranks, but the devices allow 4",
        ),
        (
            {"schedule": ["1f1b", {"kind": "custom", "orders": SIX_STAGES}], "num_microbatches": 1},
            "/training/schedule/1/orders",
            "the orders run 6 stages, which need a layer each, but there are 5 layers",
        ),
    ],
)
def test_problems_that_a_schedule_cannot_run_are_refused(
    five_layers: Any, refused: Any, changes: dict[str, object], pointer: str, detail: str
) -> None:
    """Tests five layers on four devices, three microbatches: where the fault points, and what would work."""
    five_layers["training"] |= {"num_microbatches": 3, **changes}
    assert detail in refused(five_layers)[pointer].detail


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"schedule": "zb_v"}, 4),
        ({"schedule": "dualpipe_v"}, 2),  # three microbatches are too few for two ranks
        ({"schedule": "dualpipe_v", "num_stages": 2}, 2),
        ({"schedule": ["dualpipe_v", "zb_v"]}, 4),
        ({"schedule": ["1f1b", "gpipe"], "num_stages": 3}, 3),
        ({"schedule": {"kind": "interleaved_zb", "chunks_per_rank": 3}}, 3),
        ({"schedule": {"kind": "custom", "orders": "0F0,0F1,0F2,1F0,1F1,1F2"}}, 2),
    ],
)
def test_the_largest_number_of_stages_is_one_that_a_schedule_can_run(
    five_layers: Any, changes: dict[str, object], most: int
) -> None:
    """Tests five layers on four devices, three microbatches."""
    five_layers["training"] |= {"num_microbatches": 3, **changes}
    assert validate(Problem, five_layers).most_stages() == most
