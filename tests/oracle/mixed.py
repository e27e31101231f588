"""Random small problems that mix everything that decides a plan.

Kinds of device, options of layers, recompute, lists of schedules, degrees and batches, spread replicas, a divided
optimizer, routing, tied weights, buffers, shared activations, skips, constraints, limits and objectives come together
in one problem. Memory and limits are drawn from what its plans need.
"""

from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from itertools import pairwise
from random import Random

from oracle.pricing import kinds_of
from oracle.random_limits import demand
from oracle.random_schedules import EVERY_KIND
from oracle.search import METRICS
from oracle.ways import Way, count_ways, every_way, ranked
from partita.models.errors import InvalidInput
from partita.models.objective import metrics_of
from partita.models.problem import Problem
from strategies import PLENTY, Json, Maker, read

LEAST_WAYS, MOST_WAYS = 12, 1500
"""How many ways to run a problem there are: plans of all configurations by all choices of recompute."""
MOST_CHOOSING = 3
"""Most layers with options of recompute where each can choose."""
WHOLE = ("1f1b", "1f1b", "gpipe", "interleaved_1f1b", "looped_bfs", "forward_only")
"""Schedules that leave the backward pass whole, as a choice of recompute asks for."""
CHOSEN = ("choose", "stage")
FIELDS = ("iteration_time_s", "peak_memory_bytes", "bottleneck_time_s", "num_devices", "inter_node_bytes")
LIMITED = (*FIELDS, "tokens_per_second", "microbatches_per_second", "bubble_fraction")
RATES = {"tokens_per_second", "bottleneck_time"}
COUNTED = ("peak_memory_bytes", "num_devices", "inter_node_bytes")


@cache
def mixed_problem(seed: int) -> Problem:
    """Give the random problem of a seed, with time enough to prove everything."""
    random = Random(seed)
    while True:
        try:
            drawn = _draw(random)
            if drawn is not None:
                _ask(random, drawn)
                return read(drawn)
        except InvalidInput:  # what was drawn does not go together
            continue


def _draw(random: Random) -> Json | None:
    """Draw a problem that demands nothing; None where it has few plans, or too many to try them all."""
    recompute = random.choice(["none", "none", "full", "choose", "choose", "stage"])
    maker = MixedMaker(random, WHOLE if recompute in CHOSEN else EVERY_KIND)
    drawn = maker.problem()
    drawn["objective"] = "tokens_per_second"  # by which all batches can be compared
    maker.mix_kinds(drawn)
    maker.mix_degrees(drawn["training"])
    maker.mix_schedules(drawn["training"])
    maker.mix_options(drawn, recompute)
    maker.mix_equals(drawn["model"])
    return drawn if LEAST_WAYS <= count_ways(read(drawn), MOST_WAYS) <= MOST_WAYS else None


