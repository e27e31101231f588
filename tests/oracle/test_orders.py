"""Tests the orders of the schedules: textbook rows, published peaks, and that no order gets stuck."""

import json
from random import Random

import pytest

from oracle.memory import moments
from oracle.orders import ORDERS, Order, allows, rank_orders, ranks_of_stages
from oracle.random_schedules import random_orders
from oracle.shared_data import shared_file
from oracle.simulation import Run, Span, Wire

CHUNKS = {"interleaved_1f1b": (1, 2, 3), "interleaved_zb": (1, 2, 3), "looped_bfs": (1, 2, 3)}
V_SCHEDULES = ("zb_v", "dualpipe_v")


def text(order: Order) -> str:
    """Write an order as torch does."""
    return " ".join(f"{stage}{kind}{microbatch}" for kind, stage, microbatch in order)


def most_in_flight(order: Order) -> int:
    """Count the most microbatches from forward to backward, over all stages of the rank."""
    return max(sum(flying for flying, _ in moment) for moment in moments(order))


@pytest.mark.parametrize("stages", range(1, 6))
@pytest.mark.parametrize("microbatches", range(1, 9))
def test_microbatches_in_flight(stages: int, microbatches: int) -> None:
    """Tests that the orders hold min(m, p - s) microbatches in 1F1B and m in GPipe."""
    orders = rank_orders("1f1b", stages, microbatches)
    assert [most_in_flight(order) for order in orders] == [min(microbatches, stages - s) for s in range(stages)]
    assert {most_in_flight(order) for order in rank_orders("gpipe", stages, microbatches)} == {microbatches}


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize(("in_flight", "postponed"), [(10, 4), (10, 10)])
def test_published_peaks(ranks: int, in_flight: int, postponed: int) -> None:
    """Tests the peaks of notes/cost-models.md, section 2: interleaved, ZB-H1 and ZB-H2, with enough microbatches."""

    def peaks(schedule: str, chunks: int = 1) -> list[int]:
        orders = rank_orders(schedule, ranks, 4 * ranks, chunks)
        sizes = in_flight, postponed
        return [max(sum(f * sizes[0] + w * sizes[1] for f, w in each) for each in moments(order)) for order in orders]

    below = range(ranks)
    assert peaks("zb_h1") == [(ranks - r) * in_flight + r * postponed for r in below]
    assert peaks("zb_h2") == [(2 * (ranks - r) - 1) * in_flight + 2 * r * postponed for r in below]
    for chunks in (2, 3):
        warm_up = [2 * (ranks - r - 1) + (chunks - 1) * ranks for r in below]
        assert peaks("interleaved_1f1b", chunks) == [(count + 1) * in_flight for count in warm_up]


@pytest.mark.parametrize(
    ("schedule", "ranks", "microbatches", "rank", "expected"),
    [
        ("1f1b", 3, 4, 0, "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3"),
        ("1f1b", 3, 4, 2, "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"),
        ("zb_h1", 2, 3, 0, "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2"),
        ("zb_h1", 2, 3, 1, "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"),
        ("zb_h2", 2, 4, 0, "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3"),
        ("zb_h2", 2, 4, 1, "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3"),
        ("looped_bfs", 2, 2, 1, "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0"),
        ("interleaved_1f1b", 2, 2, 0, "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1"),
        ("interleaved_1f1b", 2, 2, 1, "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"),
        ("interleaved_zb", 2, 2, 0, "0F0 0F1 2F0 2F1 2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1"),
        ("interleaved_zb", 2, 2, 1, "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1"),
        ("zb_v", 2, 2, 0, "0F0 0F1 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 0I1 0W1"),
        ("zb_v", 2, 2, 1, "1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1"),
        ("dualpipe_v", 2, 4, 0, "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3"),
        ("dualpipe_v", 2, 4, 1, "1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3"),
    ],
)
def test_rows(schedule: str, ranks: int, microbatches: int, rank: int, expected: str) -> None:
    """Tests rows written down by the rules; those of torch's schedules are also what torch 2.13 gives."""
    chunks = 2 if schedule in (*CHUNKS, *V_SCHEDULES) else 1
    assert text(rank_orders(schedule, ranks, microbatches, chunks)[rank]) == expected


