"""The input file of Piper: its fields, and the faults that can be seen in it alone."""

from collections import Counter
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from partita.models.base import Faults, Many, at_most
from partita.models.graph import strong_components
from partita.models.layer import MAX_OPTIONS
from partita.models.quantities import MAX_NAME

MAX_NODES = 20_000
MAX_EDGES = 100_000

Amount = Annotated[float, Field(ge=0, le=2**60)]
VANILLA = "vanilla"


class _Part(BaseModel):
    """Part of the file; fields for debugging are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)


class Configuration(_Part):
    """One way to run a node at one degree of tensor parallelism: time, bytes of weights, memory A y + B."""

    kind: Literal["vanilla", "activation recomp"] = Field(validation_alias="id")
    time: Annotated[float, Field(ge=0, le=1e9)] = Field(validation_alias="timePerSample")
    weights: Amount = Field(validation_alias="parameterSize")
    a: Amount = Field(validation_alias="memoryUsageA")
    b: Amount = Field(validation_alias="memoryUsageB")
    sync_forward: dict[str, Amount] = Field(default={}, validation_alias="syncTimeFw")
    sync_backward: dict[str, Amount] = Field(default={}, validation_alias="syncTimeBw")


class FileNode(_Part):
    """A layer: its configurations by degree of tensor parallelism, written as text."""

    id: int
    name: str = ""
    configurations: dict[
        Annotated[str, Field(pattern="^[1-9][0-9]{0,3}$")],
        Annotated[Many[Configuration], Field(min_length=1), at_most(2, "configurations")],
    ] = Field(validation_alias="TMPCs", min_length=1, max_length=MAX_OPTIONS // 2)

    @property
    def degrees(self) -> list[int]:
        """The degrees of tensor parallelism, ascending."""
        return sorted(map(int, self.configurations))


class FileEdge(_Part):
    """An activation that one node makes and another reads; ``cost`` is in bytes."""

    source: int = Field(validation_alias="sourceId")
    target: int = Field(validation_alias="destId")
    cost: Amount = Field(validation_alias="communicationCost")


class PiperFile(_Part):
    """The whole file."""

    devices: int = Field(validation_alias="maxDevices")
    memory: float = Field(validation_alias="maxMemoryPerDevice", ge=1, le=2**60)
    bandwidth: float = Field(validation_alias="bandwidth")
    microbatches: int = Field(validation_alias="mbsInBatch")
    nodes: Annotated[Many[FileNode], Field(min_length=1), at_most(MAX_NODES, "nodes")]
    edges: Annotated[Many[FileEdge], at_most(MAX_EDGES, "edges")]

    @cached_property
    def names(self) -> list[str]:
        """A name of its own for every node: the file's where that is possible, else one with its id."""
        usable = [
            node.name if node.name.isprintable() and len(node.name) <= MAX_NAME // 2 else "" for node in self.nodes
        ]
        count = Counter(usable)
        return [
            name if name and count[name] == 1 else f"{name or 'node'}#{node.id}"
            for name, node in zip(usable, self.nodes, strict=True)
        ]

    @cached_property
    def order(self) -> list[int]:
        """The positions of the nodes in a topological order of the edges."""
        place = {node.id: number for number, node in enumerate(self.nodes)}
        successors: list[list[int]] = [[] for _ in self.nodes]
        for edge in self.edges:
            successors[place[edge.source]].append(place[edge.target])
        return [number for component in strong_components(successors) for number in component]

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        known: set[int] = set()
        for index, node in enumerate(self.nodes):
            if node.id in known:
                faults.add(("nodes", index, "id"), "a second node with this id; every id stands once", node.id)
            known.add(node.id)
            if node.degrees != self.nodes[0].degrees or 1 not in node.degrees:
                detail = f"degrees 1 and the same as the first node's are needed: {self.nodes[0].degrees}"
                faults.add(("nodes", index, "TMPCs"), detail, node.degrees, "degrees")
            for degree, ways in node.configurations.items():
                _check_ways(faults, ("nodes", index, "TMPCs", degree), ways)
        seen: set[tuple[int, int]] = set()
        for index, edge in enumerate(self.edges):
            for field, end in (("sourceId", edge.source), ("destId", edge.target)):
                if end not in known:
                    faults.add(("edges", index, field), "there is no node with this id", end, "unknown_name")
            if (edge.source, edge.target) in seen:
                faults.add(("edges", index), "a second edge between these nodes; add their costs up", code="repeated")
            seen.add((edge.source, edge.target))
        faults.raise_if_any("PiperFile")
        return self


def _check_ways(faults: Faults, place: tuple[str | int, ...], ways: tuple[Configuration, ...]) -> None:
    """Refuse configurations that a layer with options cannot express."""
    kinds: list[str] = [way.kind for way in ways]
    if kinds.count(VANILLA) != 1:
        faults.add(place, "one configuration named 'vanilla' is needed, and at most one other", kinds, "kinds")
    for position, way in enumerate(ways):
        shared = (way.weights, way.sync_forward, way.sync_backward)
        if shared != (ways[0].weights, ways[0].sync_forward, ways[0].sync_backward):
            detail = "parameterSize and traffic must not depend on recompute; give both configurations the same"
            faults.add((*place, position), detail, code="kinds")
        if way.b < 2 * way.weights:
            detail = f"weights and gradients need twice parameterSize ({2 * way.weights:g} bytes), memoryUsageB is less"
            faults.add((*place, position, "memoryUsageB"), detail, way.b, "too_small")
