"""The measured ways to run the layers: on every kind of device, by every option of recompute that may be chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from partita.models.errors import InvalidInput
from partita.models.layer import COSTS, Layer, LayerOption
from partita.models.problem import Problem
from partita.models.training import Optimizer, single
from partita.solver.arrays import BoolArray, FloatArray, IntArray

MAX_TOTAL_BYTES = 2**61
"""Bytes of a model with all its microbatches in flight may not add up to more: sums stay within 64-bit integers."""

CHOSEN = ("choose", "stage")
"""Words of ``constraints.recompute`` that leave the option to the plan: of every layer, or of every stage."""


@dataclass(frozen=True, slots=True)
class LayerCosts:
    """Costs of the L layers, arrays of one shape whose last axis is the layers.

    ``for_weight_gradient`` is the part of ``activation`` that stays until the weight gradient; ``recomputed`` tells
    which layers run by an option that names a recompute.
    """

    forward: FloatArray
    backward: FloatArray
    weight_gradient: FloatArray
    activation: IntArray
    for_weight_gradient: IntArray
    workspace: IntArray
    weight: IntArray
    gradient: IntArray
    optimizer: IntArray
    buffer: IntArray
    output: IntArray
    recomputed: BoolArray

    def map(self, change: Callable[[Any], Any]) -> "LayerCosts":
        """Give the same costs with every array changed."""
        return LayerCosts(*(change(getattr(self, field.name)) for field in fields(self)))

    @property
    def state(self) -> IntArray:
        """Bytes of weights, gradients and optimizer state."""
        return self.weight + self.gradient + self.optimizer


@dataclass(frozen=True)
class Ways:
    """All ways to run the layers.

    Attributes
    ----------
    kinds
        The Q kinds of device in use.
    options
        The O options of recompute to choose from; None is to run a layer as it stands.
    costs
        Arrays of shape (Q, O, L).
    available
        Which options a layer has, shape (O, L); where recompute is not chosen every layer has the only one.
    by_stage
        Whether all layers of a stage run by one option.
    """

    kinds: tuple[str, ...]
    options: tuple[str | None, ...]
    costs: LayerCosts
    available: BoolArray
    by_stage: bool

    @property
    def single(self) -> bool:
        """Whether there is but one way."""
        return len(self.kinds) == len(self.options) == 1

    @property
    def choosable(self) -> bool:
        """Whether plans choose between options of recompute."""
        return len(self.options) > 1

    @property
    def sizes(self) -> list[IntArray]:
        """All sizes that may depend on the way, shape (Q, O, L) each."""
        costs = self.costs
        return [costs.activation, costs.for_weight_gradient, costs.workspace, costs.weight, costs.state]

    @cached_property
    def least(self) -> LayerCosts:
        """What every layer costs at least, each figure by itself, shape (L,)."""
        if self.single:
            return self.costs.map(lambda table: table[0, 0])
        return self._over_all(np.min)

    @cached_property
    def most(self) -> LayerCosts:
        """What every layer costs at most, each figure by itself, shape (L,)."""
        return self.least if self.single else self._over_all(np.max)

    def _over_all(self, choose: Callable[..., Any]) -> LayerCosts:
        """Choose over all ways that a layer has; options that it lacks cost as much as running it as it stands."""
        return self.costs.map(lambda table: choose(table, axis=(0, 1)))

    def of(self, kind: IntArray, option: IntArray) -> LayerCosts:
        """Give the costs of the layers on these kinds of device and by these options, shape (L,) each."""
        if self.single:
            return self.least
        layer = np.arange(len(kind))
        return self.costs.map(lambda table: table[kind, option, layer])


def find_ways(problem: Problem, factors: Optimizer) -> Ways:
    """Resolve the costs of a problem's layers.

    Raises
    ------
    InvalidInput
        When the output of a layer depends on the kind of device or on recompute.
    """
    cluster, recompute = problem.cluster, problem.constraints.recompute
    kinds = cluster.kinds
    named = tuple(
        dict.fromkeys(each.recompute for layer in problem.model.layers for each in layer.options if each.recompute)
    )
    options: tuple[str | None, ...] = (None if recompute == "none" else recompute,)
    available = np.ones((1, len(problem.model.layers)), dtype=bool)
    if recompute in CHOSEN:
        options = (None, *named)
        has = [
            [option in {each.recompute for each in layer.options} for layer in problem.model.layers] for option in named
        ]
        available = np.array([[True] * len(problem.model.layers), *has], dtype=bool)
        if recompute == "stage":
            available[:] = True
    assert len(problem.scenarios) <= 1, "several scenarios are resolved one by one"
    scenario = problem.scenarios[0].name if problem.scenarios else None
    tensor, samples = single(problem.training.tensor_parallel), single(problem.training.microbatch_size)
    fitting = [
        [
            each
            for each in layer.options
            if each.scenario in (None, scenario)
            and each.tensor_parallel in (None, tensor)
            and each.microbatch_size in (None, samples)
        ]
        for layer in problem.model.layers
    ]
    rows = [
        [
            [
                _resolve(layer, own, kind, option, cluster.devices[kind].speed)
                for layer, own in zip(problem.model.layers, fitting, strict=True)
            ]
            for option in options
        ]
        for kind in kinds
    ]
    costs = _table(rows, factors, problem.training.trains)
    _refuse_other_outputs(problem, costs.output)
    return Ways(kinds, options, costs, available, recompute == "stage")


Resolved = tuple[dict[str, float | int], bool]
"""The costs of a layer by name, and whether it is recomputed."""


def _table(rows: list[list[list[Resolved]]], factors: Optimizer, trains: bool) -> LayerCosts:
    """Put resolved costs, by kind, option and layer, into arrays of shape (Q, O, L)."""

    def times(name: str) -> FloatArray:
        return np.array([[[costs[name] for costs, _ in row] for row in of_kind] for of_kind in rows], dtype=np.float64)

    def sizes(name: str) -> IntArray:
        return np.array([[[costs[name] for costs, _ in row] for row in of_kind] for of_kind in rows], dtype=np.int64)

    weights = sizes("weight_bytes")
    return LayerCosts(
        forward=times("forward_s"),
        backward=times("backward_s") * trains,
        weight_gradient=times("weight_gradient_s") * trains,
        activation=sizes("activation_bytes"),
        for_weight_gradient=sizes("weight_gradient_bytes"),
        workspace=sizes("workspace_bytes"),
        weight=weights,
        gradient=scaled(weights, factors.gradient_bytes_per_weight_byte),
        optimizer=scaled(weights, factors.state_bytes_per_weight_byte),
        buffer=sizes("buffer_bytes"),
        output=sizes("output_bytes"),
        recomputed=np.array(
            [[[recomputed for _, recomputed in row] for row in of_kind] for of_kind in rows], dtype=bool
        ),
    )


def _resolve(layer: Layer, options: Sequence[LayerOption], kind: str, recompute: str | None, speed: float) -> Resolved:
    """Give the layer's costs by name and whether it is recomputed, on a kind of device and by an option of recompute.

    Options are those that apply but for these two. They apply from the least to the most specific; a time is divided by
    the device's speed unless an option that names the device gave it.
    """
    costs: dict[str, float | int | None] = {name: getattr(layer, name) for name in COSTS}
    measured: set[str] = set()
    recomputed = False
    fitting = [option for option in options if option.device in (None, kind) and option.recompute in (None, recompute)]
    for option in sorted(fitting, key=lambda each: sum(selector is not None for selector in each.selectors)):
        recomputed = recomputed or option.recompute is not None
        for name in COSTS:
            value = getattr(option, name)
            if value is not None:
                costs[name] = value
                (measured.add if option.device is not None else measured.discard)(name)
    resolved: dict[str, float | int] = {}
    for name, value in costs.items():
        given = costs["activation_bytes"] if value is None else value  # only weight_gradient_bytes may be left out
        assert given is not None, "every other cost has a value of its own"
        resolved[name] = float(given) / speed if name.endswith("_s") and name not in measured else given
    for part, whole in (("weight_gradient_s", "backward_s"), ("weight_gradient_bytes", "activation_bytes")):
        resolved[part] = min(resolved[part], resolved[whole])  # options that apply together may say otherwise
    return resolved, recomputed


def scaled(sizes: Sequence[int] | IntArray, factor: float) -> IntArray:
    """Give sizes times a factor, to whole bytes; what cannot be counted is refused later by its float value."""
    whole = np.array(sizes, dtype=np.int64)
    exact = whole.astype(np.float64) * factor
    if factor == int(factor) and exact.max(initial=0.0) < MAX_TOTAL_BYTES:
        return whole * int(factor)
    return np.minimum(np.rint(exact), MAX_TOTAL_BYTES).astype(np.int64)


def _refuse_other_outputs(problem: Problem, output: IntArray) -> None:
    """Refuse options that change what a layer sends, which no plan could price by the cut alone."""
    if problem.model.tensors is not None:
        return
    differing = np.flatnonzero((output != output[0, 0]).any(axis=(0, 1)))
    if len(differing):
        layer = int(differing[0])
        detail = (
            f"the output of {problem.model.layers[layer].name!r} is {output[..., layer].min()} bytes one way and "
            f"{output[..., layer].max()} another, by its kind of device or recompute; give it one output_bytes for all"
        )
        raise InvalidInput.at(f"/model/layers/{layer}/options", detail, None, "output_bytes")
