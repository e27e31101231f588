"""Every feasible plan of a small problem, best first."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from oracle.facts import Facts, read_facts
from oracle.memory import memory_of_ranks
from oracle.partitions import Partition, partitions, stage_counts
from oracle.placements import Placement, Places
from oracle.pricing import Price, facts_of_plan, kinds_of, price_partition
from oracle.traffic import find_traffic
from partita.models.problem import Problem

METRICS = {
    "iteration_time": "iteration_time_s",
    "tokens_per_second": "tokens_per_second",
    "peak_memory": "peak_memory_bytes",
    "bottleneck_time": "bottleneck_time_s",
}


@dataclass(frozen=True)
class Plan:
    """A plan, its price, and its value in the unit of the objective."""

    value: float
    partition: Partition
    placement: Placement
    price: Price


def every_plan(problem: Problem) -> list[Plan]:
    """Find every plan that keeps memory, limits and constraints; the best by the objective come first."""
    plans = [plan for plan in all_priced(problem) if keeps_time_limits(problem, plan.price)]
    best_first = -1 if problem.objective == "tokens_per_second" else 1
    return sorted(plans, key=lambda plan: best_first * plan.value)


def all_priced(problem: Problem) -> Iterator[Plan]:
    """Price every partition that fits into memory in every placement."""
    if problem.constraints.recompute in ("choose", "stage") or len({node.device for node in problem.cluster.nodes}) > 1:
        yield from _all_ways(problem)
        return
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


def _all_ways(problem: Problem) -> Iterator[Plan]:
    """Price every partition in every placement by all options of recompute; give those that fit, the best by option."""
    facts, places = read_facts(problem), places_of(problem)
    for count in stage_counts(problem):
        for placement in places.placements(facts.ranks_for(count)):
            limits = [memory_limit(problem, facts, kind) for kind in kinds_of(problem, placement)]
            for partition in partitions(problem, count):
                found = []
                for options in choices_of_options(problem, partition):
                    costs = facts_of_plan(problem, partition, placement, options)
                    cost = price_partition(problem, costs, partition, placement)
                    fits = all(rank.total_bytes <= most for rank, most in zip(cost.ranks, limits, strict=True))
                    if fits and keeps_time_limits(problem, cost):
                        found.append(Plan(objective_value(problem, cost), partition, placement, cost))
                if found:
                    sign = -1 if problem.objective == "tokens_per_second" else 1
                    yield min(found, key=lambda plan: sign * plan.value)


def choices_of_options(problem: Problem, partition: Partition) -> Iterator[list[str | None] | None]:
    """Give every choice of an option for each layer, or for each stage; None where the problem leaves no choice."""
    recompute, layers = problem.constraints.recompute, problem.model.layers
    if recompute not in ("choose", "stage"):
        yield None
        return
    named = [sorted({each.recompute for each in layer.options if each.recompute}) for layer in layers]
    if recompute == "choose":
        yield from (list(each) for each in product(*([None, *names] for names in named)))
        return
    every = sorted({name for names in named for name in names})
    for of_stage in product([None, *every], repeat=max(partition) + 1):
        yield [of_stage[stage] for stage in partition]


def places_of(problem: Problem) -> Places:
    """Give the places for the problem's ranks."""
    facts = read_facts(problem)
    inside = facts.routing == "host" or (facts.trains and facts.data_parallel > 1)
    return Places(problem.cluster, facts.tensor_parallel * facts.data_parallel, inside)


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


def keeps_time_limits(problem: Problem, cost: Price) -> bool:
    """Tell whether a plan is as fast as asked."""
    slowest, longest = problem.limits.bottleneck_time_s, problem.limits.iteration_time_s
    if slowest is not None and cost.bottleneck_time_s > slowest:
        return False
    return longest is None or cost.iteration_time_s <= longest


def objective_value(problem: Problem, cost: Price) -> float:
    """Give a plan's value in the unit of the objective."""
    if isinstance(problem.objective, dict):
        return float(sum(weight * getattr(cost, metric) for metric, weight in problem.objective.items()))
    value = getattr(cost, METRICS[problem.objective])
    assert value is not None
    return float(value)


def plan_key(places: Places, partition: Partition, placement: Placement) -> tuple[Partition, Placement]:
    """Give the same key for plans that differ in the names of equal devices and nodes only."""
    return partition, places.canonical(placement)
