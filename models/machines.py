"""Kinds of device, the machines that hold them, and links."""

from typing import Annotated, Self

from pydantic import Field, WithJsonSchema, model_validator

from partita.models.base import Faults, Many, Model, at_most
from partita.models.quantities import Bytes, Name, PositiveBytes, Seconds, at_least

MAX_DEVICES = 100_000

Bandwidth = Annotated[
    float,
    Field(le=1e18),
    at_least(1e3, "check the unit: bytes per second, so that 25 GB/s are 25e9"),
    WithJsonSchema({"type": "number", "minimum": 1e3, "maximum": 1e18}),
]
"""Bytes per second in one direction, 1e3 to 1e18."""

Speed = Annotated[
    float,
    Field(le=1e6),
    at_least(1e-6, "a device as fast as the reference has a speed of 1; leave it out if it is unknown"),
    WithJsonSchema({"type": "number", "minimum": 1e-6, "maximum": 1e6}),
]
"""What times are divided by, 1e-6 to 1e6."""


class Device(Model):
    """A kind of accelerator.

    Attributes
    ----------
    memory_bytes
        All of its memory.
    reserve_bytes
        The part kept free on purpose.
    speed
        Divides every time that no option naming this kind gives: 2.0 is twice as fast.
    """

    memory_bytes: PositiveBytes
    reserve_bytes: Bytes = 0
    speed: Speed = 1.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.reserve_bytes >= self.memory_bytes:
            faults = Faults()
            detail = f"leaves nothing of memory_bytes ({self.memory_bytes}); reserve less than that"
            faults.add(("reserve_bytes",), detail, self.reserve_bytes)
            faults.raise_if_any("Device")
        return self


class Link(Model):
    """A way for bytes to travel, the same in both directions.

    Attributes
    ----------
    bandwidth_bytes_per_s
        Bytes per second in one direction.
    latency_s
        Seconds before the first byte arrives.
    """

    bandwidth_bytes_per_s: Bandwidth
    latency_s: Seconds = 0.0


class ExplicitLink(Link):
    """An exception to what fabrics and uplinks give.

    Attributes
    ----------
    between
        Its ends: two nodes (``node0``) or two devices (``node0:5``).
    """

    between: Annotated[Many[Name], Field(min_length=2, max_length=2), at_most(2, "ends of a link")]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.between[0] == self.between[1]:
            faults = Faults()
            faults.add(("between", 1), "a link joins two different places; name the other one", self.between[1])
            faults.raise_if_any("ExplicitLink")
        return self


class Node(Model):
    """Machines of one kind.

    Attributes
    ----------
    name
        The machine's name; with several replicas ``node`` stands for ``node0``, ``node1`` and so on. No colon.
    replicas
        How many such machines there are.
    device, count
        The kind of device each holds, and how many.
    fabric
        The link between any two devices of one machine; needed when there are two.
    uplink
        The link from a machine to the network; needed when the cluster has several machines.
    """

    name: Name
    replicas: Annotated[int, Field(ge=1, le=MAX_DEVICES)] = 1
    device: Name
    count: Annotated[int, Field(ge=1, le=MAX_DEVICES)]
    fabric: Link | None = None
    uplink: Link | None = None

    def replica_names(self) -> list[str]:
        """Give the names of the machines: the node's own, or numbered from 0 when there are several."""
        return [self.name] if self.replicas == 1 else [f"{self.name}{number}" for number in range(self.replicas)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        if ":" in self.name:
            faults.add(("name",), "a colon separates node and device, as in node0:5; leave it out", self.name)
        if self.count > 1 and self.fabric is None:
            detail = f"needed: {self.count} devices of one node are joined by its fabric; give it"
            faults.add(("fabric",), detail, code="missing")
        faults.raise_if_any("Node")
        return self
