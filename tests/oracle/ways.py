"""Every plan of all configurations of a problem, by every choice of recompute; and those that are allowed, in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from oracle.choices import Case, Setting, cases
from oracle.facts import Facts, read_facts
from oracle.orders import ranks_of_stages
from oracle.partitions import Partition, keeps_constraints, partitions, stage_counts
from oracle.placements import Placement
from oracle.pricing import Price, kinds_of, price_partition
from oracle.scenarios import Over, over
from oracle.search import CLOSE, METRICS, keeps_limits, places_of
from partita.models.objective import Objective
from partita.models.problem import Problem

Level = Callable[[Price | Over], float]
"""What is minimized of a plan's price."""


@dataclass(frozen=True)
class Way:
    """A plan of one configuration, with what its choice of recompute costs."""

    case: Case
    partition: Partition
    placement: Placement
    price: Price | Over

    @property
    def key(self) -> tuple[Setting, Partition, Placement]:
        """What tells plans apart."""
        return self.case.setting, self.partition, self.placement


def every_way(problem: Problem) -> Iterator[Way]:
    """Price every allowed partition of every configuration in every placement by all options, whatever it needs."""
    for case in cases(problem):
        alone, facts = case.plain, read_facts(case.plain)
        known: dict[object, list[Facts]] = {}
        for count in stage_counts(alone):
            rank_of = ranks_of_stages(facts.orders_for(count))
            for partition, placement in product(
                partitions(alone, count), places_of(alone).placements(facts.ranks_for(count))
            ):
                of_rank = kinds_of(alone, placement)
                kinds = tuple(of_rank[rank_of[stage]] for stage in partition)
                for options in choices_of_options(alone, partition):
                    if (kinds, options) not in known:
                        known[kinds, options] = [read_facts(one, kinds, options) for one in case.each]
                    yield Way(case, partition, placement, price_of(case, known[kinds, options], partition, placement))


def price_of(case: Case, facts: Sequence[Facts], partition: Partition, placement: Placement) -> Price | Over:
    """Price a plan of a configuration from its facts in every scenario."""
    prices = [price_partition(one, own, partition, placement) for one, own in zip(case.each, facts, strict=True)]
    return prices[0] if len(prices) == 1 else over(case.problem, prices, [own.tokens for own in facts])


def count_ways(problem: Problem, most: int) -> int:
    """Count the ways in all scenarios, up to a few more than ``most``."""
    total = 0
    for case in cases(problem):
        facts, places = read_facts(case.plain), places_of(case.plain)
        for count in stage_counts(case.plain):
            placements = len(places.placements(facts.ranks_for(count))) * len(case.each)
            for partition in partitions(case.plain, count) if placements else ():
                total += placements * sum(1 for _ in choices_of_options(case.plain, partition))
                if total > most:
                    return total
    return total


def choices_of_options(problem: Problem, partition: Partition) -> Iterator[tuple[str | None, ...] | None]:
    """Give every choice of an option for each layer, or for each stage; None where the problem leaves no choice."""
    recompute, layers = problem.constraints.recompute, problem.model.layers
    if recompute not in ("choose", "stage"):
        yield None
        return
    named = [sorted({each.recompute for each in layer.options if each.recompute}) for layer in layers]
    if recompute == "choose":
        yield from product(*([None, *names] for names in named))
        return
    every = sorted({name for names in named for name in names})
    for of_stage in product([None, *every], repeat=max(partition) + 1):
        yield tuple(of_stage[stage] for stage in partition)


def ranked(problem: Problem, ways: Iterable[Way]) -> list[Way]:
    """Give the plans that are allowed, each by its best option, the best first; of equal ones any first."""
    plans: dict[object, list[Way]] = {}
    facts = {case.setting: read_facts(case.plain) for case in cases(problem)}
    for way in ways:
        if keeps_constraints(problem, facts[way.case.setting], way.partition) and fits(problem, way):
            plans.setdefault(way.key, []).append(way)
    levels = levels_of(problem.objective)
    best = [in_order(options, [*levels, lambda price: price.peak_memory_bytes])[0] for options in plans.values()]
    return in_order(best, levels)


def fits(problem: Problem, way: Way) -> bool:
    """Tell whether a plan keeps within every device's memory and all limits."""
    most = problem.limits.peak_memory_bytes
    for rank, kind in zip(way.price.ranks, kinds_of(problem, way.placement), strict=True):
        memory = problem.cluster.devices[kind].memory_bytes
        if rank.total_bytes > (memory if most is None else min(memory, most)):
            return False
    return keeps_limits(problem, way.price)


def levels_of(objective: Objective) -> list[Level]:
    """Give what is minimized first, second and so on."""
    if isinstance(objective, dict):
        return [lambda price: float(sum(weight * getattr(price, field) for field, weight in objective.items()))]
    return [_level(name) for name in (objective if isinstance(objective, tuple) else (objective,))]


def _level(name: str) -> Level:
    """Give what is minimized for a metric."""
    sign = -1 if name == "tokens_per_second" else 1
    return lambda price: float(sign * getattr(price, METRICS[name]))


def in_order(ways: Sequence[Way], levels: Sequence[Level]) -> list[Way]:
    """Sort plans by the first level, those that are equal by the second, and so on."""
    if not levels:
        return list(ways)
    runs: list[list[Way]] = []
    value, *_ = levels
    for way in sorted(ways, key=lambda each: value(each.price)):
        if runs and value(way.price) - value(runs[-1][0].price) <= CLOSE * abs(value(way.price)):
            runs[-1].append(way)
        else:
            runs.append([way])
    return [way for run in runs for way in in_order(run, levels[1:])]