class MixedMaker(Maker):
    """Draws few layers, so that everything else can be many; links are often from two values, so that ways tie."""

    sizes = (2, 3, 4, 4, 5, 5, 6)

    def __init__(self, random: Random, schedules: Sequence[str]) -> None:
        super().__init__(random, schedules)
        self.degrees = random.choice([(1, 1), (1, 1), (2, 1), (1, 2), (1, 2), (2, 2), (1, 4)])
        self.values = [super(MixedMaker, self).link() for _ in range(2)] if self.maybe(0.4) else []

    def link(self) -> Json:
        return dict(self.random.choice(self.values)) if self.values else super().link()

    def layer(self, trains: bool, chain: bool) -> Json:
        layer = super().layer(trains, chain)
        layer.pop("options", None)
        return layer

    def cluster(self) -> Json:
        """Draw a cluster; where there are replicas, often of small equal nodes, over which they are spread."""
        cluster = super().cluster()
        tensor, data = self.degrees
        if data > 1 and self.routing != "host" and self.maybe(0.5):
            equal = self.node("node", tensor * self.random.randint(1, 2)) | {"replicas": self.random.randint(2, 5)}
            cluster["nodes"] = [equal] if self.maybe(0.7) else [equal, self.node("large", 2 * tensor)]
            cluster.pop("links", None)
        return cluster

    def mix_kinds(self, problem: Json) -> None:
        """Make some nodes slower or faster."""
        if self.maybe(0.5):
            return
        slow: Json = {"speed": self.random.choice([0.3, 0.5, 1.0, 2.0]), "memory_bytes": PLENTY}
        if self.maybe(0.3):
            slow["reserve_bytes"] = self.size()
        problem["cluster"]["devices"]["slow"] = slow
        nodes = problem["cluster"]["nodes"]
        if len(nodes) == 1 and self.routing != "host":
            nodes.append(nodes[0] | {"name": "other", "count": max(1, nodes[0]["count"] - 1), "replicas": 1})
        for node in nodes[1:] if self.maybe(0.9) else nodes[:1]:
            node["device"] = "slow"

    def mix_degrees(self, training: Json) -> None:
        """List degrees and batches, and let replicas be spread over nodes."""
        tensor, data = self.degrees
        if tensor > 1:
            training["tensor_parallel"] = self.random.choice([tensor, [1, tensor], [tensor, 1]])
        if data > 1:
            training["data_parallel"] = self.random.choice([data, [1, data], sorted({1, 2, data}), [data, 1]])
            training["replicas_per_node"] = self.random.choice([None, None, None, 1, [1, 2]])
            training["shard_optimizer"] = self.maybe(0.5)
            training["gradient_overlap"] = self.random.choice([0.0, 0.0, 0.3, 1.0])
        size, count = training["microbatch_size"], training["num_microbatches"]
        if self.maybe(0.3):
            training["microbatch_size"] = self.random.choice([[size, 2 * size], [2 * size, size]])
        if kind_of(training["schedule"]) == "custom":
            return
        if self.maybe(0.5):
            largest = [max(listed(training[field])) for field in ("microbatch_size", "data_parallel")]
            training["global_batch_size"] = (count + 1) // 2 * largest[0] * largest[1]
            training["num_microbatches"] = None
        elif self.maybe(0.3):
            training["num_microbatches"] = [count, count + self.random.randint(1, 3)]

    def mix_schedules(self, training: Json) -> None:
        """List another schedule to compare with, or leave the number of stages open."""
        given = training["schedule"]
        if kind_of(given) == "custom":
            return
        others = [
            kind
            for kind in self.schedules
            if kind not in ("custom", kind_of(given)) and (kind == "forward_only") == (kind_of(given) == "forward_only")
        ]
        if others and self.maybe(0.3):
            training["schedule"] = [given, self.random.choice(others)]
        if self.maybe(0.4):
            training["num_stages"] = None

    def mix_options(self, problem: Json, recompute: str) -> None:
        """Let layers be run otherwise on a kind of device, at a degree or a size; and name or choose a recompute."""
        training = problem["training"]
        selectors: list[Json] = [{"device": kind} for kind in problem["cluster"]["devices"]]
        selectors += [{"tensor_parallel": each} for each in listed(training["tensor_parallel"]) if each > 1]
        selectors += [{"microbatch_size": each} for each in listed(training["microbatch_size"])]
        selectors += self.mix_scenarios(problem)
        for layer in problem["model"]["layers"]:
            if self.maybe(0.35):
                chosen = self.random.sample(selectors, min(len(selectors), self.random.randint(1, 2)))
                merged = {name: value for selector in chosen for name, value in selector.items()}
                for selector in (merged,) if self.maybe(0.5) else chosen:
                    self.add_option(layer, selector)
        layers = [layer for layer in problem["model"]["layers"] if "backward_s" in layer]
        if recompute == "none" or not layers:
            return
        problem["constraints"] = {"recompute": recompute}
        for layer in self.random.sample(layers, min(len(layers), self.random.randint(1, MOST_CHOOSING))):
            names = ["full"] if recompute == "full" else self.random.choice([["full"], ["full", "selective"]])
            for name in names:
                self.add_option(layer, {"recompute": name})
            if self.maybe(0.3):
                self.add_option(layer, self.random.choice(selectors) | {"recompute": "full"})

    def mix_scenarios(self, problem: Json) -> list[Json]:
        """Let batches be of one kind, or of two or three; give what options can be for."""
        if self.maybe(0.7) or self.routing == "host":
            return []
        weights = [self.random.choice([1, 1, 2, 5]) for _ in range(self.random.choice([1, 2, 2, 3]))]
        names = ["long", "short", "odd"][: len(weights)]
        problem["scenarios"] = [
            {"name": name, "share": weight / sum(weights)} for name, weight in zip(names, weights, strict=True)
        ]
        if self.maybe(0.4):
            problem["scenarios"][0]["sequence_length"] = self.random.choice([7, 300])
        problem["over_scenarios"] = self.random.choice(["expected", "expected", "worst"])
        model = problem["model"]
        for thing in (*model.get("tensors", ()), *model.get("shared_activations", ())):
            thing["options"] = [{"scenario": name, "bytes": self.size()} for name in names if self.maybe(0.4)]
            for option in thing["options"] if "gradient_bytes" in thing else ():
                if self.maybe(0.5):
                    option["gradient_bytes"] = self.size()
        for layer in model["layers"]:
            for name in names:
                if self.maybe(0.4):
                    self.add_option(layer, {"scenario": name})
        return [{"scenario": name} for name in names]

    def mix_equals(self, model: Json) -> None:
        """Make neighboring layers equal: in a row, or side by side in a graph."""
        layers, number = model["layers"], self.random.choice([2, 2, 3])
        if len(layers) <= number or self.maybe(0.5):
            return
        at = self.random.randrange(len(layers) - number + 1)
        first, *others = [layer["name"] for layer in layers[at : at + number]]
        for offset, name in enumerate(others, start=1):
            layers[at + offset] = deepcopy(layers[at]) | {"name": name}
        if "tensors" not in model or self.maybe(0.2):
            return
        for field in ("weights", "buffers", "shared_activations"):
            for thing in model.get(field, []):
                thing["layers"] = with_twins(thing["layers"], first, others) or [first, *others]
        tensors = []
        for tensor in model["tensors"]:
            producer, readers = tensor["producer"], with_twins(tensor["consumers"], first, others)
            if producer == first:
                readers = [name for name in readers if name not in (first, *others)]
            if producer in others or not readers:
                continue
            tensors.append(tensor | {"consumers": readers})
            if producer == first:
                tensors += [
                    tensor | {"name": f"{tensor['name']}.{name}", "producer": name, "consumers": readers}
                    for name in others
                ]
        model["tensors"] = tensors

    def add_option(self, layer: Json, selector: Json) -> None:
        """Add an option to a layer, unless it has one for the same case: what is kept and times change, or one does."""
        options = layer.setdefault("options", [])
        if any(selector == {name: option[name] for name in SELECTORS if name in option} for option in options):
            return
        option = dict(selector)
        again = "recompute" in selector
        if "backward_s" in layer:
            option["backward_s"] = layer["backward_s"] * self.random.choice([0.7, 1.9])
            if again:
                option["backward_s"] = layer["backward_s"] + layer["forward_s"] * self.random.choice([0.3, 1.0])
            if "weight_gradient_s" in layer:
                option["weight_gradient_s"] = option["backward_s"] * self.random.choice([0, 0.5, 1])
            option["activation_bytes"] = layer["activation_bytes"] * self.random.randint(0, 3 if again else 5) // 4
            if "weight_gradient_bytes" in layer:
                option["weight_gradient_bytes"] = option["activation_bytes"] * self.random.randint(0, 4) // 4
        if "backward_s" not in layer or self.maybe(0.2 if again else 0.6):
            option["forward_s"] = layer["forward_s"] * self.random.choice([0.6, 0.9, 1.2, 2.5])
        if "output_bytes" in layer and not selector.keys() & {"device", "recompute"} and self.maybe(0.3):
            option["output_bytes"] = self.size()
        options.append(option)


