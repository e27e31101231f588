"""A model's costs for microbatches of another size than the one that they were measured with, and in one scenario."""

from typing import Any, TypeVar

from partita.models.layer import COSTS, Layer, LayerOption
from partita.models.profile import ModelProfile
from partita.models.tensor import SharedActivation, StorageOption, Tensor, TensorOption

Sized = TypeVar("Sized", Tensor, SharedActivation)
Given = TypeVar("Given", Tensor, SharedActivation, TensorOption, StorageOption)

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


def sized(model: ModelProfile, scenario: str) -> ModelProfile:
    """Give the model with the bytes that its tensors and shared activations have in a scenario."""

    def chosen(given: Sized) -> Sized:
        own = [option for option in given.options if option.scenario == scenario]
        if not given.options:
            return given
        update: dict[str, Any] = {"options": ()}
        for option in own:
            update |= {name: getattr(option, name) for name in type(option).model_fields if name != "scenario"}
        return given.model_copy(update=update)

    tensors = model.tensors
    return model.model_copy(
        update={
            "tensors": None if tensors is None else tuple(chosen(each) for each in tensors),
            "shared_activations": tuple(chosen(each) for each in model.shared_activations),
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
    options = tuple(_bytes(option, size, measured) for option in tensor.options)
    return _bytes(tensor, size, measured).model_copy(update={"options": options})


def _shared(shared: SharedActivation, size: int, measured: int) -> SharedActivation:
    options = tuple(_bytes(option, size, measured) for option in shared.options)
    return _bytes(shared, size, measured).model_copy(update={"options": options})


def _bytes(given: Given, size: int, measured: int) -> Given:
    """Give what has bytes, and perhaps bytes of gradient, with both grown."""
    names = [name for name in ("bytes", "gradient_bytes") if getattr(given, name, None) is not None]
    return given.model_copy(update={name: _grown(getattr(given, name), size, measured) for name in names})


def _grown(value: float | int, size: int, measured: int) -> float | int:
    """Give a time in proportion, or bytes in proportion and rounded up."""
    return -(-value * size // measured) if isinstance(value, int) else value * size / measured
