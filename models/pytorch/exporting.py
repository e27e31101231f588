"""Turns a module and its loss into a graph of operations, by torch.export."""

import inspect
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree

from partita.models.pytorch.errors import CannotCapture, first_line, place_in_stack, place_in_user_code

Loss = Callable[[Any], torch.Tensor]
"""Takes the outputs of the module and gives a scalar."""

MODULE = "module"
"""The name of the user's module in the one that is exported."""
LOSS = "loss"
"""The name of the loss in it, where it is a module; also the name of the layer that holds its operations."""

KEYWORDS = "; inputs are positional: wrap the module in one whose forward takes them in order"
"""What to do about keyword arguments."""

STATIC = (
    "a graph cannot be split where its course depends on data; replace the branch by torch.where or a mask, or take it "
    "out of forward"
)


def mean_square(outputs: Any) -> torch.Tensor:
    """Give the mean of the squares of all floating outputs, complex ones by their parts: the loss where none is given.

    Raises
    ------
    CannotCapture
        When no output is a floating or complex tensor.
    """
    tensors = [leaf for leaf in pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
    real = [torch.view_as_real(leaf) if leaf.is_complex() else leaf for leaf in tensors]
    floating = [leaf for leaf in real if leaf.is_floating_point()]
    if not floating:
        raise CannotCapture("the module has no floating output to make a loss of; give loss(outputs) -> scalar")
    squares = torch.stack([output.float().square().sum() for output in floating]).sum()
    return squares / sum(output.numel() for output in floating)


class WithLoss(torch.nn.Module):
    """A module followed by its loss."""

    def __init__(self, module: torch.nn.Module, loss: Loss | None) -> None:
        super().__init__()
        self.module = module
        self.loss = mean_square if loss is None else loss
        self.training = module.training  # alone; the modules inside stay as they are

    def forward(self, *inputs: Any) -> torch.Tensor:
        """Give the loss of one microbatch."""
        result = self.loss(self.module(*inputs))
        if not isinstance(result, torch.Tensor) or result.numel() != 1:
            got = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
            raise CannotCapture(f"the loss gives {got}; it must give a tensor with one element, such as a mean")
        return result


def user_name(target: str) -> str:
    """Give the name that a parameter, buffer or module has for the user."""
    return target.removeprefix(MODULE).removeprefix(".") if target.partition(".")[0] == MODULE else target


def export(program: WithLoss, inputs: tuple[Any, ...]) -> torch.fx.GraphModule:
    """Give the graph of a module with its loss; parameters and buffers are the module's own.

    Raises
    ------
    CannotCapture
        When control flow or a shape depends on data, or torch.export refuses it for another reason; with the place in
        the user's code.
    """
    said = io.StringIO()  # torch writes graphs there when it fails
    try:
        with _quiet(), redirect_stderr(said):
            exported = torch.export.export(program, inputs, strict=False)
        sys.stderr.write(said.getvalue())
    except CannotCapture:
        raise
    except Exception as error:  # torch.export has no common base of its refusals
        raise _refusal(error) from error
    graph = exported.module(check_guards=False)
    for node in graph.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) or (
            isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape)
        ):
            place = place_in_stack(node.meta.get("stack_trace") or "", library())
            raise CannotCapture(f"{place or node.name}: the value or shape of {node.target} depends on data; {STATIC}")
    return graph


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging graphs and from warnings about its own modules: what matters is in the error."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def library() -> str:
    """Give the folder of torch."""
    return str(Path(inspect.getfile(torch)).parent)


def _refusal(error: Exception) -> CannotCapture:
    """Say where and why torch.export refused."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    places = [place for each in causes if (place := place_in_user_code(each.__traceback__, library()))]
    where = f"{places[0]}: " if places else ""
    if any(isinstance(each, GuardOnDataDependentSymNode) for each in causes):
        return CannotCapture(f"{where}control flow depends on the values of a tensor; {STATIC}")
    reason = first_line(error)
    hint = KEYWORDS if isinstance(error, TypeError) and "keyword" in reason else ""
    return CannotCapture(f"{where}torch.export refuses it: {type(error).__name__}: {reason}{hint}")
