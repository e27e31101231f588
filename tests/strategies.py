"""Random small problems: from a seed, and as a hypothesis strategy.

Every problem is small enough to try all its plans. Its memory and time limits are drawn from what its plans need, so
that they often bind and sometimes leave no plan.
"""

from collections.abc import Callable
from itertools import islice, pairwise
from random import Random
from typing import Any

from hypothesis import strategies as st

from oracle.partitions import Partition, partitions, stage_counts
from oracle.search import every_plan, places_of
from partita.models.document import validate
from partita.models.problem import Problem

Json = dict[str, Any]

MOST_PLANS = 2000
"""Most plans of a random problem."""
PLENTY = 2**50
"""Bytes of memory that never bind."""


def seeded_problem(seed: int) -> Json:
    """Give the random problem of a seed, as JSON values."""
    return build_problem(Random(seed))


def problems() -> st.SearchStrategy[Json]:
    """Give random problems to hypothesis, as JSON values."""
    return st.randoms(use_true_random=False).map(build_problem)


def read(problem: Json) -> Problem:
    """Make the model of a problem given as JSON values."""
    return validate(Problem, problem)


def build_problem(
    random: Random,
    maker: type["Maker"] | None = None,
    further: Callable[[Random, Json], None] | None = None,
) -> Json:
    """Draw problems until one is small enough, then draw its constraints, the further ones too, and its limits."""
    while True:
        problem = (maker or Maker)(random).problem()
        if count_plans(read(problem)) <= MOST_PLANS:
            break
    _draw_constraints(random, problem)
    if further is not None:
        further(random, problem)
    _draw_memory(random, problem)
    _draw_time_limits(random, problem)
    return problem


