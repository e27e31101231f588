"""The model to be cut: layers, the tensors between them, weights and buffers."""

from collections.abc import Collection
from typing import Annotated, Self

from pydantic import Field, model_validator

from partita.models.base import Faults, Many, Model, at_most
from partita.models.layer import Layer, LayerOption
from partita.models.layer_order import check_order
from partita.models.measurement import Measurement
from partita.models.naming import check_known, check_unique, quoted
from partita.models.quantities import Name
from partita.models.tensor import Buffer, SharedActivation, Tensor, Weight

__all__ = ["Buffer", "Layer", "LayerOption", "ModelProfile", "SharedActivation", "Tensor", "Weight"]

MAX_LAYERS = 20_000
MAX_TENSORS = 100_000


class ModelProfile(Model):
    """A model as measured or estimated.

    Attributes
    ----------
    name
        For people.
    layers
        In a topological order.
    tensors
        The edges of the graph; None means a chain in which every layer feeds the next with its ``output_bytes``.
    weights, buffers, shared_activations
        Bytes that belong to layers by name.
    measurement
        How the costs were found; no plan depends on it.
    """

    name: Name = "model"
    layers: Annotated[Many[Layer], Field(min_length=1), at_most(MAX_LAYERS, "layers")]
    tensors: Annotated[Many[Tensor], at_most(MAX_TENSORS, "tensors")] | None = None
    weights: Annotated[Many[Weight], at_most(MAX_TENSORS, "weights")] = ()
    buffers: Annotated[Many[Buffer], at_most(MAX_TENSORS, "buffers")] = ()
    shared_activations: Annotated[Many[SharedActivation], at_most(MAX_TENSORS, "shared activations")] = ()
    measurement: Measurement | None = None

    def layer_index(self) -> dict[str, int]:
        """Give the position of every layer by its name."""
        return {layer.name: index for index, layer in enumerate(self.layers)}

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        index = self.layer_index()
        check_unique(faults, ("layers",), "layer", (layer.name for layer in self.layers))
        _check_holders(faults, self, index)
        if self.tensors is not None:
            check_unique(faults, ("tensors",), "tensor", (tensor.name for tensor in self.tensors))
            _check_one_notation(faults, self.layers)
            if _check_ends(faults, self.tensors, index) and not faults.count:
                check_order(faults, self.tensors, index)
        faults.raise_if_any("ModelProfile")
        return self


def _check_holders(faults: Faults, profile: ModelProfile, known: Collection[str]) -> None:
    """Refuse weights, buffers and shared activations of layers that do not exist."""
    check_unique(faults, ("weights",), "weight", (weight.name for weight in profile.weights))
    check_unique(faults, ("buffers",), "buffer", (buffer.name for buffer in profile.buffers))
    for field in ("weights", "buffers", "shared_activations"):
        for index, held in enumerate(getattr(profile, field)):
            for position, name in enumerate(held.layers):
                check_known(faults, (field, index, "layers", position), "layer", name, known)


def _check_one_notation(faults: Faults, layers: tuple[Layer, ...]) -> None:
    """Refuse output_bytes next to tensors: one edge would be written twice."""
    for index, layer in enumerate(layers):
        detail = f"tensors are the edges here; move output_bytes of {quoted(layer.name)} into a tensor"
        if layer.output_bytes:
            faults.add(("layers", index, "output_bytes"), detail, layer.output_bytes, "two_notations")
        for position, option in enumerate(layer.options):
            if option.output_bytes:
                place = ("layers", index, "options", position, "output_bytes")
                faults.add(place, detail, option.output_bytes, "two_notations")


def _check_ends(faults: Faults, tensors: tuple[Tensor, ...], known: Collection[str]) -> bool:
    """Refuse tensors of layers that do not exist; tell whether all do."""
    before = faults.count
    for index, tensor in enumerate(tensors):
        check_known(faults, ("tensors", index, "producer"), "layer", tensor.producer, known)
        for position, name in enumerate(tensor.consumers):
            check_known(faults, ("tensors", index, "consumers", position), "layer", name, known)
    return faults.count == before
