"""Random demands on the plans of a random problem, drawn from what its plans are and need."""

from collections.abc import Sequence
from itertools import islice, pairwise
from random import Random
from typing import Any

from oracle.partitions import Partition, partitions, stage_counts
from oracle.search import every_plan
from partita.models.document import validate
from partita.models.problem import Problem

Json = dict[str, Any]


def draw_constraints(random: Random, problem: Json) -> None:
    """Demand something that holds for one of the partitions, or pin or part layers at random."""
    if random.random() < 0.7:
        return
    model = validate(Problem, problem)
    found = [partition for stages in stage_counts(model) for partition in islice(partitions(model, stages), 200)]
    demand(random, problem, found, model.most_stages())


def demand(random: Random, problem: Json, found: Sequence[Partition], most_stages: int) -> None:
    """Demand something that holds for one of the partitions found, or pin or part layers at random."""
    asked = problem.setdefault("constraints", {})
    names = [layer["name"] for layer in problem["model"]["layers"]]
    kinds = random.sample(["pins", "together", "apart", "cut_after"], random.randint(1, 2))
    if not found or random.random() < 0.15:
        if kinds[0] == "pins":
            asked["pins"] = {random.choice(names): random.randint(0, most_stages - 1)}
        elif len(names) > 1 and kinds[0] == "apart":
            asked["apart"] = [random.sample(names, 2)]
        else:
            asked["cut_after"] = random.sample(names, random.randint(0, len(names)))
        return
    _demand_like(random, problem, asked, kinds, names, random.choice(found))


def _demand_like(
    random: Random, problem: Json, asked: Json, kinds: list[str], names: list[str], partition: Partition
) -> None:
    """Demand what is true of a partition."""
    stage = dict(zip(names, partition, strict=True))
    if "pins" in kinds:
        asked["pins"] = {name: stage[name] for name in random.sample(names, random.randint(1, min(2, len(names))))}
    if "together" in kinds:
        chosen = random.choice(partition)
        mates = [name for name in names if stage[name] == chosen]
        if len(mates) > 1:
            asked["together"] = [random.sample(mates, 2)]
    if "apart" in kinds and max(partition) > 0:
        one = random.choice(names)
        asked["apart"] = [[one, random.choice([name for name in names if stage[name] != stage[one]])]]
    if "cut_after" in kinds:
        edges = problem["model"].get("tensors")
        if edges is None:
            cut = {name for name, after in pairwise(names) if stage[name] != stage[after]}
        else:
            cut = {
                edge["producer"]
                for edge in edges
                if edge.get("pass") != "backward"
                and any(stage[name] != stage[edge["producer"]] for name in edge["consumers"])
            }
        asked["cut_after"] = [name for name in names if name in cut or random.random() < 0.4]


def draw_memory(random: Random, problem: Json) -> None:
    """Give the devices less than the best plan needs but enough for another, or too little for any, or plenty."""
    model = validate(Problem, problem)
    plans = every_plan(model)
    kind = random.choice(["plenty"] * 5 + ["binding"] * 7 + ["limit"] * 2 + ["too little"])
    if not plans or kind == "plenty":
        return
    peaks = sorted({plan.price.peak_memory_bytes for plan in plans})
    binding = [peak for peak in peaks if peak < plans[0].price.peak_memory_bytes]
    memory = peaks[0] - 1 if kind == "too little" else random.choice(binding or peaks)
    memory = max(memory, problem["cluster"]["devices"]["gpu"].get("reserve_bytes", 0) + 1)
    if kind == "limit":
        problem["limits"] = {"peak_memory_bytes": memory}
    else:
        problem["cluster"]["devices"]["gpu"]["memory_bytes"] = memory


def draw_time_limits(random: Random, problem: Json) -> None:
    """Limit a time to between what two plans need, or to less than any."""
    if random.random() < 0.85:
        return
    model = validate(Problem, problem)
    metric = random.choice(["iteration_time_s", "bottleneck_time_s"])
    times = sorted({getattr(plan.price, metric) for plan in every_plan(model)})
    if not times:
        return
    if random.random() < 0.1:
        problem.setdefault("limits", {})[metric] = times[0] / 2
        return
    at = random.randint(0, len(times) // 2)
    following = times[at + 1] if at + 1 < len(times) else 2 * times[at]
    if following > times[at] * (1 + 1e-6):
        problem.setdefault("limits", {})[metric] = (times[at] + following) / 2
