"""The input file of dnn-partitioning: its fields, and the faults that can be seen in it alone."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from partita.models.base import Faults, Many, at_most, fault

MAX_NODES = 200_000
MAX_EDGES = 1_000_000

LEAST_COST = 1e-12
"""The smallest time or cost that is not 0; of a millisecond it is what a problem allows, a femtosecond."""


def _flag(value: Any) -> Any:
    """Read 0 and 1 as false and true."""
    return bool(value) if type(value) is int and value in (0, 1) else value


Flag = Annotated[bool, BeforeValidator(_flag)]


def _none_or_large_enough(cost: float) -> float:
    """Refuse a cost that is smaller than any real one, but not 0."""
    if 0 < cost < LEAST_COST:
        raise fault("too_small", f"must be 0 or at least {LEAST_COST:g}; check the unit")
    return cost


Cost = Annotated[float, Field(ge=0, le=1e12), AfterValidator(_none_or_large_enough)]


class _Part(BaseModel):
    """Part of the file; fields for debugging are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)


class FileNode(_Part):
    """An operation: time in milliseconds and memory in bytes on an accelerator."""

    id: int
    name: str | None = None
    supported: Flag = Field(validation_alias="supportedOnFpga")
    latency_ms: Cost = Field(validation_alias="fpgaLatency")
    backward: Flag = Field(default=False, validation_alias="isBackwardNode")
    color: int | None = Field(default=None, validation_alias="colorClass")
    size: float = Field(ge=0, le=2**60)


class FileEdge(_Part):
    """A value that one node makes and another reads; ``cost`` is the time to move it to or from the host."""

    source: int = Field(validation_alias="sourceId")
    target: int = Field(validation_alias="destId")
    cost: Cost
    size: float = Field(default=0.0, ge=0)


class InputFile(_Part):
    """The whole file."""

    accelerators: int = Field(validation_alias="maxFPGAs")
    capacity: float = Field(validation_alias="maxSizePerFPGA", ge=1, le=2**60)
    nodes: Annotated[Many[FileNode], Field(min_length=1), at_most(MAX_NODES, "nodes")]
    edges: Annotated[Many[FileEdge], at_most(MAX_EDGES, "edges")]

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        nodes: dict[int, FileNode] = {}
        for index, node in enumerate(self.nodes):
            if node.id in nodes:
                faults.add(("nodes", index, "id"), "a second node with this id; every id stands once", node.id)
            if not node.supported:
                detail = "this node cannot run on an accelerator; plans without CPUs are not possible"
                faults.add(("nodes", index, "supportedOnFpga"), detail, node.supported)
            nodes[node.id] = node
        cost: dict[int, float] = {}
        for index, edge in enumerate(self.edges):
            for field, end in (("sourceId", edge.source), ("destId", edge.target)):
                if end not in nodes:
                    faults.add(("edges", index, field), "there is no node with this id", end, "unknown_name")
            if cost.setdefault(edge.source, edge.cost) != edge.cost:
                detail = f"another edge of node {edge.source} costs {cost[edge.source]:g}; all its edges move one value"
                faults.add(("edges", index, "cost"), detail, edge.cost)
            source, target = nodes.get(edge.source), nodes.get(edge.target)
            if source is not None and target is not None and source.backward and not target.backward:
                detail = "an edge from a backward node to a forward node; the backward pass comes last"
                faults.add(("edges", index, "destId"), detail, edge.target)
        faults.raise_if_any("InputFile")
        return self
