"""Tests of problems that list degrees of parallelism and batches to choose from."""

from typing import Any

import pytest

from oracle.small import small_problem
from partita.models.answer import Answer, Candidate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan, GivenStage
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan
from partita.solver.timeline import timeline
from strategies import Json

FABRIC = {"bandwidth_bytes_per_s": 2e4, "latency_s": 0.01}
UPLINK = {"bandwidth_bytes_per_s": 3e3, "latency_s": 0.05}


LAYERS = {
    name: {"forward_s": 1.0, "backward_s": 2.0, "weight_bytes": 1000, "activation_bytes": 100, "output_bytes": 50}
    for name in "abcd"
}


def nodes(number: int, count: int = 2) -> list[Json]:
    """Give nodes that are alike."""
    named = [f"n{index}" for index in range(number)]
    return [{"name": name, "device": "gpu", "count": count, "fabric": FABRIC, "uplink": UPLINK} for name in named]


def planned(number: int = 2, count: int = 2, layers: Any = None, **training: Any) -> Answer:
    """Plan the chain on nodes that are alike, with 1F1B."""
    usual = {"schedule": "1f1b", "optimizer": "sgd", "num_microbatches": None}
    return plan_problem(small_problem(layers or LAYERS, nodes=nodes(number, count), **usual | training))


def test_candidates_say_which_configuration_they_are() -> None:
    """Tests the fields of candidates, and one result for every configuration, the best first."""
    answer = planned(
        tensor_parallel=[1, 2],
        data_parallel=[1, 2],
        microbatch_size=[1, 2],
        global_batch_size=8,
        search={"candidates": 4},
    )
    assert answer.status == "optimal"
    assert all(
        candidate.num_microbatches * candidate.microbatch_size * candidate.data_parallel == 8
        for candidate in answer.candidates
    )
    found = [
        (each.tensor_parallel, each.data_parallel, each.replicas_per_node, each.microbatch_size)
        for each in answer.schedules
    ]
    assert len(set(found)) == len(found)
    # Two replicas are on one node or on two; with two devices each they do not fit on one.
    assert {each[:3] for each in found} == {(1, 1, 1), (2, 1, 1), (1, 2, 2), (1, 2, 1), (2, 2, 1)}
    first, best = answer.schedules[0], answer.candidates[0]
    assert (first.tensor_parallel, first.data_parallel) == (best.tensor_parallel, best.data_parallel)
    assert first.objective_value == best.metrics.iteration_time_s == answer.best_bound
    for result in answer.schedules[1:]:
        assert result.status in ("optimal", "cut_off")
        assert result.best_bound is not None and result.best_bound >= answer.best_bound * (1 - 1e-9)


def test_microbatches_follow_from_the_batch() -> None:
    """Tests that the number of microbatches is what is left of the batch."""
    answer = planned(data_parallel=2, microbatch_size=3, global_batch_size=24)
    assert {candidate.num_microbatches for candidate in answer.candidates} == {4}


def test_a_stage_wider_than_a_node_is_spread() -> None:
    """Tests an all-reduce over the fabric for two replicas on a node, then over the uplinks for the half of each."""
    (best,) = planned(data_parallel=4, num_stages=1, num_microbatches=1, search={"candidates": 1}).candidates
    (stage,) = best.stages
    assert stage.devices == ("n0:0", "n0:1", "n1:0", "n1:1")
    inside, between = 0.01 + 4000 / 2e4, 2 * 0.05 + 4000 / 2 / 3e3
    assert best.metrics.iteration_time_s == pytest.approx(4 * 3.0 + inside + between, rel=1e-12)


@pytest.mark.parametrize("overlap", [0.0, 0.25, 1.0])
def test_only_what_computing_does_not_hide_counts(overlap: float) -> None:
    """Tests the part of an all-reduce that is declared to overlap."""
    (best,) = planned(
        data_parallel=2, replicas_per_node=2, num_stages=1, num_microbatches=1, gradient_overlap=overlap
    ).candidates
    reduced = 0.01 + 4000 / 2e4
    assert best.metrics.iteration_time_s == pytest.approx(12.0 + (1 - overlap) * reduced, rel=1e-12)


def test_replicas_share_the_optimizer_state() -> None:
    """Tests that the state is divided by the replicas and rounded up for every layer, and that nothing else changes."""
    layers = {name: layer | {"weight_bytes": 1001} for name, layer in LAYERS.items()}
    options = {"data_parallel": 2, "replicas_per_node": 2, "num_stages": 1, "num_microbatches": 1, "optimizer": "adam"}
    whole, shared = (
        planned(layers=layers, shard_optimizer=sharing, **options).candidates[0] for sharing in (False, True)
    )
    assert whole.stages[0].memory.optimizer_bytes == 4 * 2002
    assert shared.stages[0].memory.optimizer_bytes == 4 * 1001
    odd = planned(layers=layers, shard_optimizer=True, **options | {"optimizer": "sgd_momentum"}).candidates[0]
    assert odd.stages[0].memory.optimizer_bytes == 4 * 501
    assert whole.metrics.iteration_time_s == shared.metrics.iteration_time_s


