"""A problem as arrays: what every layer costs in its context, what connects layers, and where stages can go.

Layers, tensors and storages are numbered in the order of the problem. Times are seconds, sizes bytes; nothing is
rounded here. Shapes are given as L layers, T tensors, Q storages.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt

from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.models.schedule import Schedule
from partita.models.tensor import Buffer, SharedActivation
from partita.models.training import Optimizer, single
from partita.solver.arrays import IntArray
from partita.solver.event_graph import EventGraph
from partita.solver.topology import Topology
from partita.solver.ways import MAX_TOTAL_BYTES, LayerCosts, Ways, find_ways, scaled


@dataclass(frozen=True)
class Storages:
    """Bytes that several layers hold together, each counted once on every stage that holds one of its layers.

    Attributes
    ----------
    names
        Of the Q storages; empty for shared activations.
    bytes, gradient_bytes, optimizer_bytes
        Shape (Q,).
    layers
        The layers of each, ascending.
    """

    names: tuple[str, ...]
    bytes: IntArray
    gradient_bytes: IntArray
    optimizer_bytes: IntArray
    layers: tuple[IntArray, ...]

    @property
    def total(self) -> IntArray:
        """Bytes of each with gradients and optimizer state, shape (Q,)."""
        return self.bytes + self.gradient_bytes + self.optimizer_bytes

    @cached_property
    def number(self) -> IntArray:
        """The storage of every entry of all ``layers`` in one row."""
        return np.repeat(np.arange(len(self.layers)), [len(each) for each in self.layers])


@dataclass(frozen=True, slots=True)
class Edges:
    """Tensors between layers.

    Attributes
    ----------
    names
        Of the T tensors.
    producer
        Shape (T,).
    consumers
        The consumers of each.
    forward_bytes, backward_bytes
        Bytes moved in either pass, shape (T,); a forward tensor's gradient counts as backward.
    ordered
        Whether the tensor orders its layers (it belongs to the forward pass), shape (T,).
    """

    names: tuple[str, ...]
    producer: IntArray
    consumers: tuple[IntArray, ...]
    forward_bytes: IntArray
    backward_bytes: IntArray
    ordered: npt.NDArray[np.bool_]

    @property
    def sizes(self) -> tuple[IntArray, IntArray]:
        """Bytes moved in either pass, shape (T,) each."""
        return self.forward_bytes, self.backward_bytes

    @property
    def total(self) -> IntArray:
        """Bytes moved in both passes together, shape (T,)."""
        return self.forward_bytes + self.backward_bytes


@dataclass(frozen=True)
class Instance:
    """A problem with one schedule in arrays, what of its training set-up the costs depend on, and its event graphs.

    Where a problem has several scenarios, sizes are those of the scenario that keeps most bytes; ``cases`` has them
    all, each a problem with that scenario alone.
    """

    problem: Problem
    ways: Ways
    edges: Edges
    weights: Storages
    buffers: Storages
    shared: Storages
    topology: Topology
    factors: Optimizer
    several: tuple["Instance", ...] = ()
    graphs: dict[int, EventGraph] = field(default_factory=dict, compare=False)

    @property
    def cases(self) -> "tuple[Instance, ...]":
        """The problem in each of its scenarios; itself, where there are not several."""
        return self.several or (self,)

    @property
    def worst(self) -> bool:
        """Whether the longest of several scenarios counts, rather than their mean."""
        return bool(self.several) and self.problem.over_scenarios == "worst"

    @property
    def counting(self) -> tuple[float, ...]:
        """How often the times of every scenario count: by their shares in a mean, or once."""
        if not self.several or self.worst:
            return (1.0,) * len(self.cases)
        return tuple(scenario.share for scenario in self.problem.scenarios)

    @cached_property
    def filling(self) -> list[int]:
        """The scenarios of which no other one takes at least as many bytes in everything."""
        sizes = [
            np.concatenate([each.ravel() for each in (*case.ways.sizes, *case.edges.sizes, case.shared.bytes)])
            for case in self.cases
        ]
        return [
            number
            for number, own in enumerate(sizes)
            if not any(
                (other >= own).all() and (place < number or (other > own).any())
                for place, other in enumerate(sizes)
                if place != number
            )
        ]

    @property
    def layers(self) -> LayerCosts:
        """What every layer costs at least; its costs, where there is but one way to run it."""
        return self.ways.least

    @property
    def num_layers(self) -> int:
        """How many layers there are."""
        return len(self.layers.forward)

    @property
    def schedule(self) -> Schedule:
        """The schedule."""
        (schedule,) = self.problem.training.schedules
        return schedule

    def num_ranks(self, num_stages: int) -> int:
        """Give how many ranks run so many stages."""
        schedule = self.schedule
        return -(-num_stages // schedule.chunks) if schedule.orders is None else len(schedule.orders)

    @property
    def trains(self) -> bool:
        """Whether there is a backward pass."""
        return self.schedule.trains

    @property
    def microbatches(self) -> int:
        """Microbatches of an iteration."""
        return self.problem.training.microbatches

    @property
    def blocking(self) -> bool:
        """Whether a transfer occupies both stages."""
        return self.problem.training.communication == "blocking"

    @property
    def routing(self) -> str:
        """How a tensor reaches a stage: relay, direct or host."""
        return self.problem.training.routing

    @property
    def receive_buffers(self) -> int:
        """Receive buffers for every tensor that arrives."""
        return self.microbatches if self.problem.training.runtime == "torch" else 1

    @property
    def replicas(self) -> int:
        """Data-parallel degree."""
        return single(self.problem.training.data_parallel)

    @property
    def replicas_per_node(self) -> int:
        """Replicas of a stage that share a node."""
        return self.problem.training.replicas_together

    @property
    def nodes_per_stage(self) -> int:
        """Over how many nodes the replicas of a stage are spread."""
        return self.replicas // self.replicas_per_node

    @property
    def samples(self) -> int:
        """Samples of an iteration, over all data-parallel replicas."""
        return self.microbatches * single(self.problem.training.microbatch_size) * self.replicas

    @property
    def tokens(self) -> float | int:
        """Tokens of an iteration, over all data-parallel replicas: the mean over the scenarios."""
        if self.several:
            shares = [scenario.share for scenario in self.problem.scenarios]
            return fsum(share * case.tokens for share, case in zip(shares, self.several, strict=True))
        return self.samples * self.problem.training.sequence_length

    @property
    def width(self) -> int:
        """Devices of a stage: all its tensor-parallel devices and replicas."""
        return single(self.problem.training.tensor_parallel) * self.replicas

    @cached_property
    def capacities(self) -> IntArray:
        """Bytes that a stage may use on each device of every kind, the reserve included, shape (Q,)."""
        limit = self.problem.limits.peak_memory_bytes
        memory = np.array([device.memory_bytes for device in self.topology.devices_by_kind], dtype=np.int64)
        return memory if limit is None else np.minimum(memory, limit)

    def fits(self, location: IntArray, needed: IntArray) -> bool:
        """Tell whether ranks on these locations have room for so many bytes, shape (R,) each."""
        return bool((needed <= self.capacities[self.topology.kind_of[location]]).all())

    @property
    def roomiest(self) -> int:
        """The kind of device with the most room, the reserve left out, of those that a stage can be on."""
        present = np.unique(self.topology.kind_of)
        room = self.capacities - self.topology.reserves
        return int(present[np.argmax(room[present])]) if len(present) else 0


def build_instance(
    problem: Problem, only: Collection[tuple[str, ...]] | None = None, most_stages: int | None = None
) -> Instance:
    """Resolve a supported problem into arrays.

    Parameters
    ----------
    problem
        What to resolve, in one configuration of training.
    only
        The sets of nodes to keep; None for all.
    most_stages
        The most stages that are placed; None for as many as the problem allows.

    Raises
    ------
    InvalidInput
        When the bytes of the model add up to more than can be counted.
    """
    topology = _topology(problem, only, most_stages)
    if not problem.scenarios:
        return _build(problem, topology)
    cases = [_build(problem.in_scenario(scenario), topology) for scenario in problem.scenarios]
    largest = max(cases, key=lambda case: int(case.ways.most.activation.sum() + case.shared.bytes.sum()))
    if len(cases) == 1:
        return largest
    _refuse_other_weights(cases)
    graphs: dict[int, EventGraph] = {}
    several = tuple(replace(case, graphs=graphs) for case in cases)
    return replace(largest, problem=problem, several=several, graphs={})


def _topology(problem: Problem, only: Collection[tuple[str, ...]] | None, most_stages: int | None) -> Topology:
    """Give where stages can go."""
    training, together = problem.training, problem.training.replicas_together
    return Topology(
        problem.cluster,
        single(training.tensor_parallel) * together,
        most_stages or problem.most_stages(),
        only,
        inside=training.routing == "host" or (training.trains and together > 1),
        span=single(training.data_parallel) // together,
    )


def _build(problem: Problem, topology: Topology) -> Instance:
    """Resolve a problem with at most one scenario."""
    training = problem.training
    factors = training.optimizer_factors()
    ways = find_ways(problem, factors)
    index = problem.model.layer_index()
    weights = _weights(problem, factors, index)
    sharing = single(training.data_parallel) if training.shard_optimizer else 1
    instance = Instance(
        problem=problem,
        ways=replace(ways, costs=replace(ways.costs, optimizer=-(-ways.costs.optimizer // sharing))),
        edges=_edges(problem, ways.least, index),
        weights=replace(weights, optimizer_bytes=-(-weights.optimizer_bytes // sharing)),
        buffers=_plain(problem.model.buffers, [item.name for item in problem.model.buffers], index),
        shared=_plain(problem.model.shared_activations, [], index),
        topology=topology,
        factors=factors,
    )
    refuse_uncountable(instance)
    return instance


def _edges(problem: Problem, layers: LayerCosts, index: dict[str, int]) -> Edges:
    trains = problem.training.trains
    if problem.model.tensors is None:
        count = len(index) - 1
        names = tuple(layer.name for layer in problem.model.layers[:-1])
        sizes = layers.output[:-1]
        chain = np.arange(count, dtype=np.int64)
        followers = tuple(chain[i : i + 1] + 1 for i in range(count))
        return Edges(names, chain, followers, sizes, sizes * trains, np.ones(count, dtype=bool))
    kept = [tensor for tensor in problem.model.tensors if trains or tensor.direction == "forward"]
    forward = [tensor.direction == "forward" for tensor in kept]
    sent = [tensor.bytes for tensor in kept]
    back = [tensor.backward_bytes if ordered else tensor.bytes for tensor, ordered in zip(kept, forward, strict=True)]
    return Edges(
        names=tuple(tensor.name for tensor in kept),
        producer=np.array([index[tensor.producer] for tensor in kept], dtype=np.int64),
        consumers=tuple(np.array(sorted(index[name] for name in tensor.consumers), dtype=np.int64) for tensor in kept),
        forward_bytes=np.array(sent, dtype=np.int64) * np.array(forward, dtype=np.int64),
        backward_bytes=np.array(back, dtype=np.int64) * trains,
        ordered=np.array(forward, dtype=bool),
    )


def _weights(problem: Problem, factors: Optimizer, index: dict[str, int]) -> Storages:
    sizes = [weight.bytes for weight in problem.model.weights]
    return Storages(
        names=tuple(weight.name for weight in problem.model.weights),
        bytes=np.array(sizes, dtype=np.int64),
        gradient_bytes=scaled(sizes, factors.gradient_bytes_per_weight_byte),
        optimizer_bytes=scaled(sizes, factors.state_bytes_per_weight_byte),
        layers=tuple(_positions(weight.layers, index) for weight in problem.model.weights),
    )


def _plain(items: Sequence[Buffer | SharedActivation], names: list[str], index: dict[str, int]) -> Storages:
    """Make the storages that carry neither gradient nor optimizer state."""
    sizes = np.array([item.bytes for item in items], dtype=np.int64)
    zero = np.zeros_like(sizes)
    layers = tuple(_positions(item.layers, index) for item in items)
    return Storages(tuple(names), sizes, zero, zero, layers)


def _positions(names: Sequence[str], index: dict[str, int]) -> IntArray:
    return np.array(sorted(index[name] for name in names), dtype=np.int64)


def _refuse_other_weights(cases: Sequence[Instance]) -> None:
    """Refuse weights that depend on the scenario: a device holds but one copy of them."""
    first = cases[0].ways.costs.weight
    for case in cases[1:]:
        differing = np.flatnonzero((case.ways.costs.weight != first).any(axis=(0, 1)))
        if len(differing):
            layer, name = int(differing[0]), case.problem.scenarios[0].name
            detail = (
                f"the weights of {case.problem.model.layers[layer].name!r} have other bytes in scenario {name!r}; give "
                "weight_bytes in the layer, or in options that name no scenario"
            )
            raise InvalidInput.at(f"/model/layers/{layer}/options", detail, None, "weight_bytes")


def refuse_uncountable(instance: Instance) -> None:
    """Refuse a model whose bytes, with every microbatch in flight, could overflow a 64-bit sum."""
    layers, in_flight = instance.ways.most, float(instance.microbatches)
    once: list[npt.NDArray[Any]] = [layers.weight, layers.gradient, layers.optimizer, layers.workspace, layers.buffer]
    for storages in (instance.weights, instance.buffers):
        counts = np.array([len(held) for held in storages.layers], dtype=np.float64)
        once += [(storages.bytes + 0.0 + storages.gradient_bytes + storages.optimizer_bytes) * counts]
    counts = np.array([len(held) for held in instance.shared.layers], dtype=np.float64)
    kept = float(layers.activation.sum(dtype=np.float64) + (instance.shared.bytes * counts).sum(dtype=np.float64))
    moved = float((instance.edges.forward_bytes + 0.0 + instance.edges.backward_bytes).sum()) * in_flight
    total = sum(float(sizes.sum(dtype=np.float64)) for sizes in once) + kept * in_flight + moved
    if total > MAX_TOTAL_BYTES:
        detail = (
            f"the bytes of the model, its optimizer and {instance.microbatches} microbatches add up to {total:.3g}; "
            f"at most {MAX_TOTAL_BYTES} can be counted; check the units"
        )
        raise InvalidInput.at("/model", detail)