SELECTORS = ("device", "recompute", "tensor_parallel", "scenario", "microbatch_size")


def listed(choice: int | list[int]) -> list[int]:
    """Give what there is to choose from."""
    return choice if isinstance(choice, list) else [choice]


def with_twins(names: list[str], first: str, others: Sequence[str]) -> list[str]:
    """Give some layers with all twins where the first one is among them, and else without."""
    left = [name for name in names if name not in others]
    return [*left, *others] if first in left else left


def kind_of(schedule: str | Json) -> str:
    """Give the kind of a schedule."""
    return str(schedule["kind"]) if isinstance(schedule, dict) else schedule


def _ask(random: Random, drawn: Json) -> None:
    """Draw the objective, memory, constraints and limits from all ways to run a problem."""
    batches = {replicas * count * size for replicas, count, size in read(drawn).training.batches()}
    if len(batches) > 1:
        drawn["over_scenarios"] = "expected"  # of the worst scenario there is no rate to compare batches by
    problem = read(drawn)
    ways = list(every_way(problem))
    if len(batches) == 1:
        drawn["objective"] = _objective(random, ways)
    if worst_only(problem) and metrics_of(read(drawn).objective) & RATES:
        drawn["objective"] = random.choice(["iteration_time", "peak_memory"])
    drawn["search"] = {
        "candidates": random.randint(1, 6),
        "time_limit_s": 120.0,
        "workers": 1,
        "solver": "highs" if not isinstance(drawn["objective"], list) and random.random() < 0.25 else "cp-sat",
    }
    _memory(random, drawn, ways)
    if random.random() < 0.3:
        found = [each.partition for each in ranked(read(drawn), ways)[:50]]
        demand(random, drawn, found, max(max(way.partition) + 1 for way in ways))
    for _ in range(random.choice([0, 0, 0, 1, 1, 2])):
        _limit(random, drawn, ways)


