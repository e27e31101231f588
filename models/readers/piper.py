"""Reads the inputs of Piper (Tarnawski et al., NeurIPS 2021) as that work's problem.

How its convention is written here:

- ``timePerSample`` is forward and backward pass together: it becomes ``backward_s``, ``forward_s`` is 0.
- ``parameterSize`` becomes ``weight_bytes``, with an optimizer that keeps one byte of gradient for each. The rest of
  ``memoryUsageB`` becomes ``buffer_bytes``, ``memoryUsageA`` ``activation_bytes``, rounded up to bytes.
- Every edge is a tensor of its own, charged in both passes at both ends and added to their work: ``communication:
  blocking``, ``routing: direct``. ``syncTimeFw`` (by predecessor) and ``syncTimeBw`` (by successor) are its
  ``resharding``.
- The exchange of weights takes 4 (d - 1) / d, twice what full-duplex links need: ``gradient_exchange: half_duplex``.
- What arrives needs no buffers: ``runtime: none``.
"""

from collections.abc import Sequence
from math import ceil
from typing import Literal

from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput, short_value
from partita.models.problem import Problem
from partita.models.readers.options import checked_devices, memory_in_bytes
from partita.models.readers.piper_file import FileNode, PiperFile

TimeUnit = Literal["s", "ms"]
KINDS = {"vanilla": None, "activation recomp": "full"}
"""The words of the file and our names of the kinds of recompute."""

CONVENTION = {
    "schedule": "1f1b",
    "per_stage_degrees": True,
    "optimizer": {"gradient_bytes_per_weight_byte": 1, "state_bytes_per_weight_byte": 0},
    "communication": "blocking",
    "routing": "direct",
    "gradient_exchange": "half_duplex",
    "runtime": "none",
}
"""The training set-up that counts what that work counts."""


def read(
    text: bytes,
    *,
    devices: int | None = None,
    memory_bytes: int | str | None = None,
    bandwidth_bytes_per_s: float | None = None,
    time_unit: TimeUnit = "s",
    no_data_parallel: bool = False,
    no_tensor_parallel: bool = False,
    no_recompute: bool = False,
) -> Problem:
    """Read one input file.

    Parameters
    ----------
    text
        The file.
    devices, memory_bytes, bandwidth_bytes_per_s
        Number of devices, memory of each, bytes per second; by default those of the file.
    time_unit
        The unit of the file's times. ``s`` takes them as that work does; its resnet holds milliseconds.
    no_data_parallel, no_tensor_parallel, no_recompute
        Leave one of these out of what may be chosen.

    Raises
    ------
    InvalidInput
        When the text is no such file, or its edges do not fit its nodes.
    """
    if time_unit not in ("s", "ms"):
        raise InvalidInput.at("", "time_unit: 's' or 'ms'", short_value(time_unit), "option")
    file = validate(PiperFile, read_json(text))
    count, microbatches = checked_devices(file.devices if devices is None else devices), file.microbatches
    tensor = [1] if no_tensor_parallel else sorted({t for node in file.nodes for t in node.degrees})
    data = [d for d in range(1, min(count, microbatches) + 1) if microbatches % d == 0]
    scale = 1.0 if time_unit == "s" else 1e-3
    layers = [_layer(node, name, tensor, scale) for node, name in zip(file.nodes, file.names, strict=True)]
    recomputes = any(len(ways) > 1 for node in file.nodes for ways in node.configurations.values())
    fabric = {"bandwidth_bytes_per_s": file.bandwidth if bandwidth_bytes_per_s is None else bandwidth_bytes_per_s}
    memory = int(file.memory) if memory_bytes is None else memory_in_bytes(memory_bytes)
    return validate(
        Problem,
        {
            "model": {"layers": [layers[place] for place in file.order], "tensors": _tensors(file, tensor)},
            "cluster": {
                "devices": {"device": {"memory_bytes": memory}},
                "nodes": [{"name": "node0", "device": "device", "count": count, "fabric": fabric}],
            },
            "training": {
                "num_microbatches": microbatches,
                "tensor_parallel": tensor if len(tensor) > 1 else tensor[0],
                "data_parallel": 1 if no_data_parallel or len(data) == 1 else data,
                **CONVENTION,
            },
            "objective": "bottleneck_time",
            "constraints": {"recompute": "none" if no_recompute or not recomputes else "choose"},
            "search": {"candidates": 1},
        },
    )


def _layer(node: FileNode, name: str, tensor: Sequence[int], scale: float) -> dict[str, object]:
    """Make the layer of a node, with an option for every degree and every kind of recompute that differs."""
    layer: dict[str, object] = {"name": name, "forward_s": 0.0}
    options: list[dict[str, object]] = []
    for degree in tensor:
        by_kind = {KINDS[each.kind]: each for each in node.configurations[str(degree)]}
        plain = _costs(by_kind[None].time, by_kind[None].weights, by_kind[None].a, by_kind[None].b, scale)
        if degree == 1:
            layer |= plain
        else:
            options.append({"tensor_parallel": degree, **plain})
        full = by_kind.get("full")
        if full is not None and full != by_kind[None].model_copy(update={"kind": full.kind}):
            costs = _costs(full.time, full.weights, full.a, full.b, scale)
            del costs["weight_bytes"]  # the same as without recompute; the file's own check sees to it
            options.append({"tensor_parallel": degree, "recompute": "full", **costs})
    return {**layer, "options": options}


def _costs(time: float, weights: float, a: float, b: float, scale: float) -> dict[str, object]:
    """Give the costs of one way to run a node."""
    held = ceil(weights)
    return {
        "backward_s": time * scale,
        "weight_bytes": held,
        "activation_bytes": ceil(a),
        "buffer_bytes": max(0, ceil(b) - 2 * held),
    }


def _tensors(file: PiperFile, tensor: Sequence[int]) -> list[dict[str, object]]:
    """Make a tensor of every edge."""
    place = {node.id: number for number, node in enumerate(file.nodes)}
    tensors = []
    for edge in file.edges:
        source, target = file.nodes[place[edge.source]], file.nodes[place[edge.target]]
        names = file.names[place[edge.source]], file.names[place[edge.target]]
        resharding = []
        for degree in tensor:
            sent = source.configurations[str(degree)][0].sync_backward.get(str(edge.target), 0.0)
            received = target.configurations[str(degree)][0].sync_forward.get(str(edge.source), 0.0)
            if sent or received:
                moved = {"send_bytes": ceil(sent), "receive_bytes": ceil(received)}
                resharding.append({"tensor_parallel": degree, **moved})
        tensors.append(
            {
                "name": f"{edge.source} -> {edge.target}",
                "producer": names[0],
                "consumers": [names[1]],
                "bytes": ceil(edge.cost),
                "resharding": resharding,
            }
        )
    return tensors
