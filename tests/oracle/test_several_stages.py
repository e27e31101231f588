"""Tests by hand of plans with several stages per rank, of split backwards and of transfers one after the other."""

from dataclasses import replace

import pytest

from oracle.by_hand import FREE, SLOW, a_problem, price_of, two_nodes
from oracle.facts import read_facts
from oracle.partitions import stage_counts
from oracle.pricing import Price, price_partition
from oracle.search import every_plan
from partita.models.training import Training
from strategies import Json, read

LATE = {"bandwidth_bytes_per_s": 1e18, "latency_s": 0.5}
PAIR = {"name": "node0", "device": "gpu", "count": 2, "fabric": LATE}
SLOW_PAIR = PAIR | {"fabric": SLOW}
SPLIT = {"forward_s": 1, "backward_s": 3, "weight_gradient_s": 1}


def interleaved(nodes: list[Json] | int, size: int = 0) -> Json:
    """Make a problem of four layers of 1 + 2 s in four stages on two ranks, with two microbatches."""
    layers = [{"forward_s": 1, "backward_s": 2, "output_bytes": size}] * 4
    return a_problem(layers, nodes, schedule="interleaved_1f1b", num_microbatches=2)


def spans_of(cost: Price) -> list[list[tuple[float, float]]]:
    """Give begin and end of every action."""
    return cost.timing.run.spans


def test_interleaved_stages() -> None:
    """Tests 0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1 beside 1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1, transfers taking no time."""
    cost = price_of(interleaved(2), [1, 1, 1, 1])
    first = [(0, 1), (1, 2), (2, 3), (3, 4), (6, 8), (9, 11), (11, 13), (13, 15)]
    second = [(1, 2), (2, 3), (3, 4), (4, 6), (6, 7), (7, 9), (9, 11), (11, 13)]
    assert spans_of(cost) == [first, second]
    assert cost.iteration_time_s == pytest.approx(15)
    assert cost.bottleneck_time_s == pytest.approx(2 * 3)
    assert cost.bubble_fraction == pytest.approx(1 - 2 * 2 * 2 * 3 / (2 * 15))


def test_interleaved_stages_half_a_second_apart() -> None:
    """Tests the same with 0.5 s on every hop: 3F0 begins at 4.5, 3B1 ends at 10.5, and 0B1 at 18."""
    cost = price_of(interleaved([PAIR]), [1, 1, 1, 1])
    assert spans_of(cost)[1][2] == pytest.approx((4.5, 5.5))
    assert spans_of(cost)[1][5] == pytest.approx((8.5, 10.5))
    assert cost.iteration_time_s == pytest.approx(18)


def test_every_hop_between_ranks_counts() -> None:
    """Tests the bytes between nodes: three boundaries, both ways, two microbatches."""
    cost = price_of(interleaved(two_nodes(), size=100), [1, 1, 1, 1], ["a:0", "b:0"])
    assert cost.inter_node_bytes == 3 * 2 * 2 * 100
    assert [rank.communication_bytes for rank in cost.ranks] == [3 * 100, 3 * 100]


def test_a_v_turns_on_its_last_rank() -> None:
    """Tests ZB-V with one microbatch: 0F 1F 2F 3F 3I 3W 2I 2W 1I 1W 0I 0W, and no transfer between 1 and 2.

    Rank 0 runs 0F at 0, 3F at 4, 3I at 5, 3W at 7, 0I at 13 and 0W at 15; rank 1 runs 1F at 1.5, 2F at 2.5, 2I at 7.5,
    2W at 9.5, 1I at 10.5 and 1W at 12.5.
    """
    cost = price_of(a_problem([SPLIT] * 4, [PAIR], schedule="zb_v"), [1, 1, 1, 1])
    assert cost.rank_of == [0, 1, 1, 0]
    assert [begin for begin, _ in spans_of(cost)[0]] == pytest.approx([0, 4, 5, 7, 13, 15])
    assert [begin for begin, _ in spans_of(cost)[1]] == pytest.approx([1.5, 2.5, 7.5, 9.5, 10.5, 12.5])
    assert cost.iteration_time_s == pytest.approx(16)
    assert cost.bubble_fraction == pytest.approx(1 - 2 * 2 * 4 / (2 * 16))
    assert cost.timing.forward_transfer_s == pytest.approx({(0, 1): 0.5, (1, 2): 0.0, (2, 3): 0.5})