def _objective(random: Random, ways: Sequence[Way]) -> str | list[str] | dict[str, float]:
    """Draw a metric, weights by which several metrics count about equally, or a list of metrics."""
    form = random.choice(["metric"] * 5 + ["weights"] * 2 + ["list"] * 2)
    if form == "metric":
        return random.choice(["iteration_time", *METRICS])
    if form == "weights":
        chosen = random.sample(FIELDS, random.randint(1, 4))
        largest = {field: max(getattr(way.price, field) for way in ways) for field in chosen}
        return {field: random.randint(1, 5000) / 1000 / (largest[field] or 10**12) for field in chosen}
    names = random.sample([name for name in METRICS if name != "tokens_per_second"], random.randint(1, 4))
    if "iteration_time" in names and random.random() < 0.5:
        names[names.index("iteration_time")] = "tokens_per_second"
    return names


def _memory(random: Random, drawn: Json, ways: Sequence[Way]) -> None:
    """Give each kind of device less than the best plan needs but enough for another, or too little, or plenty."""
    how = random.choice(["plenty"] * 5 + ["binding"] * 7 + ["limit"] * 2 + ["too little"])
    if how == "plenty":
        return
    problem = read(drawn)
    peaks = sorted({way.price.peak_memory_bytes for way in ways})
    if how == "limit":
        drawn["limits"] = {"peak_memory_bytes": max(1, random.choice(peaks))}
        return
    best = ranked(problem, ways)[0].price.peak_memory_bytes
    smaller = [way for way in ways if way.price.peak_memory_bytes < best]
    fitting = random.choice(smaller or ways)
    for kind, device in drawn["cluster"]["devices"].items():
        needed = max(_on(problem, fitting, kind), default=random.choice(peaks))
        memory = peaks[0] - 1 if how == "too little" else needed
        device["memory_bytes"] = max(memory, device.get("reserve_bytes", 0) + 1)


def _on(problem: Problem, way: Way, kind: str) -> list[int]:
    """Give the bytes of the ranks on a kind of device."""
    of_rank = zip(way.price.ranks, kinds_of(problem, way.placement), strict=True)
    return [rank.total_bytes for rank, here in of_rank if here == kind]


def _limit(random: Random, drawn: Json, ways: Sequence[Way]) -> None:
    """Limit a metric between the values of two plans, far from either, or rarely to what no plan has."""
    problem, field = read(drawn), random.choice(LIMITED)
    if field == "bubble_fraction" and busy_differs(problem):
        return
    if worst_only(problem) and field in ("tokens_per_second", "microbatches_per_second", "bottleneck_time_s"):
        return
    values = sorted({_value(plan, field) for plan in ranked(problem, ways)})
    pairs = [(low, high) for low, high in pairwise(values) if high > low * (1 + 1e-5) and low > 0]
    if not pairs:
        return
    low, high = random.choice(pairs)
    limit = int(low) if field in COUNTED else (low + high) / 2
    if field == "iteration_time_s" and random.random() < 0.1:
        limit = values[0] / 2
    drawn.setdefault("limits", {})[field] = limit


def _value(plan: Way, field: str) -> float:
    """Give a metric of a plan; of one that takes no time, the rates are 0."""
    if field == "microbatches_per_second":
        return 1 / plan.price.bottleneck_time_s if plan.price.bottleneck_time_s else 0.0
    return float(getattr(plan.price, field) or 0.0)


def busy_differs(problem: Problem) -> bool:
    """Tell whether plans keep the devices busy for different times, so that the bubble cannot be limited."""
    several = len({node.device for node in problem.cluster.nodes}) > 1
    chosen = problem.constraints.recompute in CHOSEN
    return several or chosen or problem.training.communication == "blocking" or len(problem.scenarios) > 1


def worst_only(problem: Problem) -> bool:
    """Tell whether the longest of several scenarios counts, of which rates and bottlenecks cannot be asked for."""
    return len(problem.scenarios) > 1 and problem.over_scenarios == "worst"
