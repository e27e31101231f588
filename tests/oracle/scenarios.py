"""Random problems with several scenarios, and the prices of all their plans: of each scenario apart, then of all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from oracle.facts import read_facts
from oracle.partitions import Partition, partitions, stage_counts
from oracle.placements import Placement
from oracle.pricing import Price, facts_of_plan, kinds_of, price_partition
from oracle.search import (
    CLOSE,
    Plan,
    every_plan,
    keeps_limits,
    memory_limit,
    objective_value,
    places_of,
)
from oracle.ways import choices_of_options
from partita.models.problem import Problem
from strategies import Json, read, seeded_problem

COSTS = ("forward_s", "backward_s", "activation_bytes", "workspace_bytes", "output_bytes")
PARTS = (("weight_gradient_s", "backward_s"), ("weight_gradient_bytes", "activation_bytes"))
NAMES = ("short", "long", "odd")
MOST_PLANS, MOST_CHOOSING = 100, 3
"""Plans before recompute is chosen, and layers that choose, so that all can be tried in every scenario."""


def problem_of_scenarios(seed: int) -> Json:
    """Give the random problem of a seed with two or three scenarios that some layers, tensors and storages mind."""
    random = Random(seed)
    for number in count():
        problem = seeded_problem(1000 * seed + number)
        if "scenarios" in problem:
            continue
        host = problem["training"].get("routing") == "host" or "bubble_fraction" in problem.get("limits", {})
        if host or not 1 < len(every_plan(read(problem))) <= MOST_PLANS:
            continue
        names = NAMES[: random.randint(2, 3)]
        weights = [random.choice([1, 1, 2, 5]) for _ in names]
        problem["scenarios"] = [{"name": n, "share": w / sum(weights)} for n, w in zip(names, weights, strict=True)]
        if random.random() < 0.4:
            problem["scenarios"][0]["sequence_length"] = random.choice([7, 300])
        problem["over_scenarios"] = random.choice(["expected", "expected", "worst"])
        if problem["over_scenarios"] == "worst":
            problem["objective"] = random.choice(["iteration_time", "iteration_time", "peak_memory"])
        _vary(random, problem, names)
        _give_ways(random, problem)
        _relax(random, problem)
        return problem
    raise AssertionError("the seeds never end")


def _give_ways(random: Random, problem: Json) -> None:
    """Give some problems a second kind of device, or recompute to choose."""
    for layer in problem["model"]["layers"]:
        for option in layer.get("options", []):
            if "scenario" not in option:
                option.pop("output_bytes", None)  # neither a kind of device nor recompute changes what a layer sends
    nodes = problem["cluster"]["nodes"]
    if len(nodes) > 1 and random.random() < 0.3:
        problem["cluster"]["devices"]["slow"] = problem["cluster"]["devices"]["gpu"] | {"speed": 0.4}
        nodes[-1]["device"] = "slow"
    layers = [layer for layer in problem["model"]["layers"] if layer.get("backward_s")]
    splits = any(schedule.splits for schedule in read(problem).training.schedules)
    if splits or not layers or random.random() < 0.7:
        return
    problem.setdefault("constraints", {})["recompute"] = random.choice(["choose", "stage"])
    for layer in random.sample(layers, min(MOST_CHOOSING, len(layers))):
        own = {"backward_s": 1.4 * layer["backward_s"], "activation_bytes": layer["activation_bytes"] // 4}
        own |= {part: own[whole] for part, whole in PARTS if part in layer}
        kept = [each for each in layer.get("options", []) if "recompute" not in each]
        layer["options"] = [*kept, {"recompute": "full"} | own]


def _vary(random: Random, problem: Json, names: Sequence[str]) -> None:
    """Give some layers, tensors and storages other costs in some scenarios."""
    model, far = problem["model"], random.choice([1.5, 4])
    for layer in model["layers"]:
        layer["options"] = [each for each in layer.get("options", []) if "scenario" not in each]
        for name in names:
            own = {
                cost: layer[cost] * random.choice([0, 1 / far, far])
                if cost.endswith("_s")
                else layer[cost] * random.randint(0, 3)
                for cost in COSTS
                if cost in layer and random.random() < 0.4
            }
            for part, whole in PARTS:
                if whole in own and part in layer:
                    own[part] = own[whole] * random.choice([0, 1])
            if own:
                layer["options"].append({"scenario": name} | own)
        if not layer["options"]:
            del layer["options"]
    for sized in (*(model.get("tensors") or ()), *model.get("shared_activations", ())):
        sized["options"] = [
            {"scenario": name, "bytes": sized["bytes"] * random.randint(0, 4) // 2}
            for name in names
            if random.random() < 0.4
        ]
        if "gradient_bytes" in sized:
            for option in sized["options"]:
                if random.random() < 0.5:
                    option["gradient_bytes"] = sized["gradient_bytes"] // 2


def _relax(random: Random, problem: Json) -> None:
    """Draw memory and limits anew from what the plans need in all scenarios."""
    kept = problem.pop("limits", {})
    devices = problem["cluster"]["devices"]
    for device in devices.values():
        device["memory_bytes"] = 2**50
    plans = all_plans(read(problem))
    if not plans:
        return
    peaks = sorted({plan.price.peak_memory_bytes for plan in plans})
    for device in devices.values():
        if random.random() < 0.6:
            device["memory_bytes"] = max(1, random.choice(peaks), device.get("reserve_bytes", 0))
    values = sorted(plan.price.iteration_time_s for plan in plans)
    if kept and random.random() < 0.5:
        problem["limits"] = {"iteration_time_s": random.choice(values) * 1.000001 + 1e-12}


def alone(problem: Problem, name: str) -> Problem:
    """Give the problem of one scenario, everything that is meant for others left out."""
    plain = problem.model_dump(mode="json", by_alias=True)
    (scenario,) = [each for each in plain["scenarios"] if each["name"] == name]
    plain["scenarios"] = [{"name": name, "share": 1.0}]
    if scenario["sequence_length"] is not None:
        plain["training"]["sequence_length"] = scenario["sequence_length"]
    for sized in (*(plain["model"]["tensors"] or ()), *plain["model"]["shared_activations"]):
        for option in sized.pop("options"):
            if option.pop("scenario") == name:
                sized |= option
    for layer in plain["model"]["layers"]:
        layer["options"] = [each for each in layer["options"] if each["scenario"] in (None, name)]
    return read(plain)


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
    prices: list[Price]


def over(problem: Problem, prices: list[Price], tokens: Sequence[int]) -> Over:
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


def price_over(
    problem: Problem,
    each: Sequence[Problem],
    partition: Partition,
    placement: Placement,
    options: Sequence[str | None] | None = None,
) -> Over:
    """Price a plan over all scenarios; ``each`` is the problem of every scenario alone."""
    facts = [facts_of_plan(one, partition, placement, options) for one in each]
    prices = [price_partition(one, own, partition, placement) for one, own in zip(each, facts, strict=True)]
    return over(problem, prices, [own.tokens for own in facts])


def all_plans(problem: Problem) -> list[Plan]:
    """Give every plan that keeps memory in all scenarios, and the limits, best first."""
    each = [alone(problem, scenario.name) for scenario in problem.scenarios]
    sign = -1 if problem.objective == "tokens_per_second" else 1
    return sorted(_plans(problem, each, sign), key=lambda plan: sign * plan.value)


def _plans(problem: Problem, each: Sequence[Problem], sign: int) -> Iterator[Plan]:
    facts, places = read_facts(each[0]), places_of(each[0])
    for stages in stage_counts(each[0]):
        for placement in places.placements(facts.ranks_for(stages)):
            limits = [memory_limit(each[0], facts, kind) for kind in kinds_of(each[0], placement)]
            for partition in partitions(each[0], stages):
                found = []
                for options in choices_of_options(each[0], partition):
                    cost = price_over(problem, each, partition, placement, options)
                    fits = all(
                        rank.total_bytes <= most
                        for price in cost.prices
                        for rank, most in zip(price.ranks, limits, strict=True)
                    )
                    if fits and keeps_limits(problem, cost):
                        found.append(Plan(objective_value(problem, cost), partition, placement, cost))
                if found:
                    best = min(sign * plan.value for plan in found)
                    equal = [plan for plan in found if sign * plan.value - best <= CLOSE * abs(best)]
                    yield min(equal, key=lambda plan: plan.price.peak_memory_bytes)
