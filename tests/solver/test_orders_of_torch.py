"""Tests that the orders of the schedules are those that torch.distributed.pipelining runs."""

from typing import Any
from unittest import mock

import pytest

from partita.models.schedule import Schedule
from partita.solver.pipeline import arrange
from partita.solver.schedules.actions import Orders

pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
stage_module = pytest.importorskip("torch.distributed.pipelining.stage")
visualizer = pytest.importorskip("torch.distributed.pipelining._schedule_visualizer")

RECORDED = [("gpipe", "GPipe"), ("1f1b", "1F1B")]
"""Schedules with one stage per rank; torch writes their orders for drawings only, and wrongly for 1F1B's last rank."""
WRITTEN = [
    ("interleaved_1f1b", "Interleaved1F1B", (2, 3)),
    ("interleaved_zb", "InterleavedZeroBubble", (2, 3)),
    ("looped_bfs", "LoopedBFS", (2, 3)),
    ("zb_v", "ZBVZeroBubble", (2,)),
    ("dualpipe_v", "DualPipeV", (2,)),
]
"""Schedules whose written orders are what torch runs, with the numbers of stages per rank."""
SIZES = [(ranks, times * ranks) for ranks in (2, 3, 4, 8) for times in (1, 2, 4)]
"""Ranks and microbatches."""


def ours(schedule: dict[str, Any], num_stages: int, microbatches: int) -> list[list[str]]:
    """Give our orders, every action as torch writes it."""
    orders: Orders = arrange(Schedule.model_validate(schedule), num_stages, microbatches).orders
    return [[f"{stage}{kind}{microbatch}" for kind, stage, microbatch in order] for order in orders]


def recorded(name: str, rank: int, ranks: int, microbatches: int) -> list[str]:
    """Let torch run a schedule on a stage that only notes down what it is told to do."""
    order: list[str] = []
    stage = mock.create_autospec(stage_module.PipelineStage, instance=True)
    stage.configure_mock(
        group_rank=rank,
        group_size=ranks,
        stage_index=rank,
        num_stages=ranks,
        is_first=rank == 0,
        is_last=rank == ranks - 1,
        submod=None,
        has_backward=True,
    )
    for moved in ("fwd_recv", "fwd_send", "bwd_recv", "bwd_send"):
        getattr(stage, f"get_{moved}_ops").return_value = []
    stage.forward_one_chunk.side_effect = lambda number, *_, **__: order.append(f"{rank}F{number}")
    stage.backward_one_chunk.side_effect = lambda number, **_: order.append(f"{rank}B{number}")
    schedule = schedules.get_schedule_class(name)(stage, microbatches, scale_grads=False)
    with mock.patch.object(schedule, "_initialize_stage"):
        schedule._step_microbatches()
    return order


def written(name: str, ranks: int, microbatches: int, chunks: int) -> list[list[str]]:
    """Give the orders that torch has written down, without gaps; overlapped passes come one after the other."""
    orders = []
    for row in visualizer.get_schedule_ops(name, ranks, microbatches, chunks):
        actions = [part for each in row if each is not None for part in each.sub_actions or (each,)]
        orders.append([str(each) for each in actions if "REDUCE_GRAD" not in str(each)])
    return orders


@pytest.mark.parametrize(("ranks", "microbatches"), SIZES)
@pytest.mark.parametrize(("kind", "name"), RECORDED)
def test_one_stage_per_rank(kind: str, name: str, ranks: int, microbatches: int) -> None:
    """Tests our orders against the calls that torch makes on every rank."""
    theirs = [recorded(name, rank, ranks, microbatches) for rank in range(ranks)]
    assert ours({"kind": kind}, ranks, microbatches) == theirs


@pytest.mark.parametrize(
    ("kind", "name", "chunks", "ranks", "microbatches"),
    [
        (kind, name, chunks, ranks, microbatches)
        for kind, name, several in WRITTEN
        for chunks in several
        for ranks, microbatches in SIZES
        if kind != "dualpipe_v" or microbatches >= 2 * ranks
    ],
)
def test_several_stages_per_rank(kind: str, name: str, chunks: int, ranks: int, microbatches: int) -> None:
    """Tests our orders against those that torch writes down and runs."""
    theirs = written(name, ranks, microbatches, chunks)
    assert ours({"kind": kind, "chunks_per_rank": chunks}, chunks * ranks, microbatches) == theirs


def test_no_schedule_of_torch_is_missing() -> None:
    """Tests that torch has no further schedules, so that this file says when it gets one."""
    found = {name.removeprefix("Schedule") for name in vars(schedules) if name.startswith("Schedule")}
    assert found == {case[1] for case in (*RECORDED, *WRITTEN)}


def test_torch_still_writes_down_1f1b_wrongly() -> None:
    """Tests why 1F1B is recorded: torch's written order of the last rank begins with microbatch 1 and ends with m."""
    forward = [action for action in written("1F1B", 3, 4, 1)[-1] if "F" in action]
    assert forward == ["2F1", "2F2", "2F3", "2F4"]
