"""A model's costs for microbatches of another size than the one that they were measured with."""

from typing import Any

from partita.models.layer import COSTS, Layer, LayerOption
from partita.models.profile import ModelProfile
from partita.models.tensor import SharedActivation, Tensor

_FIXED = frozenset({"weight_bytes"})
"""What does not depend on the samples of a microbatch."""


def rescaled(model: ModelProfile, size: int, measured: int) -> ModelProfile:
    """Give the model with its costs for microbatches of ``size`` samples.

    Options that name this size stay as they are; all other figures are those for ``measured`` samples, and times,
    activations, workspace, outputs and tensors grow in proportion, bytes being rounded up.
    """
    if size == measured:
        return model
    tensors = model.tensors
    return model.model_copy(
        update={
            "layers": tuple(_layer(each, size, measured) for each in model.layers),
            "tensors": None if tensors is None else tuple(_tensor(each, size, measured) for each in tensors),
            "shared_activations": tuple(_shared(each, size, measured) for each in model.shared_activations),
        }
    )


def _layer(layer: Layer, size: int, measured: int) -> Layer:
    options = [
        option if option.microbatch_size == size else option.model_copy(update=_costs(option, size, measured))
        for option in layer.options
        if option.microbatch_size in (None, size)
    ]
    return layer.model_copy(update={**_costs(layer, size, measured), "options": tuple(options)})


def _costs(given: Layer | LayerOption, size: int, measured: int) -> dict[str, Any]:
    """Give the costs that grow with the samples of a microbatch, where they are given."""
    costs = {name: getattr(given, name) for name in COSTS if name not in _FIXED}
    return {name: _grown(value, size, measured) for name, value in costs.items() if value is not None}


def _tensor(tensor: Tensor, size: int, measured: int) -> Tensor:
    update: dict[str, Any] = {"bytes": _grown(tensor.bytes, size, measured)}
    if tensor.gradient_bytes is not None:
        update["gradient_bytes"] = _grown(tensor.gradient_bytes, size, measured)
    return tensor.model_copy(update=update)


def _shared(shared: SharedActivation, size: int, measured: int) -> SharedActivation:
    return shared.model_copy(update={"bytes": _grown(shared.bytes, size, measured)})


def _grown(value: float | int, size: int, measured: int) -> float | int:
    """Give a time in proportion, or bytes in proportion and rounded up."""
    return -(-value * size // measured) if isinstance(value, int) else value * size / measured
