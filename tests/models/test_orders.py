"""Tests of custom orders: circles of waiting ranks, and orders written as CSV."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lines_run import lines_run
from partita.models.actions import Action, write_orders_csv
from partita.models.base import Faults
from partita.models.document import validate
from partita.models.orders import check_orders
from partita.models.schedule import Schedule
from partita.models.training import Training


def custom(orders: object, microbatches: int = 2) -> dict[str, object]:
    """Give training by a custom schedule."""
    return {"schedule": {"kind": "custom", "orders": orders}, "num_microbatches": microbatches}


def read(text: object) -> str:
    """Read orders and write them again."""
    orders = validate(Schedule, {"kind": "custom", "orders": text}).orders
    assert orders is not None
    return write_orders_csv(orders)


@pytest.mark.parametrize(
    ("orders", "detail"),
    [
        (
            "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1",
            "deadlock: rank 0 waits at 0B0 for 1B0, rank 1 waits at 1F1 for 0F1; "
            "reorder so that rank 0 runs 0F1 before 0B0",
        ),
        (
            "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1F1,1I1,1W1,1I0,1W0\n2F1,2F0,2B0,2B1",
            None,  # other orders of the microbatches, but nobody waits in a circle
        ),
        (
            "0F0,0I0,0W0,0F1,0I1,0W1\n1F0,1F1,1I0,1W0,1I1,1W1",
            "deadlock: rank 0 waits at 0I0 for 1I0, rank 1 waits at 1F1 for 0F1; "
            "reorder so that rank 0 runs 0F1 before 0I0",
        ),
        (
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F1,1F0,3F1,3F0,3B0,3B1,1B1,1B0",
            None,
        ),
        ("1F0,0F0,0F1,1F1", "deadlock: rank 0 waits at 1F0 for 0F0; reorder so that rank 0 runs 0F0 before 1F0"),
        (
            "0F0,0F1\n1F0,3F0,1F1,3F1\n2F1,2F0\n4F0,4F1",
            "deadlock: rank 1 waits at 3F0 for 2F0, rank 2 waits at 2F1 for 1F1, rank 3 waits at 4F0 for 3F0; "
            "reorder so that rank 1 runs 1F1 before 3F0",
        ),
    ],
)
def test_ranks_do_not_wait_in_a_circle(refused: Any, orders: str, detail: str | None) -> None:
    """Tests the message: every rank that waits, where and for what, and a change that opens the circle."""
    if detail is None:
        validate(Training, custom(orders))
    else:
        assert refused(custom(orders), Training)["/schedule/orders"].detail == detail


def test_a_message_does_not_grow_with_the_ranks(refused: Any) -> None:
    """Tests seventy ranks that all wait for the first."""
    rows = ["1F0,0F0", *(f"{stage}F0" for stage in range(2, 71))]
    detail = refused(custom("\n".join(rows), 1), Training)["/schedule/orders"].detail
    assert "rank 63 waits at 64F0 for 63F0 and 6 more ranks wait; reorder so that rank 0 runs 0F0 before 1F0" in detail


Passes = list[tuple[str, int, int]]


def _halts(orders: list[Passes], last: int) -> bool:
    """Run the ranks round after round, as plainly as can be; tell whether they come to a halt."""
    done: set[tuple[str, int, int]] = set()
    rests = [list(order) for order in orders]
    while any(rests):
        before = len(done)
        for rest in rests:
            while rest:
                kind, stage, microbatch = rest[0]
                needs = (kind, stage - 1 if kind == "F" else stage + 1, microbatch)
                if needs not in done and 0 <= needs[1] <= last:
                    break
                done.add(rest.pop(0))
        if len(done) == before:
            return True
    return False


@given(st.data())
def test_a_circle_is_found_exactly_where_a_walk_halts(data: st.DataObject) -> None:
    """Tests random orders, each right on its own rank, against a walk round after round."""
    stages = data.draw(st.integers(1, 4))
    rank_of = [data.draw(st.integers(0, 2)) for _ in range(stages)]
    orders: list[Passes] = []
    for rank in sorted(set(rank_of)):
        passes = [("F", s, i) for s in range(stages) if rank_of[s] == rank for i in range(2)]
        order: Passes = []
        waiting = passes + [("B", s, i) for _, s, i in passes]
        while waiting:
            free = [each for each in waiting if each[0] == "F" or ("F", *each[1:]) in order]
            order.append(data.draw(st.sampled_from(free)))
            waiting.remove(order[-1])
        orders.append(order)
    faults = Faults()
    made = [[Action(kind=kind, stage=s, microbatch=i) for kind, s, i in order] for order in orders]  # type: ignore[arg-type]
    check_orders(faults, (), made, 2)
    assert faults.count == _halts(orders, stages - 1)


def test_actions_are_checked_in_linear_time() -> None:
    """Tests 16 ranks of 1F1B with ten times the microbatches."""

    def work(microbatches: int) -> int:
        faults, made = Faults(), orders_1f1b(16, microbatches)
        lines = lines_run(lambda: check_orders(faults, (), made, microbatches))
        assert faults.count == 0
        return lines

    assert work(1_000) < 11 * work(100)


@pytest.mark.slow
def test_a_million_actions_are_checked() -> None:
    """Tests 16 ranks of 1F1B at the size that files of orders may have."""
    faults = Faults()
    check_orders(faults, (), orders_1f1b(16, 31_250), 31_250)
    assert faults.count == 0


def orders_1f1b(ranks: int, microbatches: int) -> list[list[Action]]:
    """Give the orders of 1F1B with one stage on every rank."""
    made = []
    for rank in range(ranks):
        forward = [Action(kind="F", stage=rank, microbatch=i) for i in range(microbatches)]
        backward = [Action(kind="B", stage=rank, microbatch=i) for i in range(microbatches)]
        ahead = ranks - 1 - rank
        mixed = [step for pair in zip(forward[ahead:], backward, strict=False) for step in pair]
        made.append(forward[:ahead] + mixed + backward[microbatches - ahead :])
    return made


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0F0,0F1,,0B0,0B1\r\n,1F0,1B0,1F1,1B1\r\n", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"),
        ("0F0, (0F1;3B0)OVERLAP_F_B ,3W0", "0F0,0F1,3B0,3W0\n"),
        ([["0F0", {"kind": "I", "stage": 0, "microbatch": 0}]], "0F0,0I0\n"),
        ("0F0,\n\n1F0\n\n", "0F0\n\n1F0\n"),  # a row without actions is a rank without actions, but not at the end
    ],
)
def test_orders_are_read_from_csv(text: object, written: str) -> None:
    """Tests what torch writes: bubbles are left out, overlapped passes follow each other."""
    assert read(text) == written
    assert read(written) == written


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("0F0,0SEND_F0\n1RECV_F0,1F0", "'0SEND_F0' in row 1, cell 2 and 1 more cells name communication"),
        ("0UNSHARD,0F0", "'0UNSHARD' in row 1, cell 1 names communication"),
        ("0F0,0B0,0RESHARD", "give the compute-only order"),
        ("0F0,0B0,0REDUCE_GRAD", "give the compute-only order"),
        ("0F0\n0X1", "'0X1' in row 2, cell 1 is no action; an action is stage, F, B, I or W"),
        ("0F0;0F1", "'0F0;0F1' in row 1, cell 1 is no action"),
        ("(0F0;0X0)OVERLAP_F_B", "is no action"),
        ('0F0,"0F1', "not CSV"),
        ("", "at least 1 needed"),
    ],
)
def test_cells_that_are_no_actions_are_refused(refused: Any, text: str, detail: str) -> None:
    """Tests communication, unknown kinds and broken text."""
    assert detail in refused(custom(text), Training)["/schedule/orders"].detail


def test_both_forms_of_orders_are_in_the_schema() -> None:
    """Tests that orders may be lists or text."""
    forms = Schedule.model_json_schema()["properties"]["orders"]["anyOf"]
    assert [form["type"] for form in forms] == ["array", "string", "null"]