def test_memory_of_a_v() -> None:
    """Tests that a weight and a buffer of both stages of a rank count once, and that a rank sends itself nothing."""
    sizes = {"weight_bytes": 100, "activation_bytes": 10, "output_bytes": 7}
    layers = [SPLIT | sizes | {"workspace_bytes": size} for size in (3, 9, 4, 5)]
    model = {
        "weights": [{"name": "tied", "bytes": 1000, "layers": ["l0", "l3"]}],
        "buffers": [{"name": "mean", "bytes": 50, "layers": ["l1", "l2"]}],
        "shared_activations": [{"bytes": 6, "layers": ["l0", "l3"]}],
    }
    problem = a_problem(layers, [SLOW_PAIR], model, schedule="zb_v", optimizer="adam_mixed")
    problem["cluster"]["devices"]["gpu"]["reserve_bytes"] = 9
    cost = price_of(problem, [1, 1, 1, 1])
    first, second = cost.ranks
    assert (first.stages, second.stages) == ((0, 3), (1, 2))
    assert (first.weights_bytes, first.gradients_bytes, first.optimizer_bytes) == (1200, 2400, 7200)
    assert (first.activations_bytes, first.buffers_bytes) == (16 + 16, 0)  # the shared storage is saved by either stage
    assert (first.communication_bytes, first.workspace_bytes, first.reserve_bytes) == (7 + 7, 5, 9)
    assert (second.weights_bytes, second.activations_bytes, second.buffers_bytes) == (200, 20, 50)
    assert (second.communication_bytes, second.workspace_bytes) == (7 + 7, 9)
    assert cost.peak_memory_bytes == 10_800 + 32 + 14 + 5 + 9
    assert cost.tied == {"tied": ([0, 3], 0)}
    assert cost.timing.synchronization_s == 0


def test_gradients_are_exchanged_between_devices() -> None:
    """Tests a weight on stages 0, 1 and 3 of a V: two ranks hold it, 2 x 1/2 of 10 kB over 10 kB/s and 0.5 s."""
    model = {"weights": [{"name": "tied", "bytes": 10_000, "layers": ["l0", "l1", "l3"]}]}
    cost = price_of(a_problem([SPLIT] * 4, [SLOW_PAIR], model, schedule="zb_v"), [1, 1, 1, 1])
    assert cost.tied == {"tied": ([0, 1, 3], 10_000)}
    assert cost.timing.synchronization_s == pytest.approx(0.5 + 1.0)


def test_replicas_exchange_all_stages_of_a_rank() -> None:
    """Tests two stages on one rank, twice: 2.5 + 2.5 kB of their own and 5 kB that they share, once: 0.5 + 1 s."""
    layers = [{"forward_s": 1, "backward_s": 1, "weight_bytes": 2500}] * 2
    model = {"weights": [{"name": "tied", "bytes": 5000, "layers": ["l0", "l1"]}]}
    problem = a_problem(layers, [SLOW_PAIR], model, schedule="looped_bfs", data_parallel=2)
    assert price_of(problem, [1, 1]).timing.synchronization_s == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("how", "seconds", "bottleneck"),
    [
        ({}, 6, 6),
        ({"communication": "blocking"}, 6, 6),
        ({"routing": "host"}, 6, 6),
        ({"routing": "host", "communication": "blocking"}, 6 + 4 * 1.5, 6 + 4 * 1.5),  # written and read all the same
    ],
)
def test_two_stages_on_one_rank(how: Json, seconds: float, bottleneck: float) -> None:
    """Tests that nothing is sent between them, but that blocking stages write for each other to the host's memory."""
    layers = [{"forward_s": 1, "backward_s": 2, "output_bytes": 10_000}] * 2
    cost = price_of(a_problem(layers, [SLOW_PAIR], schedule="looped_bfs", **how), [1, 1])
    assert cost.iteration_time_s == pytest.approx(seconds)
    assert cost.bottleneck_time_s == pytest.approx(bottleneck)
    assert cost.ranks[0].communication_bytes == 0