def unit_run(orders: tuple[Order, ...]) -> list[list[Span]]:
    """Run orders in which every action takes a second and no transfer any time; a circle of waiting ranks fails."""
    stages = len(ranks_of_stages(orders))
    wires = [Wire("forward", stage, stage + 1, 0.0, queued=True) for stage in range(stages - 1)]
    wires += [Wire("backward", stage + 1, stage, 0.0, queued=True) for stage in range(stages - 1)]
    return Run(orders, {(kind, stage): 1.0 for kind in "FBIW" for stage in range(stages)}, wires).spans


@pytest.mark.parametrize("schedule", ORDERS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_orders_are_complete_and_never_stuck(schedule: str, ranks: int) -> None:
    """Tests that every stage runs every microbatch once, all its passes in the right order, and that ranks go on."""
    for microbatches in range(1, 13):
        if not allows(schedule, ranks, microbatches):
            continue
        for chunks in CHUNKS.get(schedule, (2,) if schedule in V_SCHEDULES else (1,)):
            orders = rank_orders(schedule, ranks, microbatches, chunks)
            assert [len({stage for _, stage, _ in order}) for order in orders] == [chunks] * ranks
            _check_complete(orders, ranks * chunks, microbatches, schedule != "forward_only")
            assert all(unit_run(orders))


@pytest.mark.parametrize("kinds", ["", "B", "I", "BI"])
@pytest.mark.parametrize("seed", range(10))
def test_random_orders_are_complete_and_never_stuck(kinds: str, seed: int) -> None:
    """Tests the same of random orders for stages spread at random."""
    random = Random(seed)
    rank_of = [0, 1, 2, *(random.randrange(3) for _ in range(random.randint(0, 3)))]
    orders = tuple(tuple(order) for order in random_orders(random, rank_of, 4, kinds))
    assert ranks_of_stages(orders) == rank_of
    _check_complete(orders, len(rank_of), 4, bool(kinds))
    assert all(unit_run(orders))


def _check_complete(orders: tuple[Order, ...], stages: int, microbatches: int, trains: bool) -> None:
    """Check that each stage takes each microbatch through F, then nothing, B, or I and W."""
    found = {(stage, microbatch): "" for stage in range(stages) for microbatch in range(microbatches)}
    for order in orders:
        for kind, stage, microbatch in order:
            found[stage, microbatch] += kind
    assert set(found.values()) <= ({"FB", "FIW"} if trains else {"F"})


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize(("schedule", "name"), [("zb_h1", "ZB-H1"), ("zb_h2", "ZB-H2"), ("1f1b", "1F1B")])
def test_published_bubble_rates(schedule: str, name: str, row: int) -> None:
    """Tests bubble rates of Qi et al. (arXiv 2401.10241, table 5) to the four decimals published."""
    published = json.loads(shared_file("zero_bubble.json", "reference"))["rows"][row]
    ranks, microbatches = published["p"], published["m"]
    forward, inputs, weights = (published[f"T_{kind}_ms"] for kind in "FBW")
    seconds = {"F": forward, "I": inputs, "W": weights, "B": inputs + weights}
    pairs = [(stage, stage + 1) for stage in range(ranks - 1)]
    wires = [Wire("forward", low, high, published["T_comm_ms"], queued=True) for low, high in pairs]
    wires += [Wire("backward", high, low, published["T_comm_ms"], queued=True) for low, high in pairs]
    run = Run(
        rank_orders(schedule, ranks, microbatches),
        {(kind, stage): each for kind, each in seconds.items() for stage in range(ranks)},
        wires,
    )
    cost = max(spans[-1][1] - spans[0][0] for spans in run.spans)
    assert round(1 - microbatches * (forward + inputs + weights) / cost, 4) == published["bubble_rate"][name]
