"""Further random problems: different paths often cost the same, nodes are equal, and joined layers are pinned."""

from collections.abc import Sequence
from itertools import islice
from random import Random

from oracle.partitions import partitions, stage_counts
from oracle.random_schedules import EVERY_KIND
from partita.models.errors import InvalidInput
from strategies import Json, Maker, build_problem, read


def coinciding_problem(seed: int, schedules: Sequence[str] = EVERY_KIND) -> Json:
    """Give the random problem of a seed in which different paths often cost the same and joined layers are pinned."""
    return build_problem(Random(seed), CoincidingMaker, _pin_joined, schedules)


class CoincidingMaker(Maker):
    """Draws all links from two or three values, mostly without latency; two nodes are often equal."""

    def __init__(self, random: Random, schedules: Sequence[str] = EVERY_KIND) -> None:
        super().__init__(random, schedules)
        self.values = [super(CoincidingMaker, self).link() for _ in range(random.randint(2, 3))]
        if self.maybe(0.8):
            self.values = [value | {"latency_s": 0.0} for value in self.values]

    def link(self) -> Json:
        return dict(self.random.choice(self.values))

    def cluster(self) -> Json:
        """Draw a cluster; sometimes two equal nodes with a link between two devices of each."""
        cluster = super().cluster()
        if self.routing != "host" and self.degrees == (1, 1) and self.maybe(0.3):
            left = self.node("left", self.random.randint(2, 3))
            link = self.link()
            cluster["nodes"] = [left, left | {"name": "right"}]
            cluster["links"] = [{"between": [f"{name}:0", f"{name}:1"]} | link for name in ("left", "right")]
        return cluster


def _pin_joined(random: Random, problem: Json) -> None:
    """Join layers by a buffer they write to or by cut_after, and pin two of them to a stage, or rarely to two."""
    names = [layer["name"] for layer in problem["model"]["layers"]]
    if len(names) < 3 or random.random() < 0.6:
        return
    asked = problem.setdefault("constraints", {})
    pair = random.sample(names, 2)
    if random.random() < 0.5:
        buffers = problem["model"].setdefault("buffers", [])
        buffers.append({"name": "written", "bytes": 1, "layers": pair, "mutated": True})
    else:
        at = random.randrange(len(names) - 1)
        pair = names[at : at + 2]
        asked["cut_after"] = [name for name in asked.get("cut_after", names) if name != pair[0]]
    try:
        model = read(problem)
    except InvalidInput:  # the layers are apart in so many words
        problem["model"]["buffers"].pop()
        return
    found = [partition for stages in stage_counts(model) for partition in islice(partitions(model, stages), 200)]
    if not found:
        return
    partition = random.choice(found)
    pins = {name: partition[names.index(name)] for name in pair}
    if random.random() < 0.2:
        pins[pair[0]] = random.randint(0, model.most_stages() - 1)
    try:
        read(problem | {"constraints": asked | {"pins": asked.get("pins", {}) | pins}})
    except InvalidInput:  # the layers are together in so many words
        return
    asked["pins"] = asked.get("pins", {}) | pins