def count_plans(problem: Problem) -> int:
    """Count the plans without memory and time limits, up to a little more than the most allowed."""
    places = places_of(problem)
    total = 0
    for stages in stage_counts(problem):
        placements = len(places.placements(stages))
        total += placements * len(list(islice(partitions(problem, stages), MOST_PLANS // max(placements, 1) + 1)))
        if total > MOST_PLANS:
            break
    return total


class Maker:
    """Draws the parts of one problem; scales of time and size are drawn once, so that the figures match."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.second = random.choice([1.0, 1e-3, 1e-6])
        self.byte = random.choice([10**5, 2**20, 10**9])
        self.coarse = random.random() < 0.3  # equal figures, so that plans tie
        self.routing = random.choice(["relay", "relay", "direct", "host"])
        self.degrees = random.choice([(1, 1)] * 8 + [(2, 1), (1, 2)])
        self.names: list[str] = []

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def time(self, zero: float = 0.05) -> float:
        if self.maybe(zero):
            return 0.0
        steps = self.random.randint(1, 4) if self.coarse else self.random.randint(1, 5000) / 1000
        return steps * self.second

    def size(self, zero: float = 0.2) -> int:
        if self.maybe(zero):
            return 0
        if self.coarse:
            return self.random.randint(1, 3) * self.byte
        return self.random.randint(1, 4 * self.byte + 20)

    def link(self) -> Json:
        slowness = self.random.choice([0.01, 0.1, 0.3, 1.0]) * self.random.randint(1, 9)
        bandwidth = min(1e17, 3 * self.byte / (self.second * slowness))
        latency = self.random.choice([0.0, 0.0, 0.01, 0.2]) * self.second
        return {"bandwidth_bytes_per_s": bandwidth, "latency_s": latency}

    def some(self, least: int, most: int) -> list[str]:
        """Draw different layers, in the order of the model."""
        count = min(len(self.names), self.random.randint(least, most))
        return [self.names[index] for index in sorted(self.random.sample(range(len(self.names)), count))]

    def problem(self) -> Json:
        num_layers = self.random.choice([1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9, 9, 9])
        self.names = [f"layer{index}" for index in range(num_layers)]
        training = self.training()
        trains = training["schedule"] != "forward_only"
        cluster = self.cluster()
        problem: Json = {"model": self.model(trains), "cluster": cluster, "training": training}
        problem["objective"] = self.random.choice(
            ["iteration_time", "iteration_time", "tokens_per_second", "bottleneck_time", "peak_memory"]
        )
        if any("recompute" in option for layer in problem["model"]["layers"] for option in layer.get("options", [])):
            problem["constraints"] = {"recompute": self.random.choice(["full", "none"])}
        if any("scenario" in option for layer in problem["model"]["layers"] for option in layer.get("options", [])):
            problem["scenarios"] = [{"name": "long", "share": 1.0}]
        degree = self.degrees[0] * self.degrees[1]
        most = min(num_layers, sum(node.get("replicas", 1) * node["count"] for node in cluster["nodes"]) // degree, 4)
        training["num_stages"] = self.random.choice(
            [None, None, most, self.random.randint(max(1, most - 1), most), self.several(most)]
        )
        return problem

    def several(self, most: int) -> list[int]:
        return sorted(self.random.sample(range(1, most + 1), self.random.randint(min(2, most), most)))

    def training(self) -> Json:
        training: Json = {
            "schedule": self.random.choice(["1f1b", "1f1b", "gpipe", "forward_only"]),
            "num_microbatches": self.random.randint(1, 8),
            "microbatch_size": self.random.choice([1, 4]),
            "sequence_length": self.random.choice([1, 128]),
            "communication": self.random.choice(["overlapped", "blocking"]),
            "routing": self.routing,
            "tensor_parallel": self.degrees[0],
            "data_parallel": self.degrees[1],
        }
        if self.maybe(0.6):
            training["optimizer"] = self.random.choice(
                [
                    "none",
                    "sgd",
                    "adam",
                    "adam_mixed",
                    {
                        "gradient_bytes_per_weight_byte": self.random.choice([0.0, 0.3, 2.0]),
                        "state_bytes_per_weight_byte": self.random.choice([0.0, 1.7]),
                        "step_s": self.time(),
                    },
                ]
            )
        return training

    def model(self, trains: bool) -> Json:
        chain = self.maybe(0.45)
        layers = [self.layer(trains, chain) for _ in self.names]
        for name, layer in zip(self.names, layers, strict=True):
            layer["name"] = name
        if not any(layer["forward_s"] for layer in layers):
            layers[0]["forward_s"] = self.second
        model: Json = {"layers": layers}
        if not chain:
            model["tensors"] = self.tensors()
        if self.maybe(0.35):
            model["weights"] = [
                {"name": f"weight{index}", "bytes": self.size(), "layers": self.some(1, 3)} for index in range(2)
            ]
        if self.maybe(0.25):
            model["buffers"] = [
                {
                    "name": f"buffer{index}",
                    "bytes": self.size(),
                    "layers": self.some(1, 2),
                    "mutated": self.maybe(0.4),
                }
                for index in range(self.random.randint(1, 2))
            ]
        if self.maybe(0.3):
            model["shared_activations"] = [{"bytes": self.size(), "layers": self.some(1, 3)} for _ in range(2)]
        return model

    def layer(self, trains: bool, chain: bool) -> Json:
        layer: Json = {"forward_s": self.time(), "weight_bytes": self.size()}
        if trains or self.maybe(0.2):
            layer |= {"backward_s": self.time(), "activation_bytes": self.size()}
        if self.maybe(0.3):
            layer["workspace_bytes"] = self.size()
        if chain:
            layer["output_bytes"] = self.size()
        if self.maybe(0.1):
            layer["options"] = [self.option(chain) for _ in range(self.random.randint(1, 2))]
            if len(layer["options"]) == 2 and self.selectors(layer, 0) == self.selectors(layer, 1):
                layer["options"].pop()
        return layer

    @staticmethod
    def selectors(layer: Json, index: int) -> Json:
        names = ("device", "recompute", "tensor_parallel", "scenario")
        return {name: value for name, value in layer["options"][index].items() if name in names}

    def option(self, chain: bool) -> Json:
        chosen = {"device": "gpu", "recompute": "full", "tensor_parallel": 2, "scenario": "long"}
        names = self.random.sample(sorted(chosen), self.random.randint(1, 2))
        option: Json = {name: chosen[name] for name in names}
        option |= {"forward_s": self.time(zero=0.0), "activation_bytes": self.size()}
        if self.maybe(0.5):
            option["backward_s"] = self.time()
        if chain and self.maybe(0.3):
            option["output_bytes"] = self.size()
        return option

    def tensors(self) -> list[Json]:
        """Draw edges: most layers feed the next one, some a later one, some several, a few none."""
        tensors: list[Json] = []
        for index in range(len(self.names) - 1):
            later = self.names[index + 2 :]
            readers = [self.names[index + 1]] if self.maybe(0.75) else []
            readers += [name for name in later if self.maybe(0.6 / len(later))]
            if not readers:
                continue
            tensor: Json = {"name": f"t{index}", "producer": self.names[index], "bytes": self.size(0.1)}
            tensor["consumers"] = readers
            if self.maybe(0.3):
                tensor["gradient_bytes"] = self.size(0.3)
            tensors.append(tensor)
            if self.maybe(0.1):  # a second tensor of the same producer
                tensors.append(tensor | {"name": f"u{index}", "bytes": self.size(), "consumers": readers[-1:]})
        for index in range(2 if self.maybe(0.25) and len(self.names) > 1 else 0):
            producer, *readers = self.random.sample(self.names, min(len(self.names), self.random.randint(2, 3)))
            tensor = {"name": f"g{index}", "producer": producer, "consumers": readers, "pass": "backward"}
            tensors.append(tensor | {"bytes": self.size(0.1)})
        return tensors

    def cluster(self) -> Json:
        degree = self.degrees[0] * self.degrees[1]
        device: Json = {"memory_bytes": PLENTY, "speed": self.random.choice([1.0, 1.0, 0.5, 3.0])}
        if self.maybe(0.3):
            device["reserve_bytes"] = self.size()
        shapes = ["one"] if self.routing == "host" else ["one", "uneven", "uneven", "replicas", "three"]
        if degree == 1:
            shapes += ["linked devices"]
        shape = self.random.choice(shapes)
        links: list[Json] = []
        if shape == "one" or (shape == "linked devices" and (self.routing == "host" or self.maybe(0.5))):
            nodes = [
                self.node(
                    "node0", self.random.choice([1, 2, 3, 3, 4, 4, 4]) * degree + self.random.randint(0, degree - 1)
                )
            ]
        elif shape == "replicas":
            nodes = [self.node("node", degree * self.random.randint(1, 2)) | {"replicas": self.random.randint(2, 3)}]
        elif shape == "three":
            alike = self.node("a", degree * self.random.randint(1, 2))
            nodes = [self.node(name, degree) if self.maybe(0.5) else alike | {"name": name} for name in "abc"]
            pairs = self.random.sample([["a", "b"], ["b", "c"], ["a", "c"]], self.random.randint(1, 3))
            link = self.link()
            links = [{"between": pair} | (link if self.maybe(0.6) else self.link()) for pair in pairs]
        else:
            nodes = [
                self.node("left", degree * self.random.randint(1, 3)),
                self.node("right", degree * self.random.randint(1, 2)),
            ]
        if shape == "linked devices":
            ends = [f"{node['name']}:{number}" for node in nodes for number in range(node["count"])]
            for _ in range(2 if len(ends) > 2 else len(ends) // 2):
                link = {"between": self.random.sample(ends, 2)} | self.link()
                if all(set(link["between"]) != set(other["between"]) for other in links):
                    links.append(link)
        return {"devices": {"gpu": device}, "nodes": nodes} | ({"links": links} if links else {})

    def node(self, name: str, count: int) -> Json:
        return {"name": name, "device": "gpu", "count": count, "fabric": self.link(), "uplink": self.link()}


def _draw_constraints(random: Random, problem: Json) -> None:
    """Demand something that holds for one of the partitions, or pin or part layers at random."""
    if random.random() < 0.7:
        return
    asked = problem.setdefault("constraints", {})
    model = read(problem)
    names = [layer["name"] for layer in problem["model"]["layers"]]
    found = [partition for stages in stage_counts(model) for partition in islice(partitions(model, stages), 200)]
    kinds = random.sample(["pins", "together", "apart", "cut_after"], random.randint(1, 2))
    if not found or random.random() < 0.15:
        if kinds[0] == "pins":
            asked["pins"] = {random.choice(names): random.randint(0, model.most_stages() - 1)}
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


def _draw_memory(random: Random, problem: Json) -> None:
    """Give the devices less than the best plan needs but enough for another, or too little for any, or plenty."""
    model = read(problem)
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


def _draw_time_limits(random: Random, problem: Json) -> None:
    """Limit a time to between what two plans need, or to less than any."""
    if random.random() < 0.85:
        return
    model = read(problem)
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
