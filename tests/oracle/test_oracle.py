"""Tests that the oracle itself is right: hand-computed plans and closed formulas."""

import pytest

from oracle.by_hand import FREE, SLOW, a_problem, price_of, two_nodes
from oracle.partitions import partitions, stage_counts
from oracle.placements import Places
from oracle.search import every_plan
from strategies import Json, read, seeded_problem


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("microbatches", [1, 2, 5, 9])
def test_equal_stages_follow_the_closed_formula(schedule: str, stages: int, microbatches: int) -> None:
    """Tests T = (m + p - 1)(F + B) and the bubble (p - 1)/(m + p - 1) without transfers."""
    layers = [{"forward_s": 1.5, "backward_s": 2.5}] * stages
    problem = a_problem(layers, nodes=stages, schedule=schedule, num_microbatches=microbatches)
    cost = price_of(problem, [1] * stages)
    assert cost.iteration_time_s == pytest.approx((microbatches + stages - 1) * 4.0)
    assert cost.bubble_fraction == pytest.approx((stages - 1) / (microbatches + stages - 1))


def test_overlapped_transfers_delay_only() -> None:
    """Tests two stages by hand: F0 1 | 1.5 | F1 2, B1 3 | 1.5 | B0 2, one microbatch, 11 s."""
    layers = [{"forward_s": 1, "backward_s": 2, "output_bytes": 10_000}, {"forward_s": 2, "backward_s": 3}]
    cost = price_of(a_problem(layers, two_nodes(fabric=SLOW)), [1, 1], ["a:0", "a:1"])
    assert cost.iteration_time_s == pytest.approx(1 + 1.5 + 2 + 3 + 1.5 + 2)
    assert cost.bottleneck_time_s == pytest.approx(5.0)
    assert cost.bubble_fraction == pytest.approx(1 - 8 / 22)
    assert cost.inter_node_bytes == 0


def test_blocking_transfers_occupy_both_ends() -> None:
    """Tests two stages by hand: F0 with its send 2.5, F1 with its receive 3.5 from 1 on, B1 4.5, B0 3.5 from 7.5 on."""
    layers = [{"forward_s": 1, "backward_s": 2, "output_bytes": 10_000}, {"forward_s": 2, "backward_s": 3}]
    problem = a_problem(layers, two_nodes(fabric=SLOW), communication="blocking")
    cost = price_of(problem, [1, 1], ["a:0", "a:1"])
    assert cost.iteration_time_s == pytest.approx(1 + 1.5 + 2 + 3 + 1.5 + 2)
    assert cost.bottleneck_time_s == pytest.approx(2 + 3 + 1.5 + 1.5)
    assert cost.bubble_fraction == pytest.approx(1 - (6.0 + 8.0) / (2 * 11))


def test_a_slow_boundary_is_the_bottleneck() -> None:
    """Tests that an overlapped transfer longer than any stage is the bottleneck and paces the next stage."""
    layers = [{"forward_s": 0.1, "output_bytes": 10_000}, {"forward_s": 0.2}]
    problem = a_problem(layers, two_nodes(uplink=SLOW), schedule="forward_only", num_microbatches=3)
    cost = price_of(problem, [1, 1], ["a:0", "b:0"])
    assert cost.bottleneck_time_s == pytest.approx(2.0)  # both latencies: 0.5 + 0.5 + 1
    assert cost.iteration_time_s == pytest.approx(0.1 + 3 * 2.0 + 0.2)  # one transfer after the other
    assert cost.inter_node_bytes == 30_000


SKIP = {
    "tensors": [
        {"name": "near", "producer": "l0", "consumers": ["l1"], "bytes": 10_000, "gradient_bytes": 0},
        {"name": "skip", "producer": "l0", "consumers": ["l1", "l2"], "bytes": 20_000, "gradient_bytes": 5_000},
        {"name": "late", "producer": "l2", "consumers": ["l0"], "bytes": 1_000, "pass": "backward"},
    ]
}


@pytest.mark.parametrize(
    ("routing", "forward", "backward"),
    [
        # 10 + 20 kB over the first boundary, 20 kB over the second; 5 + 1 kB back over both
        ("relay", {(0, 1): 0.5 + 3.0, (1, 2): 0.5 + 2.0}, {(0, 1): 0.5 + 0.6, (1, 2): 0.5 + 0.6}),
        # the skip also goes to stage 2 by itself; nothing goes from 1 to 2, but that connection stays
        ("direct", {(0, 1): 3.5, (1, 2): 0.5, (0, 2): 2.5}, {(0, 1): 1.0, (1, 2): 0.5, (0, 2): 0.5 + 0.6}),
        # each tensor by itself, written and read; a gradient of nothing is not sent
        (
            "host",
            {(0, 1): 2 * (1.5 + 2.5), (1, 2): 0.0, (0, 2): 2 * 2.5},
            {(0, 1): 2 * 1.0, (1, 2): 0.0, (0, 2): 2 * (1.0 + 0.6)},
        ),
    ],
)
def test_routes(routing: str, forward: dict[tuple[int, int], float], backward: dict[tuple[int, int], float]) -> None:
    """Tests what a skipping tensor and a backward tensor cost between each pair of stages."""
    node = {"name": "node0", "device": "gpu", "count": 3, "fabric": SLOW}
    problem = a_problem([{"forward_s": 1, "backward_s": 1}] * 3, [node], SKIP, routing=routing)
    timing = price_of(problem, [1, 1, 1]).timing
    assert timing.forward_transfer_s == pytest.approx(forward)
    assert timing.backward_transfer_s == pytest.approx(backward)


