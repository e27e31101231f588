"""Estimates how long operations take on a device that is not here: by their operation counts and the bytes they move.

An operation takes as long as the slower of its arithmetic and its memory traffic would, each at a part of what the
device's data sheet says. Run on the meta device this needs neither the device nor the memory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from partita.models.pytorch.clock import Result

COMPUTE_EFFICIENCY = 0.6
"""The part of the peak that large matrix products reach."""
MEMORY_EFFICIENCY = 0.8
"""The part of the memory's bandwidth that elementwise kernels reach."""
LAUNCH_S = 4e-6
"""The least time of a kernel, in seconds."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """A kind of device as its data sheet has it.

    Attributes
    ----------
    name
        Of the kind.
    flops_per_s
        Dense floating-point operations per second by type; others count as float32.
    memory_bytes_per_s, memory_bytes
        Of its memory.
    link_bytes_per_s
        To another device of the same node, in one direction.
    """

    name: str
    flops_per_s: Mapping[str, float]
    memory_bytes_per_s: float
    memory_bytes: int
    link_bytes_per_s: float

    def seconds(self, flops: float, moved_bytes: float, dtype: torch.dtype) -> float:
        """Give the seconds of one kernel."""
        peak = self.flops_per_s.get(str(dtype).removeprefix("torch."), self.flops_per_s["float32"])
        arithmetic = flops / (peak * COMPUTE_EFFICIENCY)
        traffic = moved_bytes / (self.memory_bytes_per_s * MEMORY_EFFICIENCY)
        return max(arithmetic, traffic, LAUNCH_S)


def _kind(name: str, half: float, single: float, bandwidth: float, gigabytes: int, link: float) -> Roofline:
    flops = {"float16": half, "bfloat16": half, "float32": single}
    return Roofline(name, flops, bandwidth, gigabytes * 10**9, link)


DEVICES: Mapping[str, Roofline] = {
    kind.name: kind
    for kind in (
        _kind("a100", 312e12, 19.5e12, 2.039e12, 80, 300e9),
        _kind("h100", 989e12, 67e12, 3.35e12, 80, 450e9),
        _kind("h200", 989e12, 67e12, 4.8e12, 141, 450e9),
    )
}
"""The devices whose data sheets are known, with NVLink."""


class _Kernels(TorchDispatchMode):
    """Adds up the seconds of the kernels that run."""

    def __init__(self, roofline: Roofline) -> None:
        super().__init__()
        self.seconds = 0.0
        self._roofline = roofline

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        read, made = _tensors((args, kwargs)), _tensors(result)
        there = {tensor.untyped_storage()._cdata for tensor in read}
        is_view = not func._schema.is_mutable and all(each.untyped_storage()._cdata in there for each in made)
        if not is_view:
            count = flop_registry.get(func._overloadpacket)
            flops = count(*args, **kwargs, out_val=result) if count else 0
            moved = sum(_bytes(tensor) for tensor in (*read, *made))
            self.seconds += self._roofline.seconds(flops, moved, made[0].dtype if made else torch.float32)
        return result


def estimated(roofline: Roofline, run: Callable[[], Result]) -> tuple[Result, float]:
    """Run something on the meta device; give its result and how many seconds it would take on a device.

    Parameters
    ----------
    roofline
        The device.
    run
        What runs.
    """
    with _Kernels(roofline) as kernels:
        result = run()
    return result, kernels.seconds


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> int:
    """Give the bytes that a tensor occupies; elements that are repeated by a stride of 0 are read once."""
    return min(int(tensor.numel() * tensor.element_size()), int(tensor.untyped_storage().nbytes()))