def test_transfers_of_a_boundary_wait_for_each_other() -> None:
    """Tests GPipe with transfers of 2 s: they end at 3, 5 and 7, and on the way back, begun at 9, at 11, 13 and 15."""
    layers = [{"forward_s": 1, "backward_s": 1, "output_bytes": 10_000}] * 2
    problem = a_problem(layers, two_nodes(uplink=SLOW), schedule="gpipe", num_microbatches=3)
    first, second = spans_of(price_of(problem, [1, 1], ["a:0", "b:0"]))
    assert [begin for begin, _ in second] == pytest.approx([3, 5, 7, 8, 9, 10])
    assert [begin for begin, _ in first] == pytest.approx([0, 1, 2, 11, 13, 15])


def test_transfers_of_different_boundaries_do_not_wait() -> None:
    """Tests that stage 0 sends to 1 and to 2 at once, 1.5 s each, at 1 and at 2.5; stage 1 adds 0.5 s of latency."""
    tensors = [
        {"name": f"t{reader}", "producer": "l0", "consumers": [f"l{reader}"], "bytes": 10_000} for reader in (1, 2)
    ]
    node = SLOW_PAIR | {"count": 3}
    problem = a_problem([{"forward_s": 1}] * 3, [node], {"tensors": tensors}, schedule="forward_only", routing="direct")
    problem["training"]["num_microbatches"] = 2
    _, second, third = spans_of(price_of(problem, [1, 1, 1]))
    assert second == [pytest.approx((2.5, 3.5)), pytest.approx((4, 5))]
    assert third == [pytest.approx((4, 5)), pytest.approx((5.5, 6.5))]


def test_blocking_gradients_belong_to_the_input_gradient() -> None:
    """Tests ZB-H1 with transfers of 1.5 s: F0 0 to 2.5, F1 1 to 4.5, I1 to 8, W1 to 9; I0 6.5 to 10, W0 to 11."""
    layers = [SPLIT | {"output_bytes": 10_000}, SPLIT | {"forward_s": 2}]
    problem = a_problem(layers, [SLOW_PAIR], schedule="zb_h1", communication="blocking")
    cost = price_of(problem, [1, 1])
    assert spans_of(cost)[0] == [pytest.approx(span) for span in [(0, 2.5), (6.5, 10), (10, 11)]]
    assert spans_of(cost)[1] == [pytest.approx(span) for span in [(1, 4.5), (4.5, 8), (8, 9)]]
    assert cost.bottleneck_time_s == pytest.approx(2 + 3 + 2 * 1.5)
    assert cost.bubble_fraction == pytest.approx(1 - (7.0 + 8.0) / (2 * 11))


def custom(*orders: str) -> Json:
    """Write a schedule by the orders of its ranks."""
    return {"kind": "custom", "orders": [order.split() for order in orders]}


@pytest.mark.parametrize(("postponed", "activations"), [(10, 16 + 16), (4, 10 + 16), (0, 6 + 16)])
def test_what_waits_for_its_weight_gradient(postponed: int, activations: int) -> None:
    """Tests 0F0 0I0 0F1 0W0 0I1 0W1: during 0F1 one microbatch is in flight and one keeps 6 bytes and its postponed."""
    model = {"shared_activations": [{"bytes": 6, "layers": ["l0", "l1"]}]}
    layers = [SPLIT | {"activation_bytes": 4}, SPLIT | {"activation_bytes": 6}]
    schedule = custom("0F0 0I0 0F1 0W0 0I1 0W1")
    problem = read(a_problem(layers, 1, model, schedule=schedule, num_microbatches=2))
    facts = replace(read_facts(problem), weight_gradient_bytes=[0, postponed])
    (rank,) = price_partition(problem, facts, (0, 0), ("node0:0",)).ranks
    assert rank.activations_bytes == activations
    assert rank.fullest == {((1, 1),)}


