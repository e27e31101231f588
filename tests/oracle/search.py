"""Every feasible plan of a small problem, best first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from oracle.facts import Facts, read_facts
from oracle.memory import memory_of_ranks
from oracle.partitions import Partition, partitions, stage_counts
from oracle.placements import Placement, Places
from oracle.pricing import Price, price_partition
from oracle.traffic import find_traffic
from partita.models.problem import Problem

METRICS = {
    "iteration_time": "iteration_time_s",
    "tokens_per_second": "tokens_per_second",
    "peak_memory": "peak_memory_bytes",
    "bottleneck_time": "bottleneck_time_s",
    "num_devices": "num_devices",
    "inter_node_bytes": "inter_node_bytes",
}
CLOSE = 1e-9
"""Values that differ by less, relative to the larger, are equal."""


@dataclass(frozen=True)
class Plan:
    """A plan, its price, and its value in the unit of the objective."""

    value: float
    partition: Partition
    placement: Placement
    price: Price


def every_plan(problem: Problem) -> list[Plan]:
    """Find every plan that keeps memory, limits and constraints; the best by the objective come first.

    The problem has one configuration, one kind of device, no recompute to choose and no list of metrics: for all of
    these there is ``oracle.ways``.
    """
    plans = [plan for plan in all_priced(problem) if keeps_limits(problem, plan.price)]
    best_first = -1 if problem.objective == "tokens_per_second" else 1
    return sorted(plans, key=lambda plan: best_first * plan.value)


def pareto_front(plans: Iterable[Plan], metrics: tuple[str, str]) -> list[tuple[float, float]]:
    """Give the values of two fields of the metrics that no plan improves both of, by the first; smaller is better."""
    front: list[tuple[float, float]] = []
    for first, second in sorted({tuple(getattr(plan.price, metric) for metric in metrics) for plan in plans}):
        if front and first - front[-1][0] <= CLOSE * abs(first) and second < front[-1][1]:
            front.pop()
        if not front or second < front[-1][1] * (1 - CLOSE):
            front.append((first, second))
    return front


def all_priced(problem: Problem) -> Iterator[Plan]:
    """Price every partition that fits into memory in every placement."""
    facts = read_facts(problem)
    places = places_of(problem)
    for count in stage_counts(problem):
        placements = places.placements(facts.ranks_for(count))
        for partition in partitions(problem, count):
            if peak_memory(facts, partition) > memory_limit(problem, facts):
                continue
            for placement in placements:
                cost = price_partition(problem, facts, partition, placement)
                yield Plan(objective_value(problem, cost), partition, placement, cost)


def places_of(problem: Problem) -> Places:
    """Give the places for the problem's ranks."""
    facts = read_facts(problem)
    inside = facts.routing == "host" or (facts.trains and facts.together > 1)
    across = facts.trains and facts.together < facts.data_parallel
    return Places(problem.cluster, facts.tensor_parallel * facts.together, inside, across)


def peak_memory(facts: Facts, partition: Partition) -> int:
    """Give the bytes of the fullest rank."""
    num_stages = max(partition) + 1
    traffic = find_traffic(facts, partition, num_stages)
    return max(rank.total_bytes for rank in memory_of_ranks(facts, partition, traffic, facts.orders_for(num_stages)))


def memory_limit(problem: Problem, facts: Facts, kind: str | None = None) -> int:
    """Give the most bytes that a rank may need on each device, of the first kind if none is named."""
    limit = problem.limits.peak_memory_bytes
    memory = facts.memory_bytes if kind is None else problem.cluster.devices[kind].memory_bytes
    return memory if limit is None else min(limit, memory)


def keeps_limits(problem: Problem, cost: Price) -> bool:
    """Tell whether a plan keeps every limit but that on memory."""
    limits = problem.limits
    for field in ("iteration_time_s", "bottleneck_time_s", "num_devices", "inter_node_bytes", "bubble_fraction"):
        most = getattr(limits, field)
        if most is not None and (getattr(cost, field) or 0) > most:
            return False
    tokens, rate = limits.tokens_per_second, limits.microbatches_per_second
    if tokens is not None and cost.tokens_per_second is not None and cost.tokens_per_second < tokens:
        return False
    return rate is None or cost.bottleneck_time_s * rate <= 1


def objective_value(problem: Problem, cost: Price) -> float:
    """Give a plan's value in the unit of the objective."""
    if isinstance(problem.objective, dict):
        return float(sum(weight * getattr(cost, metric) for metric, weight in problem.objective.items()))
    value = getattr(cost, METRICS[str(problem.objective)])
    assert value is not None
    return float(value)


def plan_key(places: Places, partition: Partition, placement: Placement) -> tuple[Partition, Placement]:
    """Give the same key for plans that differ in the names of equal devices and nodes only."""
    return partition, places.canonical(placement)
