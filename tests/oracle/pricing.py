"""The price of one plan, worked out from the problem alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oracle.facts import Facts, read_facts
from oracle.memory import RankMemory, memory_of_ranks
from oracle.orders import ranks_of_stages
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
    num_devices: int
    rank_of: list[int]
    """The rank of every stage."""
    ranks: list[RankMemory]
    traffic: Traffic
    timing: Timing
    tied: dict[str, tuple[list[int], int]]
    """Of every weight with several layers, the stages that hold it and the bytes they synchronize."""


def price(
    problem: Problem,
    stages: Sequence[Sequence[str]],
    devices: Sequence[Sequence[str]],
    recompute: Mapping[str, str] | None = None,
) -> Price:
    """Price a plan given by the names of the layers and of the devices of its stages; stages of a rank share theirs.

    ``recompute`` is the option of every layer that has one, where that is for the plan to choose.
    """
    facts = read_facts(problem)
    stage_of = {name: stage for stage, names in enumerate(stages) for name in names}
    assert sum(map(len, stages)) == len(stage_of) == len(facts.names)
    partition = tuple(stage_of[name] for name in facts.names)
    placement = placement_of(facts, [names[0] for names in devices])
    options = None if recompute is None else [recompute.get(name) for name in facts.names]
    return price_partition(problem, facts_of_plan(problem, partition, placement, options), partition, placement)


def facts_of_plan(
    problem: Problem, partition: Partition, placement: Placement, options: Sequence[str | None] | None = None
) -> Facts:
    """Give the facts of a plan: of every layer on the kind of device that its stage has, by its option."""
    rank_of = ranks_of_stages(read_facts(problem).orders_for(max(partition) + 1))
    kinds = kinds_of(problem, placement)
    return read_facts(problem, [kinds[rank_of[stage]] for stage in partition], options)


def kinds_of(problem: Problem, placement: Placement) -> list[str]:
    """Give the kind of device of every rank."""
    kind_of = {node.name: node.device for node in problem.cluster.expanded_nodes()}
    return [kind_of[node_of(device)] for device in placement]


def placement_of(facts: Facts, first_devices: Sequence[str]) -> Placement:
    """Turn the first device of every stage into that of every rank."""
    rank_of = ranks_of_stages(facts.orders_for(len(first_devices)))
    device_of = dict(zip(rank_of, first_devices, strict=True))
    assert [device_of[rank] for rank in rank_of] == list(first_devices), "the stages of a rank are on one device"
    return tuple(device_of[rank] for rank in sorted(device_of))


def price_partition(problem: Problem, facts: Facts, partition: Partition, placement: Placement) -> Price:
    """Price a plan given by the stage of every layer and the first device of every rank."""
    num_stages = max(partition) + 1
    orders = facts.orders_for(num_stages)
    rank_of = ranks_of_stages(orders)
    traffic = find_traffic(facts, partition, num_stages)
    reserves = [problem.cluster.devices[kind].reserve_bytes for kind in kinds_of(problem, placement)]
    memory = memory_of_ranks(facts, partition, traffic, orders, reserves)
    timing = time_plan(facts, partition, traffic, orders, Ways(problem.cluster, placement))
    makespan = timing.run.makespan_s
    iteration = makespan + timing.synchronization_s + facts.step_s
    device_time = len(orders) * makespan
    return Price(
        iteration_time_s=iteration,
        tokens_per_second=facts.tokens / iteration if iteration else None,
        peak_memory_bytes=max(rank.total_bytes for rank in memory),
        bottleneck_time_s=timing.bottleneck_s,
        bubble_fraction=1 - timing.busy_s / device_time if device_time else None,
        inter_node_bytes=facts.microbatches * _between_nodes(traffic, rank_of, placement),
        num_devices=len(placement) * facts.tensor_parallel * facts.data_parallel,
        rank_of=rank_of,
        ranks=memory,
        traffic=traffic,
        timing=timing,
        tied=_tied(facts, partition, rank_of),
    )


def _between_nodes(traffic: Traffic, rank_of: list[int], placement: Placement) -> int:
    """Count the bytes of one microbatch that leave a node."""
    return sum(
        sum(sizes)
        for transfers in (traffic.forward, traffic.backward)
        for (low, high), sizes in transfers.items()
        if node_of(placement[rank_of[low]]) != node_of(placement[rank_of[high]])
    )


def _tied(facts: Facts, partition: Partition, rank_of: list[int]) -> dict[str, tuple[list[int], int]]:
    """Say where tied weights are and what they synchronize."""
    tied = {}
    for held in facts.weights:
        holders = sorted({partition[layer] for layer in held.layers})
        several = len({rank_of[stage] for stage in holders}) > 1
        exchanged = gradient_size(facts, held.bytes) if facts.trains and several else 0
        tied[held.name] = (holders, exchanged)
    return tied
