"""Tests what ranks keep between passes against published peaks and against walks over the orders."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.random_schedules import random_orders
from partita.models.schedule import ScheduleKind
from partita.models.schedule_rules import can_run
from partita.solver.in_flight import Counts, Moments, find_moments, undominated
from partita.solver.pipeline import GENERATORS
from partita.solver.schedules.actions import Order, Orders

RANKS = (1, 2, 3, 4, 8)
ONE_EACH: tuple[ScheduleKind, ...] = ("gpipe", "1f1b", "zb_h1", "zb_h2")
LOOPED: tuple[ScheduleKind, ...] = ("interleaved_1f1b", "interleaved_zb", "looped_bfs")
V_SHAPED: tuple[ScheduleKind, ...] = ("zb_v", "dualpipe_v")

Held = dict[int, tuple[int, int]]
"""Of every stage of a rank: microbatches kept whole, and those of which only the weight gradient is left."""


def walk(order: Order) -> list[Held]:
    """Give what a rank keeps during each of its actions; a microbatch counts from and during F, and during B and I."""
    held: Held = {stage: (0, 0) for _, stage, _ in order}
    found = []
    for kind, stage, _ in order:
        whole, postponed = held[stage]
        if kind == "F":
            held[stage] = whole + 1, postponed
        found.append(dict(held))
        if kind in "BI":
            held[stage] = whole - 1, postponed + (kind == "I")
        elif kind == "W":
            held[stage] = whole, postponed - 1
    assert set(held.values()) == {(0, 0)}, "everything is given back"
    return found


def together(moments: Moments, rank: int) -> list[tuple[int, int]]:
    """Give what a rank keeps at its moments, over all its stages, the most first."""
    found = []
    for number in np.flatnonzero(moments.rank == rank):
        chosen = moments.moment == number
        found.append((int(moments.whole[chosen].sum()), int(moments.postponed[chosen].sum())))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("microbatches", [1, 2, 3, 4, 7, 8, 20])
def test_one_stage_per_rank(ranks: int, microbatches: int) -> None:
    """Tests the peaks m of GPipe and min(m, p - r) of 1F1B, and that inference keeps nothing."""
    for kind, peaks in (
        ("forward_only", [0] * ranks),
        ("gpipe", [microbatches] * ranks),
        ("1f1b", [min(microbatches, ranks - rank) for rank in range(ranks)]),
    ):
        moments = find_moments(GENERATORS[kind](ranks, 1, microbatches))
        assert [together(moments, rank) for rank in range(ranks)] == [[(peak, 0)] for peak in peaks]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("more", [0, 1, 5])
def test_zb_h1_and_zb_h2(ranks: int, more: int) -> None:
    """Tests the peaks p - r whole and r postponed of ZB-H1, 2p - 2r - 1 and 2r of ZB-H2 (Qi et al., 2.3).

    They are reached from p and 2p - 1 microbatches on; no other moment can then be fuller.
    """
    for kind, least, factor in (("zb_h1", ranks, 1), ("zb_h2", 2 * ranks - 1, 2)):
        moments = find_moments(GENERATORS[kind](ranks, 1, least + more))
        for rank in range(ranks):
            peak = factor * (ranks - rank) - (factor - 1), factor * rank
            assert together(moments, rank) == [peak]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("chunks", [1, 2, 3, 4])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_looped(ranks: int, chunks: int, rounds: int) -> None:
    """Tests the chunks that every rank keeps where stages lie around the ranks.

    Interleaved 1F1B keeps min(m v, 2 (p - r - 1) + (v - 1) p + 1) (Korthikanti et al., 4.2.3), breadth-first all m v.
    Interleaved zero-bubble keeps p v on every rank, of which r are postponed.
    """
    microbatches = rounds * ranks
    orders = {kind: GENERATORS[kind](ranks, chunks, microbatches) for kind in ("interleaved_1f1b", "looped_bfs")}
    for rank in range(ranks):
        peak = min(microbatches * chunks, 2 * (ranks - rank - 1) + (chunks - 1) * ranks + 1)
        assert together(find_moments(orders["interleaved_1f1b"]), rank)[0] == (peak, 0)
        assert together(find_moments(orders["looped_bfs"]), rank) == [(microbatches * chunks, 0)]
        found = together(find_moments(GENERATORS["interleaved_zb"](ranks, chunks, microbatches)), rank)
        assert max(sum(each) for each in found) == ranks * chunks
        assert (ranks * chunks - rank, rank) in found


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("more", [0, 1, 7])
@pytest.mark.parametrize(("kind", "surplus"), [("zb_v", 0), ("dualpipe_v", 1)])
def test_v_shaped(kind: str, surplus: int, ranks: int, more: int) -> None:
    """Tests the chunks that every rank keeps where stages lie there and back: uniform over the ranks.

    ZB-V keeps 2p chunks, as much as p stages of 1F1B's size (its README); DualPipeV PP + 1 of PP = 2p stages.
    """
    moments = find_moments(GENERATORS[kind](ranks, 2, 2 * ranks + more))
    for rank in range(ranks):
        assert max(sum(each) for each in together(moments, rank)) == 2 * ranks + surplus
        assert together(moments, rank)[0] == (2 * ranks + surplus, 0)


@pytest.mark.parametrize("ranks", RANKS)
def test_zb_v_with_few_microbatches(ranks: int) -> None:
    """Tests that ZB-V never keeps more than 2p chunks, nor more than there are."""
    for microbatches in range(1, 2 * ranks):
        moments = find_moments(GENERATORS["zb_v"](ranks, 2, microbatches))
        for rank in range(ranks):
            assert max(sum(each) for each in together(moments, rank)) <= 2 * min(ranks, microbatches)


def test_what_dominates() -> None:
    """Tests two stages: whole microbatches count for more than postponed ones, stage by stage."""
    found: dict[str, Counts] = {
        "most of stage 0": ((3, 0), (1, 0)),
        "fewer of stage 0": ((2, 0), (1, 0)),
        "one of them postponed": ((2, 1), (1, 0)),
        "one more postponed": ((2, 2), (1, 0)),
        "most of stage 1": ((0, 0), (2, 0)),
        "many postponed": ((0, 0), (0, 5)),
        "nothing": ((0, 0), (0, 0)),
    }
    kept = ("most of stage 0", "one more postponed", "most of stage 1", "many postponed")
    assert set(undominated(set(found.values()))) == {found[name] for name in kept}
    assert undominated(set()) == []
    assert undominated({found["nothing"]}) == [found["nothing"]]


def draw_orders(random: Random) -> Orders:
    """Draw a schedule known by name, or orders at random of stages anywhere."""
    if random.random() < 0.5:
        rank_of = [0, 1, 2, *(random.randrange(3) for _ in range(random.randint(0, 4)))]
        return random_orders(random, rank_of, random.randint(1, 5), random.choice(["B", "I", "BI"]))
    kind = random.choice((*ONE_EACH, *LOOPED, *V_SHAPED))
    ranks, chunks = random.randint(1, 5), 1 if kind in ONE_EACH else random.randint(1, 3) if kind in LOOPED else 2
    counts = [count for count in range(1, 16) if can_run(kind, chunks, chunks * ranks, count)]
    return GENERATORS[kind](ranks, chunks, random.choice(counts))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(random=st.randoms(use_true_random=False))
def test_the_fullest_moment(random: Random) -> None:
    """Tests sizes at random, those of whole microbatches no smaller, against every moment of every rank."""
    orders = draw_orders(random)
    stages = len({stage for order in orders for _, stage, _ in order})
    kept = np.array([random.choice([0, random.randint(0, 9), 10**12]) for _ in range(stages)], dtype=np.int64)
    for_weights = np.array([random.choice([0, each, random.randint(0, each)]) for each in kept.tolist()])
    whole, postponed = find_moments(orders).fullest(kept, for_weights)
    for order in orders:
        moments = walk(order)
        sizes = [sum(w * kept[stage] + p * for_weights[stage] for stage, (w, p) in held.items()) for held in moments]
        fullest = {stage: (int(whole[stage]), int(postponed[stage])) for stage in moments[0]}
        assert fullest in [held for held, size in zip(moments, sizes, strict=True) if size == max(sizes)]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(random=st.randoms(use_true_random=False))
def test_stages_alone_and_together(random: Random) -> None:
    """Tests the least peaks, and every stage at its own fullest moment, against every moment."""
    orders = draw_orders(random)
    walks = [walk(order) for order in orders]
    moments, stages = find_moments(orders), len({stage for order in orders for _, stage, _ in order})
    own = {stage: [held[stage] for held in found] for found in walks for stage in found[0]}
    assert moments.least_alone == min(max(whole for whole, _ in each) for each in own.values())
    assert moments.least_together == min(
        max(min(whole for whole, _ in held.values()) for held in found) for found in walks
    )
    whole, postponed = moments.alone(stages)
    assert whole.shape == postponed.shape == (len(whole), stages)
    kept = random.randint(0, 9)
    for_weights = random.randint(0, kept)
    for stage, each in own.items():
        counts = list(zip(whole[:, stage].tolist(), postponed[:, stage].tolist(), strict=True))
        assert set(counts) <= set(each)
        most = max(w * kept + p * for_weights for w, p in each)
        assert max(w * kept + p * for_weights for w, p in counts) == most
