"""What passes between layers, and what several layers hold together."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from partita.models.base import Faults, Many, Model, at_most, unique
from partita.models.quantities import Bytes, Count, Name, Position

MAX_READERS = 20_000

LayerNames = Annotated[Many[Name], Field(min_length=1, fail_fast=True), unique("layer"), at_most(MAX_READERS, "layers")]
"""At least one layer, each named once."""

Dimensions = Annotated[Many[Position], Field(fail_fast=True), at_most(64, "dimensions")]


class Resharding(Model):
    """What a stage moves besides a tensor itself to bring it into the form that its tensor-parallel devices need.

    Attributes
    ----------
    tensor_parallel
        The degree of the stage.
    send_bytes, receive_bytes
        Bytes for one microbatch in either pass, where the tensor leaves the stage and where it arrives at it.
    """

    tensor_parallel: Count
    send_bytes: Bytes = 0
    receive_bytes: Bytes = 0


class TensorOption(Model):
    """A tensor in one scenario.

    Attributes
    ----------
    scenario
        The scenario's name.
    bytes, gradient_bytes
        Bytes of the tensor for one microbatch, and those of its gradient; None means as many as ``bytes``.
    """

    scenario: Name
    bytes: Bytes
    gradient_bytes: Bytes | None = None


class StorageOption(Model):
    """A saved storage in one scenario.

    Attributes
    ----------
    scenario
        The scenario's name.
    bytes
        What it holds for one microbatch.
    """

    scenario: Name
    bytes: Bytes


class Tensor(Model):
    """A value that one layer makes and others read: an edge of the graph of layers.

    Attributes
    ----------
    name
        Unique in the model.
    producer
        The layer that makes it.
    consumers
        The layers that read it, each once.
    bytes
        Bytes for one microbatch.
    gradient_bytes
        Bytes of its gradient; None means as many as ``bytes``.
    shape, dtype, stride
        What the tensor looks like, for export; may be unknown.
    options
        Its bytes in scenarios where they are others.
    resharding
        What stages of several devices move besides, by their tensor-parallel degree; with ``per_stage_degrees`` only.
    direction
        ``pass`` in JSON. A forward tensor orders its layers; a backward tensor is moved in the backward pass, of its
        own, and imposes no order.
    """

    name: Name
    producer: Name
    consumers: LayerNames
    bytes: Bytes
    gradient_bytes: Bytes | None = None
    shape: Dimensions | None = None
    dtype: Name | None = None
    stride: Dimensions | None = None
    options: Annotated[Many[TensorOption], at_most(100, "scenarios")] = ()
    resharding: Annotated[Many[Resharding], at_most(64, "degrees")] = ()
    direction: Literal["forward", "backward"] = Field(
        default="forward", validation_alias="pass", serialization_alias="pass"
    )

    @property
    def backward_bytes(self) -> int:
        """Bytes of gradient that travel from the consumers to the producer; none for a backward tensor."""
        if self.direction == "backward":
            return 0
        return self.bytes if self.gradient_bytes is None else self.gradient_bytes

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        if self.producer in self.consumers:
            place = ("consumers", self.consumers.index(self.producer))
            faults.add(place, "a layer does not read its own tensor; leave it out", self.producer)
        if self.direction == "backward" and self.gradient_bytes is not None:
            detail = "a tensor of the backward pass has no gradient of its own; leave gradient_bytes out"
            faults.add(("gradient_bytes",), detail, self.gradient_bytes)
        for position, option in enumerate(self.options):
            if self.direction == "backward" and option.gradient_bytes is not None:
                detail = "a tensor of the backward pass has no gradient of its own; leave gradient_bytes out"
                faults.add(("options", position, "gradient_bytes"), detail, option.gradient_bytes)
        degrees = [each.tensor_parallel for each in self.resharding]
        for position, degree in enumerate(degrees):
            if degree in degrees[:position]:
                detail = f"a second entry for tensor_parallel {degree}; keep one"
                faults.add(("resharding", position, "tensor_parallel"), detail, degree, "repeated")
        faults.raise_if_any("Tensor")
        return self


class Weight(Model):
    """Weights with a name.

    Attributes
    ----------
    name
        Unique among weights.
    bytes
        Those of one copy.
    layers
        Who uses them; with two or more layers they are tied.
    """

    name: Name
    bytes: Bytes
    layers: LayerNames


class Buffer(Model):
    """State that is not trained, such as running statistics.

    Attributes
    ----------
    name
        Unique among buffers.
    bytes
        Those of one copy.
    layers
        Who uses it.
    mutated
        Whether the forward pass writes to it.
    """

    name: Name
    bytes: Bytes
    layers: LayerNames
    mutated: bool = False


class SharedActivation(Model):
    """One saved storage with several savers, counted once on every stage that holds one of them.

    Attributes
    ----------
    bytes
        Those of one microbatch, not part of any layer's ``activation_bytes``.
    layers
        Who saves it.
    options
        Other bytes, by scenario.
    """

    bytes: Bytes
    layers: LayerNames
    options: Annotated[Many[StorageOption], at_most(100, "scenarios")] = ()
