"""What every layer costs at every degree of tensor parallelism and by every kind of recompute that may be chosen."""

from dataclasses import dataclass

import numpy as np

from partita.models.machines import Device
from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.solver.arrays import BoolArray, FloatArray, IntArray
from partita.solver.instance import Instance, build_instance
from partita.solver.replicas import synchronised_bytes
from partita.solver.ways import CHOSEN

NONE = "none"
"""The word for a layer that is not recomputed."""


@dataclass(frozen=True, slots=True)
class Degree:
    """Costs of L layers at one degree of tensor parallelism, on each device; Q kinds of recompute.

    Attributes
    ----------
    time, activation, fixed
        Seconds of both passes of a microbatch, bytes kept for it, bytes whatever is in flight, shape (Q, L).
    has
        Whether a layer can run by that kind, shape (Q, L).
    workspace, exchanged
        Transient bytes, and bytes that replicas exchange, shape (L,).
    instance
        The problem at this degree, not recomputed or by the kind that is given.
    """

    time: FloatArray
    activation: IntArray
    fixed: IntArray
    has: BoolArray
    workspace: IntArray
    exchanged: IntArray
    instance: Instance


@dataclass(frozen=True, slots=True)
class Menu:
    """What there is to choose from.

    Attributes
    ----------
    problem
        The problem.
    tensor, data
        Degrees that the devices allow, ascending.
    kinds
        Kinds of recompute; the first applies to layers for which none of the others is chosen.
    whole
        Whether all layers of a stage run by one kind.
    degrees
        The costs at every degree of ``tensor``.
    """

    problem: Problem
    tensor: tuple[int, ...]
    data: tuple[int, ...]
    kinds: tuple[str, ...]
    whole: bool
    degrees: tuple[Degree, ...]

    @property
    def instance(self) -> Instance:
        """The problem at the smallest degree, for what does not depend on degrees."""
        return self.degrees[0].instance

    @property
    def device(self) -> Device:
        """The kind of device."""
        cluster = self.problem.cluster
        return cluster.devices[cluster.nodes[0].device]

    @property
    def capacity(self) -> int:
        """Bytes that a stage may use on each device, the reserve included."""
        limit, memory = self.problem.limits.peak_memory_bytes, self.device.memory_bytes
        return memory if limit is None else min(memory, limit)

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return self.problem.cluster.num_devices

    @property
    def microbatches(self) -> int:
        """Microbatches of the whole batch."""
        return self.problem.training.microbatches


def read_menu(problem: Problem) -> Menu:
    """Read what may be chosen; the problem is supported."""
    training, devices = problem.training, problem.cluster.num_devices
    asked = problem.constraints.recompute
    kinds: tuple[str, ...] = (asked,)
    if asked in CHOSEN:
        named = {option.recompute for layer in problem.model.layers for option in layer.options if option.recompute}
        kinds = (NONE, *sorted(named))
    tensor = tuple(sorted(t for t in as_choices(training.tensor_parallel) if t <= devices))
    data = tuple(sorted(d for d in as_choices(training.data_parallel) if d <= devices))
    degrees = tuple(_degree(problem, t, kinds) for t in tensor)
    return Menu(problem, tensor, data, kinds, asked == "stage", degrees)


def _degree(problem: Problem, tensor: int, kinds: tuple[str, ...]) -> Degree:
    training = problem.training.model_copy(
        update={"tensor_parallel": tensor, "data_parallel": 1, "per_stage_degrees": False}
    )
    instances = []
    for kind in kinds:
        constraints = problem.constraints.model_copy(update={"recompute": kind})
        instances.append(build_instance(problem.model_copy(update={"training": training, "constraints": constraints})))
    first = instances[0]
    own_fixed, own_exchanged = _named(first)
    layers = [instance.layers for instance in instances]
    exchanged = synchronised_bytes(first, layers[0].weight, layers[0].gradient)
    return Degree(
        time=np.stack([each.forward + each.backward for each in layers]),
        activation=np.stack([each.activation for each in layers]),
        fixed=np.stack([each.weight + each.gradient + each.optimizer + each.buffer + own_fixed for each in layers]),
        has=np.stack(
            [each.recomputed if number else np.ones_like(each.recomputed) for number, each in enumerate(layers)]
        ),
        workspace=layers[0].workspace,
        exchanged=exchanged + own_exchanged,
        instance=first,
    )


def _named(instance: Instance) -> tuple[IntArray, IntArray]:
    """Give the bytes of named weights and buffers by their only layer: those held, and those exchanged."""
    held, exchanged = np.zeros(instance.num_layers, dtype=np.int64), np.zeros(instance.num_layers, dtype=np.int64)
    sizes = synchronised_bytes(instance, instance.weights.bytes, instance.weights.gradient_bytes)
    for storages in (instance.weights, instance.buffers):
        total = storages.total
        for number, layers in enumerate(storages.layers):
            held[layers] += total[number]
            if storages is instance.weights:
                exchanged[layers] += sizes[number]
    return held, exchanged
