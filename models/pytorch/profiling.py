"""Puts captured layers and their measured costs into a profile, the format that plans are made from."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from partita.models.document import validate
from partita.models.profile import ModelProfile
from partita.models.pytorch.layers import CapturedLayer
from partita.models.pytorch.records import CapturedGraph, State
from partita.models.pytorch.segments import entering, leaving
from partita.models.pytorch.timing import LayerTiming, Timings


class Origin(NamedTuple):
    """Where costs come from.

    Attributes
    ----------
    device
        The kind of device that they hold for.
    module_saved_bytes
        What the user's module itself was measured to save; None where costs are estimates.
    """

    device: str
    module_saved_bytes: int | None


class Measured(NamedTuple):
    """Costs of all layers, and where they come from."""

    timings: Timings
    origin: Origin


def model_profile(
    graph: CapturedGraph, layers: Sequence[CapturedLayer], measured: Measured | None, *, name: str = "model"
) -> ModelProfile:
    """Give the profile of a captured and measured module.

    Storages that several layers save are shared activations, so that those of any layers, each storage counted once,
    add up to what these layers save together. Parameters that are not trained count as buffers, which have neither
    gradient nor optimizer state. The inputs of the model come with the first layer that reads one.

    Parameters
    ----------
    graph, layers, measured
        As captured and measured, with a timing for every layer. Without them there are bytes alone, and all times are
        0: nothing to plan with, but enough to check what else a problem says.
    name
        Of the model.
    """
    saved = _savers(graph, layers)
    weights = _holders(graph, layers, {name: each for name, each in graph.parameters.items() if each.trained})
    resting = {name: each for name, each in graph.parameters.items() if not each.trained}
    buffers = _holders(graph, layers, {**resting, **graph.buffers})
    costs = (
        [{} for _ in layers]
        if measured is None
        else [_costs(graph, *each, saved) for each in _pairs(layers, measured.timings)]
    )
    found = [_layer(graph, layer, saved, weights) | own for layer, own in zip(layers, costs, strict=True)]
    return validate(
        ModelProfile,
        {
            "name": name,
            "layers": found,
            "tensors": _tensors(graph, layers),
            "weights": [
                {"name": state.names[0], "bytes": state.bytes, "layers": holders}
                for state, holders in weights
                if len(holders) > 1
            ],
            "buffers": [
                {"name": state.names[0], "bytes": state.bytes, "layers": holders, "mutated": state.changed}
                for state, holders in buffers
            ],
            "shared_activations": [
                {"bytes": graph.storage_bytes[number], "layers": savers}
                for number, savers in saved.items()
                if len(savers) > 1 and graph.storage_bytes[number]
            ],
            "measurement": None if measured is None else _measurement(graph, layers, measured),
        },
    )


def _savers(graph: CapturedGraph, layers: Sequence[CapturedLayer]) -> dict[int, list[str]]:
    """Give for every saved storage the layers that save it."""
    found: dict[int, list[str]] = {}
    for layer in layers:
        for number in sorted({number for name in layer.operations for number in graph.operations[name].saved}):
            found.setdefault(number, []).append(layer.name)
    return found


def _holders(
    graph: CapturedGraph, layers: Sequence[CapturedLayer], states: Mapping[str, State]
) -> list[tuple[State, list[str]]]:
    """Give for parameters or buffers the layers that read them, those that repeat a source that reads one too."""
    readers: dict[str, list[str]] = {}
    for layer in layers:
        own = [graph.operations[name] for name in (*layer.operations, *layer.repeated)]
        for name in {name for each in own for name in (*each.parameters, *each.buffers)}:
            readers.setdefault(name, []).append(layer.name)
    return [(state, readers[name]) for name, state in states.items() if name in readers]


def _pairs(layers: Sequence[CapturedLayer], timings: Timings) -> list[tuple[CapturedLayer, LayerTiming]]:
    """Give every layer with what was measured of it."""
    return list(zip(layers, timings.layers, strict=True))


def _layer(
    graph: CapturedGraph,
    layer: CapturedLayer,
    saved: dict[int, list[str]],
    weights: list[tuple[State, list[str]]],
) -> dict[str, Any]:
    """Give a layer with its bytes."""
    own = [number for number, savers in saved.items() if savers == [layer.name]]
    return {
        "name": layer.name,
        "forward_s": 0.0,
        "activation_bytes": sum(graph.storage_bytes[number] for number in own),
        "weight_bytes": sum(state.bytes for state, holders in weights if holders == [layer.name]),
    }


def _costs(
    graph: CapturedGraph, layer: CapturedLayer, timing: LayerTiming, saved: dict[int, list[str]]
) -> dict[str, Any]:
    """Give the measured costs of a layer.

    With recompute it keeps its inputs and what a policy saves. Storages that it shares with others are counted beside
    the layers, whether or not it is recomputed.
    """
    costs: dict[str, Any] = {
        "forward_s": timing.forward.seconds,
        "backward_s": timing.backward.seconds,
        "weight_gradient_s": timing.weight_gradient_s,
        "workspace_bytes": timing.workspace_bytes,
    }
    inputs = {graph.values[name].storage for name in entering(graph, layer.operations)}
    shared = {number for number, savers in saved.items() if len(savers) > 1}
    costs["options"] = [
        {
            "recompute": name,
            **({} if again.forward is None else {"forward_s": again.forward.seconds}),
            "backward_s": again.backward.seconds,
            "weight_gradient_s": 0.0,  # nothing can wait: the pass starts with another forward pass
            "activation_bytes": again.kept_bytes
            + sum(graph.storage_bytes[number] for number in (inputs | again.kept) - shared),
            "workspace_bytes": again.workspace_bytes,
        }
        for name, again in timing.recomputed.items()
    ]
    return costs


def _tensors(graph: CapturedGraph, layers: Sequence[CapturedLayer]) -> list[dict[str, Any]]:
    """Give the values that pass between layers."""
    reads = {layer.name: entering(graph, layer.operations) for layer in layers}
    repeated = {name for layer in layers for name in layer.repeated}
    makers = {name: layer.name for layer in layers for name in leaving(graph, layer.operations, layer.repeated)}
    arrival = next((layer for layer, names in reads.items() if set(names) & set(graph.inputs)), layers[0].name)
    makers |= dict.fromkeys(graph.inputs, arrival)
    readers: dict[str, list[str]] = {}
    for layer, names in reads.items():
        for name in names:
            if layer != makers.get(name):
                readers.setdefault(name, []).append(layer)
    found = []
    for value in graph.values.values():
        if value.name in repeated:
            continue
        maker, consumers = makers.get(value.name), readers.get(value.name)
        if consumers:
            found.append(
                {
                    "name": value.name,
                    "producer": maker,
                    "consumers": consumers,
                    "bytes": value.bytes,
                    "gradient_bytes": value.bytes if value.requires_grad else 0,
                    "shape": value.shape,
                    "dtype": value.dtype,
                    "stride": value.stride,
                }
            )
    return found


def _measurement(graph: CapturedGraph, layers: Sequence[CapturedLayer], measured: Measured) -> dict[str, Any]:
    """Say what was measured, on what and how."""
    timings, origin = measured
    types = Counter(str(parameter.dtype).removeprefix("torch.") for parameter in graph.module.parameters())
    return {
        "kind": "analytic" if origin.module_saved_bytes is None else "measured",
        "device": origin.device,
        "torch_version": torch.__version__,
        "mode": "training" if graph.training else "evaluation",
        "dtype": types.most_common(1)[0][0] if types else "none",
        "inputs": [{"shape": graph.values[name].shape, "dtype": graph.values[name].dtype} for name in graph.inputs],
        "repetitions": timings.repetitions,
        "forward_s": timings.forward.seconds,
        "backward_s": timings.backward.seconds,
        "saved_bytes": graph.saved_bytes,
        "module_saved_bytes": origin.module_saved_bytes,
        "spreads": {
            layer.name: max(timing.forward.spread, timing.backward.spread) for layer, timing in _pairs(layers, timings)
        },
    }


def device_name(device: torch.device) -> str:
    """Give the name of a kind of device, such as that of the GPU or the architecture of the CPU."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"cpu {platform.machine()}".strip() if device.type == "cpu" else device.type
