"""What a plan costs over several scenarios: priced in each of them apart, then put together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oracle.memory import RankMemory
from oracle.pricing import Price
from partita.models.problem import Problem
from partita.models.scenario import Scenario


def apart(problem: Problem) -> tuple[Problem, ...]:
    """Give the problem of every scenario alone; without any, the problem itself."""
    if not problem.scenarios:
        return (problem,)
    return tuple(_alone(problem, scenario) for scenario in problem.scenarios)


def _alone(problem: Problem, scenario: Scenario) -> Problem:
    """Give the problem of one scenario, everything that is meant for others left out."""
    model = problem.model
    layers = [
        layer.model_copy(update={"options": tuple(o for o in layer.options if o.scenario in (None, scenario.name))})
        for layer in model.layers
    ]
    changed: dict[str, Any] = {"layers": tuple(layers)}
    for field in ("tensors", "shared_activations"):
        things = getattr(model, field)
        changed[field] = things and tuple(_sized(thing, scenario.name) for thing in things)
    length = scenario.sequence_length or problem.training.sequence_length
    return problem.model_copy(
        update={
            "model": model.model_copy(update=changed),
            "training": problem.training.model_copy(update={"sequence_length": length}),
            "scenarios": (Scenario(name=scenario.name, share=1.0),),
        }
    )


def _sized(thing: Any, scenario: str) -> Any:
    """Give a tensor or a shared activation with the bytes of a scenario; a gradient not given is as large as that."""
    own: dict[str, Any] = {"options": ()}
    for option in thing.options:
        if option.scenario == scenario:
            own["bytes"] = option.bytes
            if hasattr(option, "gradient_bytes"):
                own["gradient_bytes"] = option.gradient_bytes
    return thing.model_copy(update=own)


@dataclass(frozen=True)
class Over:
    """A plan's figures over all scenarios, named as in an answer, and its price in each."""

    iteration_time_s: float
    tokens_per_second: float | None
    peak_memory_bytes: int
    bottleneck_time_s: float
    bubble_fraction: float | None
    inter_node_bytes: int
    num_devices: int
    prices: Sequence[Price]

    @property
    def ranks(self) -> list[RankMemory]:
        """The memory of every rank in the scenario that needs most there."""
        of_rank = zip(*(price.ranks for price in self.prices), strict=True)
        return [max(ranks, key=lambda rank: rank.total_bytes) for ranks in of_rank]


def over(problem: Problem, prices: Sequence[Price], tokens: Sequence[int]) -> Over:
    """Add up what a plan costs in every scenario: the mean of times, or the longest; the largest of sizes."""
    shares = [scenario.share for scenario in problem.scenarios]
    sizes = {
        "peak_memory_bytes": max(price.peak_memory_bytes for price in prices),
        "inter_node_bytes": max(price.inter_node_bytes for price in prices),
        "num_devices": prices[0].num_devices,
    }
    if problem.over_scenarios == "worst":
        longest = max(prices, key=lambda price: price.timing.run.makespan_s)
        times = ("iteration_time_s", "tokens_per_second", "bottleneck_time_s", "bubble_fraction")
        return Over(**{name: getattr(longest, name) for name in times}, **sizes, prices=prices)

    def mean(values: Sequence[float]) -> float:
        return sum(share * value for share, value in zip(shares, values, strict=True))

    iteration = mean([price.iteration_time_s for price in prices])
    busy, ranks = mean([price.timing.busy_s for price in prices]), len(prices[0].ranks)
    span = ranks * mean([price.timing.run.makespan_s for price in prices])
    slowest = max(mean(loads) for loads in zip(*(price.timing.loads_s for price in prices), strict=True))
    if problem.training.communication == "overlapped":
        for transfers in (
            [p.timing.forward_transfer_s for p in prices],
            [p.timing.backward_transfer_s for p in prices],
        ):
            for pair in set().union(*transfers):
                slowest = max(slowest, mean([each.get(pair, 0.0) for each in transfers]))
    return Over(
        iteration_time_s=iteration,
        tokens_per_second=mean(tokens) / iteration if iteration else None,
        bottleneck_time_s=slowest,
        bubble_fraction=1 - busy / span if span else None,
        **sizes,
        prices=prices,
    )
