"""Measures the layers of a captured module, each as a part that runs alone, and the module as a whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

import torch
from torch.utils import _pytree as pytree

from partita.models.pytorch.clock import Clock
from partita.models.pytorch.layers import CapturedLayer
from partita.models.pytorch.passes import Forward, Pass, recomputing
from partita.models.pytorch.records import CapturedGraph
from partita.models.pytorch.segments import Segment, cut_out
from partita.models.pytorch.workspace import workspace_bytes

WARM_UP = 1
"""Rounds that are not counted, where something is measured."""

OnRound = Callable[[int, int], None]
"""Is told how many measurements are done, of how many."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The median of repeated measurements, in seconds, and their interquartile range relative to it."""

    seconds: float
    spread: float

    @staticmethod
    def of(samples: Sequence[float]) -> "Timing":
        """Sum up samples; there is no spread of fewer than two."""
        if not samples:
            return Timing(0.0, 0.0)
        middle = median(samples)
        if len(samples) < 2 or middle <= 0:
            return Timing(middle, 0.0)
        low, _, high = quantiles(samples, n=4, method="inclusive")
        return Timing(middle, (high - low) / middle)


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A layer that keeps its inputs alone: seconds of its backward pass with the second forward pass, and workspace."""

    backward: Timing
    workspace_bytes: int


@dataclass(frozen=True, slots=True)
class LayerTiming:
    """What was measured of a layer.

    Attributes
    ----------
    forward, backward, input_gradient
        The passes of one microbatch; ``backward`` computes the gradients of inputs and parameters, ``input_gradient``
        those of the inputs alone.
    workspace_bytes
        Memory beyond what is kept.
    recomputed
        The same with recompute; None where nothing is kept, or where running twice would change a buffer twice.
    """

    forward: Timing
    backward: Timing
    input_gradient: Timing
    workspace_bytes: int
    recomputed: Recomputed | None

    @property
    def weight_gradient_s(self) -> float:
        """The part of the backward pass that can wait: what computing the input gradient alone saves."""
        return min(self.backward.seconds, max(0.0, self.backward.seconds - self.input_gradient.seconds))


@dataclass(frozen=True, slots=True)
class Timings:
    """What was measured: the layers in order, the module as a whole, and how often."""

    layers: tuple[LayerTiming, ...]
    forward: Timing
    backward: Timing
    repetitions: int


@dataclass
class _Samples:
    """Seconds measured so far."""

    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    input_gradient: list[float] = field(default_factory=list)
    recomputed: list[float] = field(default_factory=list)


def measure(
    graph: CapturedGraph,
    layers: Sequence[CapturedLayer],
    whole: Callable[..., torch.Tensor],
    inputs: tuple[Any, ...],
    *,
    clock: Clock,
    warm_up: int = WARM_UP,
    repetitions: int = 5,
    on_round: OnRound = lambda done, total: None,
) -> Timings:
    """Measure layers and the whole in turn, so that what slows one round down slows all of them.

    Buffers, gradients and random state change; ``preserved`` puts them back.

    Parameters
    ----------
    graph, layers
        As captured.
    whole, inputs
        The module with its loss, and its inputs.
    clock
        Tells how long a pass takes.
    warm_up
        Rounds that are not counted.
    repetitions
        How often each is measured; the median counts.
    on_round
        Is told after every measurement how many are done.
    """
    for parameter in graph.module.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)  # every microbatch but the first adds to gradients
    parts = [_Part(graph, layer, clock) for layer in layers]
    together = _Samples()
    total, done = (warm_up + repetitions) * (len(parts) + 1) + len(parts), 0
    for turn in range(warm_up + repetitions):
        if turn == warm_up:
            together = _Samples()
            for part in parts:
                part.samples = _Samples()
        for _ in range(2 if warm_up else 1):  # as often as the forward pass of a layer
            _sample_whole(whole, inputs, clock, together)
        done += 1
        for part in parts:
            part.sample()
            done += 1
            on_round(done, total)
    measured = []
    for part in parts:
        measured.append(part.result())
        done += 1
        on_round(done, total)
    return Timings(tuple(measured), Timing.of(together.forward), Timing.of(together.backward), repetitions)


def _sample_whole(whole: Callable[..., torch.Tensor], inputs: tuple[Any, ...], clock: Clock, samples: _Samples) -> None:
    """Time one microbatch of the whole module."""
    given = pytree.tree_map_only(torch.Tensor, lambda each: each.detach().clone(), inputs)
    loss, seconds = clock(lambda: whole(*given))
    samples.forward.append(seconds)
    if loss.requires_grad:
        samples.backward.append(clock(loss.backward)[1])


class _Part:
    """A layer being measured."""

    def __init__(self, graph: CapturedGraph, layer: CapturedLayer, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock
        self._segment: Segment = cut_out(graph, layer.operations, layer.repeated)
        own = [graph.operations[name] for name in (*layer.operations, *layer.repeated)]
        arriving = {graph.values[name].storage for name in self._segment.inputs}
        kept = {number for operation in own for number in operation.saved} - arriving
        self._kept_bytes = sum(graph.storage_bytes[number] for number in kept)
        self._has_inputs = any(graph.values[name].requires_grad for name in self._segment.inputs)
        self._is_trained = any(parameter.requires_grad for parameter in self._segment.module.parameters())
        self._recomputed: Forward | None = None
        if kept and not any(operation.written & graph.held_storages for operation in own):
            self._recomputed = recomputing(self._segment, random=any(operation.random for operation in own))
        self.samples = _Samples()

    def sample(self) -> None:
        """Measure one microbatch of each kind."""
        samples = self.samples
        single = Pass(self._graph, self._segment)
        samples.forward.append(self._time(single.forward))
        if not single.turn():
            return
        samples.backward.append(self._time(single.backward))
        if self._has_inputs and self._is_trained:
            single = Pass(self._graph, self._segment)
            samples.forward.append(self._time(single.forward))
            single.turn()
            samples.input_gradient.append(self._time(single.input_gradient))
        if self._recomputed is not None:
            single = Pass(self._graph, self._segment, self._recomputed)
            single.forward()
            single.turn()
            samples.recomputed.append(self._time(single.backward))

    def _time(self, run: Callable[[], None]) -> float:
        return self._clock(run)[1]

    def result(self) -> LayerTiming:
        """Sum up the samples, and measure the memory."""
        recomputed = None
        if self.samples.recomputed and self._recomputed is not None:
            size = workspace_bytes(self._graph, self._segment, 0, self._recomputed)
            recomputed = Recomputed(Timing.of(self.samples.recomputed), size)
        return LayerTiming(
            forward=Timing.of(self.samples.forward),
            backward=Timing.of(self.samples.backward),
            input_gradient=Timing.of(self.samples.input_gradient if self._is_trained else self.samples.backward),
            workspace_bytes=workspace_bytes(self._graph, self._segment, self._kept_bytes),
            recomputed=recomputed,
        )