def test_host_writes_once_and_reads_once_per_stage() -> None:
    """Tests blocking stages over the host: stage 0 writes two tensors and reads two gradients and a late tensor."""
    node = {"name": "node0", "device": "gpu", "count": 3, "fabric": SLOW}
    problem = a_problem([{"forward_s": 1, "backward_s": 1}] * 3, [node], SKIP, routing="host", communication="blocking")
    cost = price_of(problem, [1, 1, 1])
    first = 2 + (1.5 + 2.5) + (1.0 + 1.0) + 0.6
    second = 2 + (1.5 + 2.5) + 1.0
    third = 2 + 2.5 + 1.0 + 0.6
    assert cost.bottleneck_time_s == pytest.approx(first)
    assert cost.iteration_time_s == pytest.approx(first + second + third)  # one microbatch, one stage after the other


def test_memory_item_by_item() -> None:
    """Tests what two stages hold: factors, shared things once per stage, receive buffers, the largest workspace."""
    layer = {"forward_s": 1, "backward_s": 1, "weight_bytes": 100, "activation_bytes": 10, "output_bytes": 7}
    layers = [layer | {"workspace_bytes": size} for size in (3, 5, 4)]
    model = {
        "weights": [{"name": "tied", "bytes": 1000, "layers": ["l0", "l2"]}],
        "buffers": [{"name": "mean", "bytes": 50, "layers": ["l0", "l1"]}],
        "shared_activations": [{"bytes": 6, "layers": ["l0", "l1"]}],
    }
    problem = a_problem(layers, 2, model, optimizer="adam_mixed", num_microbatches=8)
    problem["cluster"]["devices"]["gpu"]["reserve_bytes"] = 9
    first, second = price_of(problem, [2, 1]).ranks
    assert (first.weights_bytes, first.gradients_bytes, first.optimizer_bytes) == (1200, 2400, 7200)
    assert (first.buffers_bytes, first.activations_bytes) == (50, 2 * (10 + 10 + 6))
    assert first.fullest == {((2, 0),)}
    assert (first.communication_bytes, first.workspace_bytes, first.reserve_bytes) == (7, 5, 9)
    assert first.total_bytes == 10_800 + 50 + 52 + 7 + 5 + 9
    assert second.total_bytes == 9 * 1100 + 10 + 7 + 4 + 9


def test_what_happens_once_per_iteration() -> None:
    """Tests data-parallel exchange, tied weights and the optimizer step: 0.5 + 1.5, 0.5 + 0.5 + 2 and 0.25 s."""
    optimizer = {"gradient_bytes_per_weight_byte": 2, "state_bytes_per_weight_byte": 0, "step_s": 0.25}
    layers = [{"forward_s": 1, "backward_s": 1}, {"forward_s": 1, "backward_s": 1, "weight_bytes": 2500}]
    tied = {"weights": [{"name": "tied", "bytes": 5_000, "layers": ["l0", "l1"]}]}
    problem = a_problem(layers, two_nodes(SLOW, SLOW), tied, data_parallel=2, optimizer=optimizer)
    cost = price_of(problem, [1, 1], ["a:0", "b:0"])
    assert cost.tied == {"tied": ([0, 1], 10_000)}
    assert cost.timing.run.makespan_s == pytest.approx(1 + 1 + 1 + 1 + 2 * 1.0)  # the boundary's latencies, twice
    assert cost.iteration_time_s == pytest.approx(6 + (0.5 + 1.5) + (0.5 + 0.5 + 1.0) + 0.25)
    assert cost.tokens_per_second == pytest.approx(2 / 10.25)


def test_options_apply_from_the_loosest_to_the_tightest() -> None:
    """Tests that two selectors beat one, and that only a time measured on this kind of device ignores its speed."""
    options = [
        {"recompute": "full", "tensor_parallel": 1, "activation_bytes": 3, "backward_s": 8},
        {"device": "gpu", "forward_s": 5, "activation_bytes": 2},
        {"recompute": "full", "activation_bytes": 1, "backward_s": 6},
        {"recompute": "other", "forward_s": 100},
    ]
    problem = a_problem([{"forward_s": 4, "backward_s": 4, "options": options}], 1)
    problem["cluster"]["devices"]["gpu"]["speed"] = 2
    problem["constraints"] = {"recompute": "full"}
    cost = price_of(problem, [1])
    assert cost.iteration_time_s == pytest.approx(5 + 8 / 2)
    assert cost.ranks[0].activations_bytes == 3


