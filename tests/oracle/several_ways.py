"""Further random problems: nodes of several kinds of device, and recompute that is for the plan to choose."""

from random import Random

from oracle.random_schedules import EVERY_KIND
from oracle.search import every_plan
from strategies import Json, Maker, build_problem, read

WHOLE = ("1f1b", "1f1b", "gpipe", "interleaved_1f1b", "looped_bfs", "forward_only")
"""Schedules that leave the backward pass whole, as a choice of recompute asks for."""
MOST_OPTIONS, MOST_PLANS = 4, 150
"""Most layers with options of recompute, and plans without such a choice, so that all choices can be tried."""


def problem_of_several_ways(seed: int) -> Json:
    """Give the random problem of a seed with several kinds of device, a choice of recompute, or both."""
    random = Random(seed)
    chooses = random.random() < 0.6
    while True:
        further = _Ways(chooses, not chooses or random.random() < 0.4)
        problem = build_problem(random, WaysMaker, further, WHOLE if chooses else EVERY_KIND)
        if len(problem["model"]["layers"]) > 1 and further.small_enough:
            return problem


class WaysMaker(Maker):
    """Draws no options of its own: they come with the ways."""

    def layer(self, trains: bool, chain: bool) -> Json:
        layer = super().layer(trains, chain)
        layer.pop("options", None)
        return layer


class _Ways:
    """Gives a problem several kinds of device and options of recompute."""

    def __init__(self, chooses: bool, mixes: bool) -> None:
        self._chooses, self._mixes = chooses, mixes
        self.small_enough = False

    def __call__(self, random: Random, problem: Json) -> None:
        problem.get("constraints", {}).pop("recompute", None)
        problem.pop("scenarios", None)
        plans = len(every_plan(read(problem)))
        self.small_enough = plans <= MOST_PLANS
        if not self.small_enough:
            return
        if self._mixes:
            self._mix(random, problem)
        if self._chooses:
            self._offer(random, problem)

    def _mix(self, random: Random, problem: Json) -> None:
        """Make some nodes slower or faster, with less or more memory, and measure some layers there."""
        peaks = sorted({plan.price.peak_memory_bytes for plan in every_plan(read(problem))}) or [1]
        cluster = problem["cluster"]
        slow = {"speed": random.choice([0.3, 0.5, 1.0, 2.0]), "memory_bytes": max(random.choice(peaks), 1)}
        if random.random() < 0.3:
            slow["reserve_bytes"] = random.randint(0, slow["memory_bytes"] // 4)
        cluster["devices"]["slow"] = slow
        nodes = cluster["nodes"]
        if len(nodes) == 1 and problem["training"].get("routing") != "host":
            nodes.append(dict(nodes[0]) | {"name": "other", "count": max(1, nodes[0]["count"] - 1), "replicas": 1})
            for node in nodes:
                node.setdefault("uplink", {"bandwidth_bytes_per_s": 1e9})
        for node in nodes[1:] if random.random() < 0.9 else nodes[:1]:
            node["device"] = "slow"
        for layer in problem["model"]["layers"]:
            if random.random() < 0.4:
                own = {"device": "slow", "forward_s": layer["forward_s"] * random.choice([0.7, 1.9, 2.5])}
                if "backward_s" in layer:
                    own["backward_s"] = layer["backward_s"] * random.choice([0.7, 1.9, 2.5])
                    own["weight_gradient_s"] = own["backward_s"] * random.choice([0, 0.5, 1])
                layer.setdefault("options", []).append(own)

    def _offer(self, random: Random, problem: Json) -> None:
        """Let some layers keep less and take longer, or run a pass otherwise."""
        problem.setdefault("constraints", {})["recompute"] = random.choice(["choose", "choose", "stage"])
        layers = [layer for layer in problem["model"]["layers"] if "backward_s" in layer]
        for layer in random.sample(layers, min(len(layers), random.randint(1, MOST_OPTIONS))):
            for name in random.choice([["full"], ["full"], ["full", "selective"]]):
                kept = layer.get("activation_bytes", 0) * random.randint(0, 3) // 4
                slower = layer["backward_s"] + layer["forward_s"] * random.choice([0.3, 1.0])
                option = {"recompute": name, "activation_bytes": kept, "backward_s": slower}
                option["weight_gradient_bytes"] = min(kept, layer.get("weight_gradient_bytes", kept))
                if random.random() < 0.2:
                    option["forward_s"] = layer["forward_s"] * random.choice([0.9, 1.2])
                layer.setdefault("options", []).append(option)