def test_costs_at_another_size_of_microbatch() -> None:
    """Tests that an option for the size is taken as it stands, that all else grows in proportion, and is named."""
    layers = {name: dict(layer) for name, layer in LAYERS.items()}
    layers["a"]["options"] = [{"microbatch_size": 4, "forward_s": 2.5}]
    answer = planned(layers=layers, microbatch_size=[2, 4], global_batch_size=4, num_stages=1)
    times = {each.microbatch_size: each.stages[0] for each in answer.candidates}
    assert (times[2].forward_s, times[4].forward_s) == (4.0, 2.5 + 3 * 2.0)
    assert (times[2].backward_s, times[4].backward_s) == (8.0, 16.0)
    assert times[4].memory.activations_bytes == 2 * times[2].memory.activations_bytes
    assert times[4].memory.weights_bytes == times[2].memory.weights_bytes
    assert any("3 of 4 layers have no option" in text for text in answer.assumptions) == (
        answer.candidates[0].microbatch_size == 4
    )


def test_baselines_have_the_best_configuration() -> None:
    """Tests times balanced as they are for the best size of microbatch, not for the first one."""
    layers = {name: layer | {"options": [{"microbatch_size": 2, "forward_s": 0.5}]} for name, layer in LAYERS.items()}
    layers["a"]["options"][0] |= {"backward_s": 12.0}
    for name in "bcd":
        layers[name]["options"][0] |= {"backward_s": 0.5}
    answer = planned(layers=layers, microbatch_size=[1, 2], global_batch_size=8, num_stages=2)
    assert answer.candidates[0].microbatch_size == 2
    assert answer.baselines["balanced_time"].stage_sizes == (1, 3)


@pytest.mark.parametrize(
    ("training", "pointer", "detail"),
    [
        ({"data_parallel": [1, 2], "num_microbatches": 4}, "/training/data_parallel", "4 to 8 samples"),
        ({"num_microbatches": [2, 4]}, "/training/num_microbatches", "cannot be compared"),
        ({"num_microbatches": None}, "/training/num_microbatches", "or global_batch_size"),
        ({"global_batch_size": 7, "microbatch_size": 2}, "/training/global_batch_size", "choose a multiple of 2"),
        ({"global_batch_size": 7, "num_microbatches": 2}, "/training/global_batch_size", "choose 2, or leave"),
        ({"tensor_parallel": 4, "num_microbatches": 1}, "/training/tensor_parallel", "at most 2"),
        ({"data_parallel": 3, "num_microbatches": 1}, "/training", "replicas_per_node x tensor_parallel"),
        ({"data_parallel": [*range(1, 70)], "microbatch_size": [*range(1, 70)]}, "/training", "at most 4096"),
    ],
)
def test_configurations_that_make_no_sense(training: Json, pointer: str, detail: str) -> None:
    """Tests where the fault is and what would be right."""
    with pytest.raises(InvalidInput) as raised:
        planned(**training)
    (fault, *_) = raised.value.faults
    assert fault.pointer == pointer
    assert detail in fault.detail


def test_different_batches_are_compared_by_throughput() -> None:
    """Tests that the larger batch wins where it hides more of the bubble, though its iteration takes longer."""
    answer = planned(num_microbatches=[2, 8], num_stages=2, objective="tokens_per_second", search={"candidates": 1})
    assert answer.status == "optimal"
    assert answer.candidates[0].num_microbatches == 8
    rates = [result.objective_value for result in answer.schedules if result.objective_value is not None]
    assert rates == sorted(rates, reverse=True)


def test_a_spread_plan_is_priced_again_as_it_was_found() -> None:
    """Tests that a plan over several nodes is laid out by its devices, and gives its timeline."""
    problem = small_problem(
        LAYERS, nodes=nodes(4), schedule="1f1b", data_parallel=2, replicas_per_node=1, num_stages=3, num_microbatches=4
    )
    (best, *_) = plan_problem(problem).candidates
    given = GivenPlan(stages=tuple(GivenStage(layers=each.layers, devices=each.devices) for each in best.stages))
    (priced,) = evaluate_plan(problem, given).candidates
    assert priced.metrics == best.metrics
    assert [stage.devices for stage in priced.stages] == [stage.devices for stage in best.stages]
    assert timeline(problem, best).makespan_s == pytest.approx(
        best.metrics.iteration_time_s - reduced_s(best), rel=1e-9
    )


def reduced_s(plan: Candidate) -> float:
    """Give the longest all-reduce of a plan whose replicas are on two nodes."""
    return max(0.1 + stage.memory.weights_bytes / 3e3 for stage in plan.stages)


@pytest.mark.parametrize(
    ("devices", "detail"),
    [
        (("n0:0", "n0:1"), "each of 2 nodes"),
        (("n0:0", "other:0"), "equal devices, fabrics and uplinks"),
    ],
)
def test_replicas_of_a_given_plan_on_nodes_that_do_not_suit(devices: tuple[str, ...], detail: str) -> None:
    """Tests that a plan for a spread configuration names as many similar nodes."""
    other = nodes(1)[0] | {"name": "other", "uplink": FABRIC}
    problem = small_problem(
        LAYERS, nodes=[*nodes(2), other], schedule="1f1b", data_parallel=2, replicas_per_node=1, num_microbatches=1
    )
    given = GivenPlan(stages=(GivenStage(layers=tuple("abcd"), devices=devices),))
    with pytest.raises(InvalidInput, match=detail):
        evaluate_plan(problem, given)
