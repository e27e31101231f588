"""Tests that the orders of every schedule are complete, that they never get stuck, and which rank runs which stage."""

import pytest

from partita.models.schedule import Schedule, ScheduleKind
from partita.models.schedule_rules import can_run
from partita.solver.event_graph import EventGraph
from partita.solver.pipeline import GENERATORS, Pipeline, arrange

CHUNKS: dict[ScheduleKind, tuple[int, ...]] = {
    "forward_only": (1,),
    "gpipe": (1,),
    "1f1b": (1,),
    "zb_h1": (1,),
    "zb_h2": (1,),
    "interleaved_1f1b": (1, 2, 3, 5),
    "interleaved_zb": (1, 2, 3, 5),
    "looped_bfs": (1, 2, 3, 5),
    "zb_v": (2,),
    "dualpipe_v": (2,),
}
"""The numbers of stages per rank that are tried of every schedule."""
PASSES = {
    "forward_only": {"F"},
    "dualpipe_v": {"FB", "FIW"},
    **{kind: {"FIW"} for kind in ("zb_h1", "zb_h2", "zb_v", "interleaved_zb")},
}
"""What becomes of the microbatches, where it is not F and B of every one."""
RANKS = (1, 2, 3, 4, 7)
CASES = [(kind, chunks, ranks) for kind, several in CHUNKS.items() for chunks in several for ranks in RANKS]


def pipeline_of(kind: str, chunks: int, ranks: int, microbatches: int) -> Pipeline:
    """Give a pipeline of a schedule known by name."""
    schedule = Schedule.model_validate({"kind": kind, "chunks_per_rank": chunks})
    return arrange(schedule, chunks * ranks, microbatches)


def custom(*orders: str) -> Pipeline:
    """Give a pipeline of orders written out."""
    schedule = Schedule.model_validate({"kind": "custom", "orders": [order.split() for order in orders]})
    assert schedule.stages is not None
    return arrange(schedule, schedule.stages, 1)


def test_every_schedule_is_tried() -> None:
    """Tests that the cases name every schedule that has a generator."""
    assert set(CHUNKS) == set(GENERATORS)


@pytest.mark.parametrize(("kind", "chunks", "ranks"), CASES)
def test_orders_are_complete(kind: ScheduleKind, chunks: int, ranks: int) -> None:
    """Tests that every stage runs every microbatch once, forward, then B, or I and later W, and that nothing is stuck.

    The event graph is built with transfers that wait for each other, and with transfers within the passes.
    """
    for microbatches in range(1, 18):
        if not can_run(kind, chunks, chunks * ranks, microbatches):
            continue
        pipeline = pipeline_of(kind, chunks, ranks, microbatches)
        assert (pipeline.num_ranks, pipeline.num_stages) == (ranks, chunks * ranks)
        done = {(stage, i): "" for stage in range(chunks * ranks) for i in range(microbatches)}
        for rank, order in enumerate(pipeline.orders):
            for action, stage, i in order:
                assert pipeline.rank_of[stage] == rank
                done[stage, i] += action
        assert set(done.values()) == PASSES.get(kind, {"FB"})
        assert pipeline.kinds == frozenset("".join(done.values()))
        assert pipeline.splits == ("W" in pipeline.kinds)
        for blocking in (False, True):
            assert EventGraph(pipeline, skipping=False, blocking=blocking).num_nodes >= len(done)


@pytest.mark.parametrize(("kind", "chunks", "ranks"), CASES)
def test_ranks_of_stages(kind: str, chunks: int, ranks: int) -> None:
    """Tests stages r, r + R, and so on of rank r, or r and 2R - 1 - r where they lie there and back."""
    pipeline = pipeline_of(kind, chunks, ranks, 2 * ranks)
    for rank in range(ranks):
        around = [rank + chunk * ranks for chunk in range(chunks)]
        expected = [rank, 2 * ranks - 1 - rank] if kind in ("zb_v", "dualpipe_v") else around
        assert pipeline.stages_of[rank].tolist() == expected
    assert pipeline.one_each == (chunks == 1)
    # Where stages lie around the ranks, only one rank alone has neighbors; there and back, the last rank has two.
    turns = [stage + 1 == ranks for stage in range(2 * ranks - 1)]
    if kind not in ("zb_v", "dualpipe_v"):
        turns = [ranks == 1] * (chunks * ranks - 1)
    assert pipeline.turns.tolist() == turns


def test_stages_anywhere() -> None:
    """Tests stages 0, 1 and 4 on rank 1, 2 on rank 2 and 3 on rank 0."""
    pipeline = custom("3F0 3B0", "0F0 1F0 4F0 4I0 4W0 1B0 0B0", "2F0 2B0")
    assert pipeline.rank_of.tolist() == [1, 1, 2, 0, 1]
    assert [stages.tolist() for stages in pipeline.stages_of] == [[3], [0, 1, 4], [2]]
    assert pipeline.turns.tolist() == [True, False, False, False]
    assert pipeline.kinds == frozenset("FBIW")
    assert not pipeline.one_each
    assert [pipeline.comes_again(stage, 1) for stage in range(5)] == [False, True, False, False, False]
    assert [pipeline.comes_again(stage, 3) for stage in range(5)] == [False, True, False, False, True]


def test_stages_in_another_order() -> None:
    """Tests that one stage on every rank counts as plain only in order."""
    assert custom("0F0", "1F0").one_each
    assert not custom("1F0", "0F0").one_each
    assert custom("0F0").turns.shape == (0,)