def test_whole_and_split_backwards_of_one_rank() -> None:
    """Tests 0F0 0F1 0I0 0B1 0W0 behind 1F0 1F1 1I0 1W0 1B1: I 2 s, W 1 s and B 3 s, 14 s in all."""
    schedule = custom("0F0 0F1 0I0 0B1 0W0", "1F0 1F1 1I0 1W0 1B1")
    cost = price_of(a_problem([SPLIT] * 2, 2, schedule=schedule, num_microbatches=2), [1, 1])
    assert spans_of(cost)[1] == [pytest.approx(span) for span in [(1, 2), (2, 3), (3, 5), (5, 6), (6, 9)]]
    assert spans_of(cost)[0] == [pytest.approx(span) for span in [(0, 1), (1, 2), (5, 7), (9, 12), (12, 13)]]


def test_receive_buffers_for_every_microbatch() -> None:
    """Tests that torch's runtime holds a receive buffer for each of eight microbatches."""
    layers = [{"forward_s": 1, "backward_s": 1, "output_bytes": 7}] * 2
    problem = read(a_problem(layers, 2, num_microbatches=8))
    facts = replace(read_facts(problem), buffers_for_all=True)
    cost = price_partition(problem, facts, (0, 1), ("node0:0", "node0:1"))
    assert [rank.communication_bytes for rank in cost.ranks] == [8 * 7, 8 * 7]


@pytest.mark.skipif("runtime" not in Training.model_fields, reason="problems do not name the runtime yet")
def test_the_runtime_is_read() -> None:
    """Tests that a problem's runtime says how many receive buffers there are."""
    layers = [{"forward_s": 1, "backward_s": 1}] * 2
    assert read_facts(read(a_problem(layers, runtime="torch"))).buffers_for_all
    assert not read_facts(read(a_problem(layers))).buffers_for_all


@pytest.mark.parametrize(
    ("schedule", "microbatches", "expected"),
    [
        ("zb_v", 1, [2, 4, 6]),
        ({"kind": "looped_bfs", "chunks_per_rank": 3}, 1, [3, 6]),
        ("dualpipe_v", 5, [2, 4]),  # three ranks need six
        ("interleaved_1f1b", 7, [2]),  # in 3 rounds on two ranks, in 2 on three
        ("interleaved_zb", 5, [2, 6]),
        ("zb_h2", 3, [1, 2, 3]),
        (custom("0F0 2F0", "1F0"), 1, [3]),
    ],
)
def test_numbers_of_stages(schedule: str | Json, microbatches: int, expected: list[int]) -> None:
    """Tests which numbers of stages seven layers and three devices allow."""
    problem = a_problem([{"forward_s": 1}] * 7, 3, schedule=schedule, num_microbatches=microbatches)
    assert stage_counts(read(problem)) == expected


def test_ranks_are_placed_not_stages() -> None:
    """Tests two placements of two ranks: W2 lies between 2I and 1I, and four hops between nodes take 1 s each."""
    problem = a_problem([SPLIT] * 4, two_nodes(fabric=FREE, uplink=LATE), schedule="zb_v", num_stages=4)
    plans = every_plan(read(problem))
    assert [plan.placement for plan in plans] == [("a:0", "a:1"), ("a:0", "b:0")]
    alone = 4 * 1 + 4 * 2 + 1 + 1
    assert [plan.value for plan in plans] == pytest.approx([alone, alone + 4])
