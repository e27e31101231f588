"""The price of one plan, worked out from the problem alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.facts import Facts, read_facts
from oracle.memory import StageMemory, memory_of_stages
from oracle.partitions import Partition
from oracle.placements import Placement, node_of
from oracle.timing import Timing, Ways, gradient_size, time_plan
from oracle.traffic import Traffic, find_traffic
from partita.models.problem import Problem


@dataclass(frozen=True)
class Price:
    """All figures of a plan, named as in an answer."""

    iteration_time_s: float
    tokens_per_second: float | None
    peak_memory_bytes: int
    bottleneck_time_s: float
    bubble_fraction: float | None
    inter_node_bytes: int
    stages: list[StageMemory]
    traffic: Traffic
    timing: Timing
    tied: dict[str, tuple[list[int], int]]
    """Of every weight with several layers, the stages that hold it and the bytes they synchronize."""


def price(problem: Problem, stages: Sequence[Sequence[str]], devices: Sequence[Sequence[str]]) -> Price:
    """Price a plan given by the names of the layers and of the devices of its stages."""
    facts = read_facts(problem)
    stage_of = {name: stage for stage, names in enumerate(stages) for name in names}
    assert sum(map(len, stages)) == len(stage_of) == len(facts.names)
    partition = tuple(stage_of[name] for name in facts.names)
    return price_partition(problem, facts, partition, tuple(names[0] for names in devices))


def price_partition(problem: Problem, facts: Facts, partition: Partition, placement: Placement) -> Price:
    """Price a plan given by the stage of every layer and the first device of every stage."""
    traffic = find_traffic(facts, partition, max(partition) + 1)
    memory = memory_of_stages(facts, partition, traffic)
    timing = time_plan(facts, partition, traffic, Ways(problem.cluster, placement))
    iteration = timing.makespan_s + timing.synchronization_s + facts.step_s
    device_time = len(placement) * timing.makespan_s
    return Price(
        iteration_time_s=iteration,
        tokens_per_second=facts.tokens / iteration if iteration else None,
        peak_memory_bytes=max(stage.total_bytes for stage in memory),
        bottleneck_time_s=timing.bottleneck_s,
        bubble_fraction=1 - timing.busy_s / device_time if device_time else None,
        inter_node_bytes=facts.microbatches * _between_nodes(traffic, placement),
        stages=memory,
        traffic=traffic,
        timing=timing,
        tied=_tied(facts, partition),
    )


def _between_nodes(traffic: Traffic, placement: Placement) -> int:
    """Count the bytes of one microbatch that leave a node."""
    return sum(
        sum(sizes)
        for transfers in (traffic.forward, traffic.backward)
        for (low, high), sizes in transfers.items()
        if node_of(placement[low]) != node_of(placement[high])
    )


def _tied(facts: Facts, partition: Partition) -> dict[str, tuple[list[int], int]]:
    """Say where tied weights are and what they synchronize."""
    tied = {}
    for held in facts.weights:
        holders = sorted({partition[layer] for layer in held.layers})
        exchanged = gradient_size(facts, held.bytes) if facts.trains and len(holders) > 1 else 0
        tied[held.name] = (holders, exchanged)
    return tied
