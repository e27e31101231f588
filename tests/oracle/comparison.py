"""Compares an answer with what the oracle found."""

from collections.abc import Sequence
from itertools import takewhile

import pytest

from oracle.facts import read_facts
from oracle.memory import RankMemory
from oracle.partitions import Partition
from oracle.placements import node_of
from oracle.pricing import Price, placement_of, price
from oracle.scenarios import Over
from oracle.search import METRICS, Plan, objective_value, places_of, plan_key
from partita.models.answer import Answer, Candidate
from partita.models.answer_plan import Metrics, Stage
from partita.models.problem import Problem

MEMORY_ITEMS = (
    "weights_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "buffers_bytes",
    "activations_bytes",
    "communication_bytes",
    "workspace_bytes",
    "reserve_bytes",
    "total_bytes",
)
EXACT = 1e-9
TIMES = ("iteration_time_s", "tokens_per_second", "bottleneck_time_s", "bubble_fraction")
SIZES = ("peak_memory_bytes", "inter_node_bytes", "num_devices")


def check_answer(problem: Problem, answer: Answer, plans: Sequence[Plan], tolerance: float) -> None:
    """Check status, values, figures and bounds against every feasible plan, best first; where exact, ties as well."""
    assert answer.status == ("optimal" if plans else "infeasible"), f"{answer.status} with {len(plans)} plans"
    assert (answer.infeasibility is None) == bool(plans)
    assert len(answer.candidates) == min(problem.search.candidates, len(plans)), f"of {len(plans)} plans"
    assert [candidate.rank for candidate in answer.candidates] == list(range(1, len(answer.candidates) + 1))
    for candidate, plan in zip(answer.candidates, plans, strict=False):
        check_candidate(problem, candidate)
        value = value_of(problem, candidate)
        assert value == pytest.approx(plan.value, rel=tolerance, abs=0), f"rank {candidate.rank}: {value}, not {plan}"
    if tolerance <= EXACT:
        peaks = [candidate.metrics.peak_memory_bytes for candidate in answer.candidates]
        assert peaks == least_peaks(plans)[: len(peaks)], "plans of one value come in the order of their peak memory"
    places = places_of(problem)
    known = {plan_key(places, plan.partition, plan.placement) for plan in plans}
    found = [key_of(problem, candidate) for candidate in answer.candidates]
    assert set(found) <= known
    assert len(set(found)) == len(found)
    if plans:
        # The bound leaves as much room again for the solver's own tolerance.
        assert answer.best_bound == pytest.approx(plans[0].value, rel=2 * tolerance, abs=0)
        assert answer.relative_gap == pytest.approx(0.0, abs=2 * tolerance)


def least_peaks(plans: Sequence[Plan]) -> list[int]:
    """Give the peak memory of every plan, best first and, among plans of one value, the smallest first."""
    peaks: list[int] = []
    while len(peaks) < len(plans):
        value = plans[len(peaks)].value
        equal = list(takewhile(lambda plan: abs(plan.value - value) <= EXACT * abs(value), plans[len(peaks) :]))
        peaks += sorted(plan.price.peak_memory_bytes for plan in equal)
    return peaks


def check_candidate(problem: Problem, candidate: Candidate) -> None:
    """Check every figure of a candidate against its price."""
    cost = price_candidate(problem, candidate)
    check_metrics(candidate.metrics, cost)
    _check_devices(problem, candidate, cost.rank_of)
    kind_of = {node.name: node.device for node in problem.cluster.expanded_nodes()}
    for stage in candidate.stages:
        assert stage.device == kind_of[node_of(stage.devices[0])]
        assert stage.memory.capacity_bytes == problem.cluster.devices[stage.device].memory_bytes
    for rank, memory in enumerate(cost.ranks):
        _check_memory([stage for stage in candidate.stages if stage.rank == rank], memory)
    _check_transfers(problem, candidate, cost)
    tied = {weight.name: (list(weight.stages), weight.synchronised_bytes) for weight in candidate.tied_weights}
    several = {weight.name for weight in problem.model.weights if len(weight.layers) > 1}
    assert {name: tied.get(name) for name in several} == {name: cost.tied[name] for name in several}


def check_metrics(metrics: Metrics, cost: Price | Over, times: Sequence[str] = TIMES) -> None:
    """Check times to within rounding, and sizes."""
    for metric in times:
        expected = getattr(cost, metric)
        if expected is not None:
            expected = pytest.approx(expected, rel=EXACT, abs=EXACT if metric == "bubble_fraction" else 0)
        assert getattr(metrics, metric) == expected, metric
    assert [getattr(metrics, size) for size in SIZES] == [getattr(cost, size) for size in SIZES]


