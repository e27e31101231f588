"""How much memory a part of a model needs while it runs, beyond what it keeps."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from partita.models.pytorch.passes import Forward, Pass
from partita.models.pytorch.records import CapturedGraph
from partita.models.pytorch.segments import Segment


class Peak(Protocol):
    """The most bytes that were in use at once since the start, beyond those in use then."""

    @property
    def bytes(self) -> int:
        """Give them."""
        ...


class _Counted(TorchDispatchMode):
    """Counts the storages that operations make, from when they are made until they are gone."""

    def __init__(self, there: list[torch.Tensor]) -> None:
        super().__init__()
        self._now = self.bytes = 0
        self._known: dict[int, weakref.ref[Any]] = {}
        for tensor in there:
            self._note(tensor.untyped_storage(), 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                if id(storage) not in self._known:
                    self._note(storage, storage.nbytes())
        self.bytes = max(self.bytes, self._now)
        return result

    def _note(self, storage: torch.UntypedStorage, size: int) -> None:
        """Count a storage until it is gone."""
        key = id(storage)
        self._now += size

        def forget(_: object) -> None:
            self._known.pop(key, None)
            self._now -= size

        self._known[key] = weakref.ref(storage, forget)


class _Allocated:
    """What CUDA's allocator counts."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        self._before = torch.cuda.memory_allocated(device)

    @property
    def bytes(self) -> int:
        torch.cuda.synchronize(self._device)
        return int(torch.cuda.max_memory_allocated(self._device) - self._before)


@contextmanager
def watching_memory(device: torch.device, there: list[torch.Tensor]) -> Iterator[Peak]:
    """Watch the memory of a device; ``there`` are the tensors that exist already."""
    if device.type == "cuda":
        yield _Allocated(device)
    else:
        with _Counted(there) as counted:
            yield counted


def workspace_bytes(graph: CapturedGraph, segment: Segment, kept_bytes: int, run: Forward | None = None) -> int:
    """Give the bytes that a part needs at most, in either pass, beyond what it keeps for the backward pass.

    They include its result and, in the backward pass, the gradients that arrive and those it makes, but for the
    gradients of parameters that are added up.

    Parameters
    ----------
    graph, segment
        The captured graph and the part.
    kept_bytes
        What the part keeps from forward to backward in storages of its own, which is not counted here.
    run
        How the part runs; by default as it is.
    """
    whole = Pass(graph, segment, run)
    arriving = [graph.tensors[name] for name in segment.inputs]
    held = [*segment.module.parameters(), *segment.module.buffers(), *arriving]
    there = [*held, *(each.grad for each in segment.module.parameters() if each.grad is not None)]
    with watching_memory(graph.device, there) as peak:
        whole.forward()
        if whole.turn():
            whole.backward()
        return max(0, peak.bytes - kept_bytes)
