"""What cannot be captured, found before anything runs."""

from itertools import pairwise
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree

from partita.models.pytorch.errors import CannotCapture
from partita.models.pytorch.exporting import WithLoss, user_name


def check_captured(module: object, inputs: tuple[Any, ...]) -> None:
    """Refuse what is no plain module, parameters without a shape or memory of their own, and what else cannot be split.

    That is sparse gradients, and inputs without elements.

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
    _check_memory(module)
    for number, given in enumerate(pytree.tree_leaves(inputs)):
        if isinstance(given, torch.Tensor) and not given.numel():
            shape = tuple(given.shape)
            raise CannotCapture(f"input {number} has no elements (shape {shape}); give those of one microbatch")


def check_names(program: WithLoss) -> None:
    """Refuse a loss with a parameter or buffer that is called as one of the module is.

    Raises
    ------
    CannotCapture
        Naming it.
    """
    seen: set[str] = set()
    for target, _ in (*program.named_parameters(), *program.named_buffers()):
        name = user_name(target)
        if name in seen:
            raise CannotCapture(f"the module and its loss both have {name!r}; call the part of the module otherwise")
        seen.add(name)


def check_buffers(program: WithLoss, inputs: tuple[Any, ...]) -> None:
    """Refuse a forward pass that puts another tensor in the place of a buffer: torch.export leaves that out.

    One that only makes a table anew, of the same values or for other shapes, is none. The module runs once.

    Raises
    ------
    CannotCapture
        Naming the buffer.
    """
    owners = [(path, owner, name) for path, owner in program.named_modules() for name in owner._buffers]
    before = [
        None if (buffer := owner._buffers[name]) is None else (buffer, buffer.clone()) for _, owner, name in owners
    ]
    with torch.no_grad():
        program(*pytree.tree_map_only(torch.Tensor, torch.clone, inputs))
    for (path, owner, name), known in zip(owners, before, strict=True):
        now = owner._buffers[name]
        if known is None or now is None or now is known[0] or now.shape != known[1].shape:
            continue
        if not torch.equal(torch.nan_to_num(now), torch.nan_to_num(known[1])):
            buffer = user_name(f"{path}.{name}")
            raise CannotCapture(
                f"forward puts another tensor in the place of the buffer {buffer}, which torch.export leaves out; "
                f"write to the one that is there, as in self.{name}.copy_(...)"
            )


def _check_memory(module: torch.nn.Module) -> None:
    """Refuse parameters that overlap in memory without being one: on two stages each would be a copy of its own."""
    parts: dict[int, list[tuple[int, int, str, bool]]] = {}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if tensor.layout == torch.strided and tensor.numel():
            reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
            start, width = tensor.storage_offset(), tensor.element_size()
            part = (start * width, (start + reach) * width, name, isinstance(tensor, torch.nn.Parameter))
            parts.setdefault(tensor.untyped_storage()._cdata, []).append(part)
    for group in parts.values():
        for (_, end, one, first), (start, _, other, second) in pairwise(sorted(group)):
            if start < end and (first or second):
                raise CannotCapture(
                    f"{one} and {other} share memory but are not one parameter; assign one to the other to tie them, "
                    "or give each its own by parameter.data = parameter.data.clone()"
                )