def test_partitions_of_a_chain_and_of_free_layers() -> None:
    """Tests the number of partitions: C(5, 2) for a chain of six, surjections for layers without edges."""
    chain = a_problem([{"forward_s": 1}] * 6)
    assert len(list(partitions(read(chain), 3))) == 10
    free = a_problem([{"forward_s": 1}] * 4, model={"tensors": []})
    assert len(list(partitions(read(free), 2))) == 2**4 - 2
    assert stage_counts(read(free)) == [1, 2, 3, 4]


def test_constraints_leave_the_right_partitions() -> None:
    """Tests every constraint on a chain of five in two stages, whose cut is the number of layers before it."""

    def cuts(constraints: Json, model: Json | None = None) -> list[int]:
        problem = a_problem([{"forward_s": 1}] * 5, model=model) | {"constraints": constraints}
        return [partition.count(0) for partition in partitions(read(problem), 2)]

    assert sorted(cuts({})) == [1, 2, 3, 4]
    assert sorted(cuts({"pins": {"l2": 0}})) == [3, 4]
    assert sorted(cuts({"together": [["l1", "l3"]]})) == [1, 4]
    assert sorted(cuts({"apart": [["l1", "l3"]]})) == [2, 3]
    assert sorted(cuts({"cut_after": ["l0", "l2", "l4"]})) == [1, 3]
    mutated = {"buffers": [{"name": "b", "bytes": 1, "layers": ["l1", "l2"], "mutated": True}]}
    assert sorted(cuts({}, mutated)) == [1, 3, 4]


def places(nodes: list[Json], links: list[Json], degree: int = 1) -> Places:
    """Give the places of some nodes and links."""
    problem = a_problem([{"forward_s": 1}] * 2, nodes)
    problem["cluster"]["links"] = links
    return Places(read(problem).cluster, degree)


def test_placements_up_to_renaming() -> None:
    """Tests the number of different placements of two stages on equal and on uneven nodes."""
    equal = places(two_nodes(), [])
    assert equal.placements(2) == [("a:0", "a:1"), ("a:0", "b:0")]
    assert equal.canonical(("b:1", "a:0")) == equal.canonical(("a:0", "b:0"))
    assert places(two_nodes(), [], degree=2).placements(2) == [("a:0", "b:0")]
    uneven = [*two_nodes(), two_nodes()[0] | {"name": "c", "count": 1}]
    assert len(places(uneven, []).placements(2)) == 4


def test_placements_over_explicit_links() -> None:
    """Tests that a link tells devices and nodes apart only where exchanging them would change a way."""
    three = [{"name": "n", "device": "gpu", "count": 3, "fabric": FREE}]
    link = {"between": ["n:0", "n:2"]} | SLOW
    assert len(places(three, [link]).placements(2)) == 3  # over the link, away from it, towards it
    other = {"between": ["n:0", "n:1"], "bandwidth_bytes_per_s": 1e6}
    assert len(places(three, [link, other]).placements(2)) == 6
    nodes = [two_nodes()[0] | {"name": name, "count": 1} for name in "abc"]
    assert len(places(nodes, []).placements(2)) == 1
    assert len(places(nodes, [{"between": ["a", "b"]} | SLOW]).placements(2)) == 3
    assert len(places(nodes, [{"between": ["a", "b"]} | FREE]).placements(2)) == 1  # no better than the others


def test_the_best_plan_of_a_tiny_chain() -> None:
    """Tests ranking by hand: loads 3 + 1 + 1 in two stages take 3 | 2 or 4 | 1."""
    problem = a_problem([{"forward_s": 3}, {"forward_s": 1}, {"forward_s": 1}], schedule="forward_only")
    problem["training"]["num_stages"] = 2
    problem["objective"] = "bottleneck_time"
    assert [plan.value for plan in every_plan(read(problem))] == [3.0, 4.0]
    problem["limits"] = {"bottleneck_time_s": 2.5}
    assert every_plan(read(problem)) == []


@pytest.mark.parametrize("seed", range(40))
def test_plans_are_in_order_and_keep_their_limits(seed: int) -> None:
    """Tests the plans of random problems: in order, different, within memory, none faster than its bottleneck."""
    problem = read(seeded_problem(seed))
    plans = every_plan(problem)
    values = [plan.value for plan in plans]
    assert values == sorted(values, reverse=problem.objective == "tokens_per_second")
    assert len({(plan.partition, plan.placement) for plan in plans}) == len(plans)
    for plan in plans:
        assert plan.price.peak_memory_bytes <= problem.cluster.devices["gpu"].memory_bytes
        assert plan.price.bubble_fraction is not None and -1e-9 <= plan.price.bubble_fraction < 1
        least = problem.training.num_microbatches * plan.price.bottleneck_time_s
        assert plan.price.iteration_time_s >= least * (1 - 1e-9)
