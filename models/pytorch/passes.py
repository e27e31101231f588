"""Forward and backward passes of a part of a model, one microbatch at a time."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from partita.models.pytorch.policies import Policy
from partita.models.pytorch.records import CapturedGraph
from partita.models.pytorch.segments import Segment

Forward = Callable[..., tuple[torch.Tensor, ...]]


def recomputing(segment: Segment, *, random: bool, policy: Policy | None = None) -> Forward:
    """Give the forward pass of a part that keeps its inputs and runs again in the backward pass.

    ``random`` says whether random state is kept too, so that the second run draws the same numbers; ``policy`` which
    operations are saved, none by default.
    """
    selective = {} if policy is None else {"context_fn": policy.contexts}

    def forward(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept: Any = checkpoint(segment.module, *inputs, use_reentrant=False, preserve_rng_state=random, **selective)
        return tuple(kept)

    return forward


class Pass:
    """One microbatch on its way through a part: ``forward``, ``turn``, then one of the backward passes, once.

    Parameters
    ----------
    graph, segment
        The captured graph and a part of it.
    run
        How the part runs; by default as it is.
    """

    def __init__(self, graph: CapturedGraph, segment: Segment, run: Forward | None = None) -> None:
        self._inputs = segment.example(graph)
        self._run: Forward = segment.module if run is None else run
        self._outputs: tuple[torch.Tensor, ...] = ()
        self._ends: list[Any] = []
        self._gradients: list[torch.Tensor] = []

    def forward(self) -> None:
        """Run forward."""
        self._outputs = self._run(*self._inputs)

    def turn(self) -> bool:
        """Let gradients arrive, ones, and drop the results; tell whether anything needs a gradient."""
        wanted = [output for output in self._outputs if output.requires_grad]
        self._ends = [torch.autograd.graph.get_gradient_edge(output) for output in wanted]
        self._gradients = [torch.ones_like(output) for output in wanted]
        self._outputs = ()
        return bool(wanted)

    def backward(self) -> None:
        """Run the whole backward pass; gradients of parameters are added to those that are there."""
        torch.autograd.backward(self._ends, self._gradients)

    def input_gradient(self) -> None:
        """Compute the gradients of the inputs alone."""
        wanted = [each for each in self._inputs if each.requires_grad]
        torch.autograd.grad(self._ends, wanted, self._gradients, allow_unused=True)
