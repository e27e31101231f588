"""Random small problems: from a seed, and as a hypothesis strategy.

Every problem is small enough to try all its plans. Its memory and time limits are drawn from what its plans need, so
that they often bind and sometimes leave no plan.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

from oracle.facts import read_facts
from oracle.partitions import partitions, stage_counts
from oracle.random_limits import draw_constraints, draw_memory, draw_time_limits
from oracle.random_schedules import EVERY_KIND, PLAIN, SPLIT, draw_schedule
from oracle.search import places_of
from partita.models.document import validate
from partita.models.layer import Layer
from partita.models.problem import Problem
from partita.models.training import Training

Json = dict[str, Any]
T = TypeVar("T")

MOST_PLANS = 2000
"""Most plans of a random problem."""
PLENTY = 2**50
"""Bytes of memory that never bind."""


def seeded_problem(seed: int, schedules: Sequence[str] = EVERY_KIND) -> Json:
    """Give the random problem of a seed, as JSON values, with one of the schedules."""
    return build_problem(Random(seed), schedules=schedules)


def problems(schedules: Sequence[str] = EVERY_KIND) -> st.SearchStrategy[Json]:
    """Give random problems to hypothesis, as JSON values."""
    return st.randoms(use_true_random=False).map(lambda random: build_problem(random, schedules=schedules))


def first_drawn(seed: int, draw: Callable[[int], T | None]) -> T:
    """Draw from a seed, and from further ones while nothing that fits is drawn."""
    return next(found for each in range(seed, seed + 10**8, 10**5) if (found := draw(each)) is not None)


def read(problem: Json) -> Problem:
    """Make the model of a problem given as JSON values."""
    return validate(Problem, problem)


def build_problem(
    random: Random,
    maker: type["Maker"] | None = None,
    further: Callable[[Random, Json], None] | None = None,
    schedules: Sequence[str] = EVERY_KIND,
) -> Json:
    """Draw problems until one is small enough, then draw its constraints, the further ones too, and its limits."""
    while True:
        problem = (maker or Maker)(random, schedules).problem()
        if count_plans(read(problem)) <= MOST_PLANS:
            break
    draw_constraints(random, problem)
    if further is not None:
        further(random, problem)
    draw_memory(random, problem)
    draw_time_limits(random, problem)
    return problem


def count_plans(problem: Problem) -> int:
    """Count the plans without memory and time limits, up to a little more than the most allowed."""
    places, facts = places_of(problem), read_facts(problem)
    total = 0
    for stages in stage_counts(problem):
        placements = len(places.placements(facts.ranks_for(stages)))
        total += placements * len(list(islice(partitions(problem, stages), MOST_PLANS // max(placements, 1) + 1)))
        if total > MOST_PLANS:
            break
    return total


class Maker:
    """Draws the parts of one problem; scales of time and size are drawn once, so that the figures match.

    With the plain schedules a seed gives the problem that it gave before there were others.
    """

    sizes: Sequence[int] = (1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9, 9, 9)
    """Numbers of layers."""

    def __init__(self, random: Random, schedules: Sequence[str] = EVERY_KIND) -> None:
        self.random = random
        self.schedules = tuple(schedules)
        self.second = random.choice([1.0, 1e-3, 1e-6])
        self.byte = random.choice([10**5, 2**20, 10**9])
        self.coarse = random.random() < 0.3  # equal figures, so that plans tie
        self.routing = random.choice(["relay", "relay", "direct", "host"])
        self.degrees = random.choice([(1, 1)] * 8 + [(2, 1), (1, 2)])
        self.names: list[str] = []
        self.splits = False

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
        num_layers = self.random.choice(self.sizes)
        self.names = [f"layer{index}" for index in range(num_layers)]
        training = self.training()
        cluster = self.cluster()
        degree = self.degrees[0] * self.degrees[1]
        slots = sum(node.get("replicas", 1) * node["count"] for node in cluster["nodes"]) // degree
        if self.schedules != PLAIN and not self.further_training(training, slots):
            return self.problem()
        trains = training["schedule"] != "forward_only"
        problem: Json = {"model": self.model(trains), "cluster": cluster, "training": training}
        problem["objective"] = self.random.choice(
            ["iteration_time", "iteration_time", "tokens_per_second", "bottleneck_time", "peak_memory"]
        )
        if any("recompute" in option for layer in problem["model"]["layers"] for option in layer.get("options", [])):
            problem["constraints"] = {"recompute": self.random.choice(["full", "none"])}
        if any("scenario" in option for layer in problem["model"]["layers"] for option in layer.get("options", [])):
            problem["scenarios"] = [{"name": "long", "share": 1.0}]
        if self.schedules == PLAIN:
            most = min(num_layers, slots, 4)
            training["num_stages"] = self.random.choice(
                [None, None, most, self.random.randint(max(1, most - 1), most), self.several(most)]
            )
        return problem

    def further_training(self, training: Json, slots: int) -> bool:
        """Draw what plain problems lack; tell whether the layers and slots are enough."""
        drawn = draw_schedule(self.random, self.schedules, len(self.names), slots)
        if drawn is None:
            return False
        training |= drawn
        kind = drawn["schedule"]["kind"] if isinstance(drawn["schedule"], dict) else drawn["schedule"]
        self.splits = self.maybe(0.9 if kind in SPLIT else 0.1)
        if "runtime" in Training.model_fields and self.maybe(0.3):
            training["runtime"] = "torch"
        return True

    def several(self, most: int) -> list[int]:
        return sorted(self.random.sample(range(1, most + 1), self.random.randint(min(2, most), most)))

    def training(self) -> Json:
        training: Json = {
            "schedule": self.random.choice(PLAIN),
            "num_microbatches": self.random.randint(1, 8),
            "microbatch_size": self.random.choice([1, 4]),
            "sequence_length": self.random.choice([1, 128]),
            "communication": self.random.choice(["overlapped", "blocking"]),
            "routing": self.routing,
            "tensor_parallel": self.degrees[0],
            "data_parallel": self.degrees[1],
            "replicas_per_node": self.degrees[1],
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
        if self.splits:
            self.split(layer)
        return layer

    def split(self, layer: Json) -> None:
        """Draw the weight gradient's part of times and activations, in the layer and wherever an option gives these."""
        fewer_bytes = "weight_gradient_bytes" in Layer.model_fields and self.maybe(0.7)
        for costs in (layer, *layer.get("options", [])):
            if "backward_s" in costs:
                costs["weight_gradient_s"] = costs["backward_s"] * self.random.choice([0, 0.25, 0.5, 0.5, 1])
            if fewer_bytes and "activation_bytes" in costs:
                costs["weight_gradient_bytes"] = costs["activation_bytes"] * self.random.randint(0, 4) // 4

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