def price_candidate(problem: Problem, candidate: Candidate) -> Price:
    """Price a candidate by the names of its layers and devices."""
    stages = [stage.layers for stage in candidate.stages]
    recompute = None
    if problem.constraints.recompute in ("choose", "stage"):
        recompute = {layer: name for stage in candidate.stages for layer, name in stage.options.items()}
    return price(problem, stages, [stage.devices for stage in candidate.stages], recompute)


def value_of(problem: Problem, candidate: Candidate) -> float:
    """Give a candidate's value as its own metrics tell it."""
    if isinstance(problem.objective, dict):
        return objective_value(problem, price_candidate(problem, candidate))
    return float(getattr(candidate.metrics, METRICS[str(problem.objective)]))


def partition_of(problem: Problem, candidate: Candidate) -> Partition:
    """Give the stage of every layer."""
    stage_of = {name: stage.index for stage in candidate.stages for name in stage.layers}
    return tuple(stage_of[layer.name] for layer in problem.model.layers)


def key_of(problem: Problem, candidate: Candidate) -> tuple[Partition, tuple[str, ...]]:
    """Give the same key for candidates that are one plan."""
    placement = placement_of(read_facts(problem), [stage.devices[0] for stage in candidate.stages])
    return plan_key(places_of(problem), partition_of(problem, candidate), placement)


def _check_memory(stages: Sequence[Stage], memory: RankMemory) -> None:
    """Check that the shares of a rank's stages add up, and were taken at a moment when most activations are kept."""
    assert tuple(stage.index for stage in stages) == memory.stages
    for item in MEMORY_ITEMS:
        assert sum(getattr(stage.memory, item) for stage in stages) == getattr(memory, item), item
    in_flight = tuple(stage.memory.in_flight for stage in stages)
    awaiting = tuple(getattr(stage.memory, "awaiting_weight_gradient", None) for stage in stages)
    if None in awaiting:  # an answer that does not say it
        assert in_flight in {tuple(flying for flying, _ in moment) for moment in memory.fullest}
        return
    moment = tuple(zip(in_flight, awaiting, strict=True))
    assert moment in memory.fullest
    for stage, (flying, waiting), (whole, postponed) in zip(stages, moment, memory.kept, strict=True):
        assert stage.memory.activations_bytes == flying * whole + (waiting or 0) * postponed


def _check_devices(problem: Problem, candidate: Candidate, rank_of: Sequence[int]) -> None:
    """Check that every rank has devices of its own, all of one node, and as many as the degrees say."""
    facts = read_facts(problem)
    assert [(stage.index, stage.rank) for stage in candidate.stages] == list(enumerate(rank_of))
    devices_of = {stage.rank: tuple(stage.devices) for stage in candidate.stages}
    assert all(tuple(stage.devices) == devices_of[stage.rank] for stage in candidate.stages)
    used = [device for devices in devices_of.values() for device in devices]
    known = {f"{node.name}:{at}" for node in problem.cluster.expanded_nodes() for at in range(node.count)}
    assert len(set(used)) == len(used)
    assert set(used) <= known
    for devices in devices_of.values():
        assert len(devices) == facts.tensor_parallel * facts.together
        assert len({node_of(device) for device in devices}) == 1


def _check_transfers(problem: Problem, candidate: Candidate, cost: Price) -> None:
    """Check the bytes and seconds of every boundary listed; every one that carries something to a rank is listed."""
    facts = read_facts(problem)
    listed = {(boundary.from_stage, boundary.to_stage) for boundary in candidate.boundaries}
    carrying = {
        pair
        for transfers in (cost.traffic.forward, cost.traffic.backward)
        for pair, sizes in transfers.items()
        if sum(sizes) and cost.rank_of[pair[0]] != cost.rank_of[pair[1]]
    }
    assert carrying <= listed
    for boundary in candidate.boundaries:
        pair = boundary.from_stage, boundary.to_stage
        assert boundary.forward_bytes == sum(cost.traffic.forward.get(pair, []))
        assert boundary.backward_bytes == sum(cost.traffic.backward.get(pair, []))
        if facts.routing == "host" and facts.blocking:
            continue  # written and read by either stage on its own; no pair has a time
        forward, backward = (
            cost.timing.forward_transfer_s.get(pair, 0.0),
            cost.timing.backward_transfer_s.get(pair, 0.0),
        )
        assert boundary.transfer_s == pytest.approx(forward, rel=EXACT, abs=0)
        assert boundary.backward_transfer_s == pytest.approx(backward, rel=EXACT, abs=0)
