"""What cannot be captured, found before anything runs."""

from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree

from partita.models.pytorch.errors import CannotCapture


def check_captured(module: object, inputs: tuple[Any, ...]) -> None:
    """Refuse what is no plain module, parameters without a shape, sparse gradients, and inputs without elements.

    Raises
    ------
    CannotCapture
        Saying what to give instead.
    """
    if not isinstance(module, torch.nn.Module):
        raise CannotCapture(f"the model is a {type(module).__name__}; give a torch.nn.Module")
    if isinstance(module, torch.jit.ScriptModule):
        raise CannotCapture("the module is a script; give the module that torch.jit made it of")
    if hasattr(module, "_orig_mod"):
        raise CannotCapture("the module is compiled, with costs of its own; give the module as it was before")
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.Embedding | torch.nn.EmbeddingBag) and part.sparse:
            raise CannotCapture(f"{name or 'the module'} has sparse gradients; leave out sparse=True")
    for name, parameter in module.named_parameters():
        if is_lazy(parameter):
            raise CannotCapture(f"{name} is lazy and has no shape yet; run the module once on the inputs first")
    for number, given in enumerate(pytree.tree_leaves(inputs)):
        if isinstance(given, torch.Tensor) and not given.numel():
            shape = tuple(given.shape)
            raise CannotCapture(f"input {number} has no elements (shape {shape}); give those of one microbatch")
