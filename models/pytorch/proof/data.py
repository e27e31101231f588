"""Data of the microbatches: the numbers of the example inputs, each time in another order."""

import zlib
from typing import Any

import torch
from torch.utils import _pytree as pytree


def microbatch(inputs: tuple[Any, ...], step: int, number: int, seed: int = 0) -> tuple[Any, ...]:
    """Make the inputs of one microbatch; the same for the same arguments.

    Tensors of numbers keep their shapes, types and values, in another order, so that indices and probabilities stay
    what they are. Masks stay as they are: tensors of truth values, and those that hold an infinity or NaN.

    Parameters
    ----------
    inputs
        The example.
    step, number
        Of the iteration and of the microbatch.
    seed
        Of all data.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}:{step}:{number}".encode()))

    def shuffled(given: torch.Tensor) -> torch.Tensor:
        copy = given.detach().clone()
        if given.dtype == torch.bool or (given.is_floating_point() and not bool(given.isfinite().all())):
            return copy
        order = torch.randperm(given.numel(), generator=generator)
        return copy.copy_(given.detach().reshape(-1)[order].reshape(given.shape))

    made: tuple[Any, ...] = pytree.tree_map_only(torch.Tensor, shuffled, inputs)
    return made


def tensors_of(inputs: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    """Give the tensors among inputs, in the order in which the captured graph takes them."""
    return tuple(each for each in pytree.tree_leaves(inputs) if isinstance(each, torch.Tensor))
