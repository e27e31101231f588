"""Measures the layers of a captured module, each as a part that runs alone, and the module as a whole."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

import torch
from torch.utils import _pytree as pytree

from partita.models.pytorch.clock import Clock
from partita.models.pytorch.layers import CapturedLayer
from partita.models.pytorch.passes import Pass
from partita.models.pytorch.policies import FULL, Policy, check_used
from partita.models.pytorch.records import CapturedGraph
from partita.models.pytorch.segments import Segment, cut_out
from partita.models.pytorch.ways import Way, ways_to_recompute
from partita.models.pytorch.workspace import workspace_bytes

WARM_UP = 1
"""Rounds that are not counted, where something is measured."""

NO_POLICIES: Mapping[str, Policy] = {}

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
    """A layer that keeps its inputs and runs again in the backward pass.

    Attributes
    ----------
    forward
        The forward pass, where it takes longer because operations are saved; None where it is as without recompute.
    backward
        The backward pass with the second forward pass.
    workspace_bytes
        Memory beyond what is kept.
    kept, kept_bytes
        What is kept beside the inputs: the storages of values that leave the layer, and the bytes of all others.
    """

    forward: Timing | None
    backward: Timing
    workspace_bytes: int
    kept: frozenset[int] = frozenset()
    kept_bytes: int = 0


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
        The same with recompute, by the options; empty where nothing is kept, or where running twice would change a
        buffer twice.
    """

    forward: Timing
    backward: Timing
    input_gradient: Timing
    workspace_bytes: int
    recomputed: Mapping[str, Recomputed]

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
    again: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    """With recompute, forward and backward."""


def measure(
    graph: CapturedGraph,
    layers: Sequence[CapturedLayer],
    whole: Callable[..., torch.Tensor],
    inputs: tuple[Any, ...],
    *,
    clock: Clock,
    warm_up: int = WARM_UP,
    repetitions: int = 5,
    policies: Mapping[str, Policy] = NO_POLICIES,
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
    policies
        Options of recompute beside ``full``.
    on_round
        Is told after every measurement how many are done.

    Raises
    ------
    UnusedPolicy
        When a policy saves nothing of any layer.
    """
    for parameter in graph.module.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)  # every microbatch but the first adds to gradients
    parts = [_Part(graph, layer, clock, policies) for layer in layers]
    check_used(policies)
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

    def __init__(
        self, graph: CapturedGraph, layer: CapturedLayer, clock: Clock, policies: Mapping[str, Policy]
    ) -> None:
        self._graph = graph
        self._clock = clock
        self._segment: Segment = cut_out(graph, layer.operations, layer.repeated)
        own = [graph.operations[name] for name in (*layer.operations, *layer.repeated)]
        arriving = {graph.values[name].storage for name in self._segment.inputs}
        kept = {number for operation in own for number in operation.saved} - arriving
        self._kept_bytes = sum(graph.storage_bytes[number] for number in kept)
        self._has_inputs = any(graph.values[name].requires_grad for name in self._segment.inputs)
        self._is_trained = any(parameter.requires_grad for parameter in self._segment.module.parameters())
        self._ways: dict[str, Way] = {}
        if kept and not any(operation.written & graph.held_storages for operation in own):
            random = any(operation.random for operation in own)
            self._ways = ways_to_recompute(graph, self._segment, policies, random=random)
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
        for name, way in self._ways.items():
            forward, backward = samples.again.setdefault(name, ([], []))
            single = Pass(self._graph, self._segment, way.run)
            forward.append(self._time(single.forward))
            single.turn()
            backward.append(self._time(single.backward))

    def _time(self, run: Callable[[], None]) -> float:
        return self._clock(run)[1]

    def result(self) -> LayerTiming:
        """Sum up the samples, and measure the memory."""
        return LayerTiming(
            forward=Timing.of(self.samples.forward),
            backward=Timing.of(self.samples.backward),
            input_gradient=Timing.of(self.samples.input_gradient if self._is_trained else self.samples.backward),
            workspace_bytes=workspace_bytes(self._graph, self._segment, self._kept_bytes),
            recomputed={name: self._recomputed(name, *each) for name, each in self.samples.again.items()},
        )

    def _recomputed(self, name: str, forward: list[float], backward: list[float]) -> Recomputed:
        """Sum up one way to recompute."""
        way = self._ways[name]
        return Recomputed(
            forward=None if name == FULL else Timing.of(forward),
            backward=Timing.of(backward),
            workspace_bytes=workspace_bytes(self._graph, self._segment, way.own_bytes, way.run),
            kept=way.kept,
            kept_bytes=way.kept_bytes,
        )
