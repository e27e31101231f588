"""A problem that is ready to plan: a captured model on one node of the kind of device it was measured on."""

import os
from typing import Any

import torch

from partita.models.document import validate
from partita.models.problem import Problem
from partita.models.profile import ModelProfile
from partita.models.pytorch.capturing import Capture
from partita.models.pytorch.profiling import device_name
from partita.models.pytorch.roofline import Roofline
from partita.models.readers.options import checked_devices

BANDWIDTH_BYTES_PER_S = {"cuda": 25e9, "cpu": 1e9}
"""Between two devices of a node where nothing is said: PCI Express 4 with 16 lanes; gloo inside a machine."""


def ready_problem(
    capture: Capture,
    profile: ModelProfile,
    *,
    devices: int = 4,
    schedule: str = "1f1b",
    microbatches: int = 16,
    bandwidth_bytes_per_s: float | None = None,
    roofline: Roofline | None = None,
) -> Problem:
    """Put a profile on one node.

    The memory of a GPU is its own; devices that are CPUs share the machine's. A microbatch has as many samples as the
    first input has rows, and where that input holds whole numbers, such as tokens, its second dimension is the length
    of a sequence. The optimizer is Adam: in one precision where weights have 4 bytes or more, else with master weights.

    Parameters
    ----------
    capture, profile
        The model, and what was measured of it.
    devices, schedule, microbatches
        The number of devices of the node, and how they train.
    bandwidth_bytes_per_s
        Between two devices, in one direction; by default that of the roofline, or ``BANDWIDTH_BYTES_PER_S``.
    roofline
        The device that costs were estimated for, where they were not measured.

    Raises
    ------
    InvalidInput
        When one of the numbers or the schedule is none that a problem can have.
    """
    checked_devices(devices)
    kind, memory, bandwidth = _device(capture.graph.device, devices)
    if roofline is not None:
        kind, memory, bandwidth = roofline.name, roofline.memory_bytes, roofline.link_bytes_per_s
    if bandwidth_bytes_per_s is not None:
        bandwidth = bandwidth_bytes_per_s
    return validate(
        Problem,
        {
            "model": profile,
            "cluster": {
                "devices": {kind: {"memory_bytes": memory}},
                "nodes": [
                    {
                        "name": "node0",
                        "device": kind,
                        "count": devices,
                        "fabric": {"bandwidth_bytes_per_s": bandwidth},
                    }
                ],
            },
            "training": {
                "schedule": schedule,
                "num_microbatches": microbatches,
                "runtime": "torch",
                **_batch(capture),
                **({} if schedule == "forward_only" else {"optimizer": _optimizer(capture)}),
            },
        },
    )


def _device(device: torch.device, devices: int) -> tuple[str, int, float]:
    """Give the name of a kind of device, its memory in bytes, and the bandwidth taken between two of them."""
    if device.type == "cuda":
        memory = int(torch.cuda.get_device_properties(device).total_memory)
    else:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // devices
    return device_name(device), memory, BANDWIDTH_BYTES_PER_S.get(device.type, BANDWIDTH_BYTES_PER_S["cpu"])


def _batch(capture: Capture) -> dict[str, Any]:
    """Give the samples of a microbatch and the length of their sequences, from the first input."""
    shapes = [capture.graph.values[name] for name in capture.graph.inputs]
    if not shapes or not shapes[0].shape:
        return {}
    first = shapes[0]
    is_text = len(first.shape) == 2 and first.dtype.startswith("int")
    return {"microbatch_size": first.shape[0]} | ({"sequence_length": first.shape[1]} if is_text else {})


def _optimizer(capture: Capture) -> str:
    """Name Adam in the precision of the weights."""
    sizes = {parameter.element_size() for parameter in capture.program.parameters() if parameter.requires_grad}
    return "adam_mixed" if sizes and max(sizes) < 4 else "adam"
