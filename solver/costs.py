"""What any assignment of layers to stages and of stages to locations costs: the one place where it is computed.

The formulas are those that README.md names under what is modeled.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from partita.solver.arrays import BoolArray, IntArray, Times
from partita.solver.event_graph import EventGraph
from partita.solver.figures import Figures
from partita.solver.instance import Instance, Storages


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """A plan, layer by layer.

    Attributes
    ----------
    stage
        The stage of every layer, shape (L,).
    location
        The location of every rank, shape (R,).
    option
        The option of recompute of every layer, a number among those to choose from, shape (L,).
    """

    stage: IntArray
    location: IntArray
    option: IntArray

    @property
    def num_stages(self) -> int:
        """S."""
        return int(self.stage.max()) + 1

    def kind(self, instance: Instance, rank_of: IntArray) -> IntArray:
        """Give the kind of device that every layer runs on, shape (L,); ``rank_of`` is the rank of every stage."""
        kind: IntArray = instance.topology.kind_of[self.location[rank_of[self.stage]]]
        return kind


@dataclass(frozen=True, slots=True)
class Traffic:
    """What tensors are carried where, for one microbatch.

    ``tensor[x]`` travels across ``pair[x]`` in the pass that ``backward[x]`` tells.
    """

    tensor: IntArray
    pair: IntArray
    backward: IntArray


@dataclass(frozen=True, slots=True)
class Transfers:
    """Bytes and times between stages for one microbatch.

    Attributes
    ----------
    traffic
        What is carried where.
    path_class
        Class of the path of every pair, shape (P,).
    forward_bytes, backward_bytes
        Of every pair, shape (P,).
    forward, backward
        Times of every pair, latency included, shape (P,).
    host_forward, host_backward
        Times that every stage spends on writing to and reading from the host, shape (S,).
    """

    traffic: Traffic
    path_class: IntArray
    forward_bytes: IntArray
    backward_bytes: IntArray
    forward: Times
    backward: Times
    host_forward: Times
    host_backward: Times


Number = TypeVar("Number", bound=np.generic)


def sum_by(groups: IntArray, values: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    """Add up values by group, exactly for integers."""
    total = np.zeros(size, dtype=values.dtype)
    np.add.at(total, groups, values)
    return total


Routes = tuple[IntArray, IntArray]
"""Tensors and the pairs of stages that they pass, one entry for each of them, shapes (X,) and (X,)."""


def routes(instance: Instance, stage: IntArray, pairs: IntArray) -> Routes:
    """Give which tensors pass between which stages, in every scenario the same.

    With relay, and between neighbors, a tensor crosses every boundary between its producer's stage and its last
    consumer's; with direct and host it goes once to every other stage that holds a consumer.
    """
    num_stages = int(stage.max()) + 1
    if instance.routing == "relay":
        return _relayed(instance, stage)
    numbers = np.zeros((num_stages, num_stages), dtype=np.int64)
    numbers[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    tensor, ends = _destinations(instance, stage)
    pair = numbers[ends.min(axis=1), ends.max(axis=1)]
    return tensor, pair


def _relayed(instance: Instance, stage: IntArray) -> Routes:
    edges = instance.edges
    if not edges.consumers:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    flat, starts = _flat_consumers(instance)
    made = stage[edges.producer]
    first = np.minimum(made, np.minimum.reduceat(stage[flat], starts))
    last = np.maximum(made, np.maximum.reduceat(stage[flat], starts))
    hops = last - first
    tensor = np.repeat(np.arange(len(made)), hops)
    offset = np.arange(len(tensor)) - np.repeat(np.cumsum(hops) - hops, hops)
    return tensor, np.repeat(first, hops) + offset


def _flat_consumers(instance: Instance) -> tuple[IntArray, IntArray]:
    """Give all consumers in one array, and where those of every tensor start."""
    consumers = instance.edges.consumers
    counts = np.array([len(each) for each in consumers], dtype=np.int64)
    flat = np.concatenate(consumers) if consumers else np.zeros(0, dtype=np.int64)
    return flat, np.cumsum(counts) - counts


def _destinations(instance: Instance, stage: IntArray) -> tuple[IntArray, IntArray]:
    """Give tensors and the ends (producer's stage, reading stage) of their ways, each once, shapes (X,), (X, 2)."""
    flat, _ = _flat_consumers(instance)
    counts = np.array([len(each) for each in instance.edges.consumers], dtype=np.int64)
    tensor = np.repeat(np.arange(len(counts)), counts)
    ways = np.stack([tensor, stage[instance.edges.producer[tensor]], stage[flat]], axis=1)
    ways = np.unique(ways[ways[:, 1] != ways[:, 2]], axis=0)
    return ways[:, 0], ways[:, 1:]


def _both_passes(instance: Instance, tensor: IntArray, pair: IntArray) -> Traffic:
    """List what travels between which stages in the passes that move it."""
    forward = instance.edges.ordered[tensor]
    backward = ~forward | (instance.edges.backward_bytes[tensor] > 0)
    backward &= instance.trains
    return Traffic(
        np.concatenate([tensor[forward], tensor[backward]]),
        np.concatenate([pair[forward], pair[backward]]),
        np.repeat(np.array([0, 1]), [int(forward.sum()), int(backward.sum())]),
    )


def transfers(
    instance: Instance, figures: Figures, stage: IntArray, location: IntArray, graph: EventGraph, taken: Routes
) -> Transfers:
    """Price everything that is carried between stages, by these routes; between stages of a rank nothing is sent."""
    pairs, rank_of = graph.pairs, graph.pipeline.rank_of
    traffic = _both_passes(instance, *taken)
    edges, size = instance.edges, len(pairs)
    ends = location[rank_of[pairs]]
    if instance.routing == "host":  # either side reaches the host over its own fabric
        ends = ends[:, [0, 0]]
    path_class = instance.topology.class_of[ends[:, 0], ends[:, 1]]
    back = traffic.backward == 1
    sizes = np.where(back, edges.backward_bytes[traffic.tensor], edges.forward_bytes[traffic.tensor])
    numbers = traffic.pair + size * traffic.backward
    all_bytes = sum_by(numbers, sizes, 2 * size)
    all_times = sum_by(numbers, figures.transfer(sizes, path_class[traffic.pair]), 2 * size)
    host_forward, host_backward = figures.zeros(len(rank_of)), figures.zeros(len(rank_of))
    if instance.routing == "host":
        sent = np.bincount(numbers, weights=sizes > 0, minlength=2 * size).astype(np.int64)
        all_times = 2 * (all_times + sent * np.tile(figures.latency[path_class], 2))
        if instance.blocking:
            host_forward, host_backward = _host_times(instance, figures, stage, location[rank_of])
            all_times = figures.zeros(2 * size)
    else:
        # Neighbors always exchange a message; other pairs only where something is sent.
        messages = all_bytes.reshape(2, size) > 0
        messages[:, : len(rank_of) - 1] = True
        messages[1] &= instance.trains
        all_times = all_times + messages.reshape(-1) * np.tile(figures.latency[path_class], 2)
    all_times[np.tile(graph.local, 2)] = 0
    return Transfers(
        traffic,
        path_class,
        all_bytes[:size],
        all_bytes[size:],
        all_times[:size],
        all_times[size:],
        host_forward,
        host_backward,
    )


def _host_times(instance: Instance, figures: Figures, stage: IntArray, location: IntArray) -> tuple[Times, Times]:
    """Give the times in which every stage, placed by ``location``, writes to and reads from the host in either pass.

    A forward tensor is written once and read once by every other stage that needs it, and so is a tensor of the
    backward pass. A gradient is written by every stage that read the tensor and read by the stage that made it.
    """
    tensor, ends = _destinations(instance, stage)
    edges, num_stages = instance.edges, len(location)
    written, first = np.unique(tensor, return_index=True)
    is_forward = edges.ordered[tensor]
    own = np.concatenate([ends[first, 0], ends[:, 1]])
    moved = np.concatenate([written, tensor])
    path_class = instance.topology.class_of[location, location]

    def spent(stages: IntArray, sizes: IntArray) -> Times:
        moving = sizes > 0
        stages, sizes = stages[moving], sizes[moving]
        price = figures.transfer(sizes, path_class[stages]) + figures.latency[path_class[stages]]
        return sum_by(stages, price, num_stages)

    forward = spent(own, np.where(edges.ordered[moved], edges.forward_bytes[moved], 0))
    backward = spent(own, np.where(edges.ordered[moved], 0, edges.backward_bytes[moved]))
    for side in (0, 1):
        backward = backward + spent(ends[is_forward, side], edges.backward_bytes[tensor[is_forward]])
    return forward, backward


def held(storages: Storages, stage: IntArray, owner: IntArray) -> tuple[IntArray, IntArray]:
    """Give which storage is held by which owner, every holding once, shapes (X,) and (X,).

    ``owner[k]`` owns what stage k holds, shape (S,); it is named by the first stage on which it holds the storage.
    """
    if not storages.layers:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    holder = stage[np.concatenate(storages.layers)]
    size = len(owner)
    every = np.unique((storages.number * size + owner[holder]) * size + holder)
    first = np.unique(every // size, return_index=True)[1]
    return every[first] // (size * size), every[first] % size


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Bytes of every stage on each of its devices, item by item, shape (S,) each.

    Where a rank runs several stages these are shares of its device: what it has once (a weight that two of its stages
    use, workspace, reserve) counts at one of them, activations are those of the moment when it is fullest.

    Attributes
    ----------
    in_flight, postponed
        Microbatches kept whole at that moment, and those of which only the weight gradient is left.
    rank_of
        The rank of every stage.
    """

    weights: IntArray
    gradients: IntArray
    optimizer: IntArray
    buffers: IntArray
    activations: IntArray
    in_flight: IntArray
    postponed: IntArray
    communication: IntArray
    workspace: IntArray
    reserve: IntArray
    rank_of: IntArray

    @property
    def total(self) -> IntArray:
        """The sum of all items, by stage."""
        return (
            self.weights + self.gradients + self.optimizer + self.buffers
            + self.activations + self.communication + self.workspace + self.reserve
        )  # fmt: skip

    @property
    def by_rank(self) -> IntArray:
        """The sum of all items on each device of a rank, shape (R,)."""
        return sum_by(self.rank_of, self.total, int(self.rank_of.max()) + 1)


def stage_memory(instance: Instance, plan: LayerPlan, moved: Transfers, graph: EventGraph) -> StageMemory:
    """Give the memory of every stage."""
    pipeline, tied, stage = graph.pipeline, instance.weights, plan.stage
    rank_of, size = pipeline.rank_of, pipeline.num_stages
    layers = instance.ways.of(plan.kind(instance, rank_of), plan.option)
    reserve = instance.topology.reserves[instance.topology.kind_of[plan.location[rank_of]]]
    weight, holder = held(tied, stage, rank_of)
    buffer, keeper = held(instance.buffers, stage, rank_of)
    kept, for_weights = kept_bytes(instance, plan, rank_of)
    whole, postponed = pipeline.moments.fullest(kept, for_weights)
    workspace = np.zeros(size, dtype=np.int64)
    np.maximum.at(workspace, stage, layers.workspace)
    return StageMemory(
        weights=sum_by(stage, layers.weight, size) + sum_by(holder, tied.bytes[weight], size),
        gradients=sum_by(stage, layers.gradient, size) + sum_by(holder, tied.gradient_bytes[weight], size),
        optimizer=sum_by(stage, layers.optimizer, size) + sum_by(holder, tied.optimizer_bytes[weight], size),
        buffers=sum_by(keeper, instance.buffers.bytes[buffer], size),
        activations=whole * kept + postponed * for_weights,
        in_flight=whole,
        postponed=postponed,
        communication=_received(instance, moved, graph),
        workspace=workspace * _first_largest(rank_of, workspace),
        reserve=reserve * _first_largest(rank_of, np.zeros_like(workspace)),
        rank_of=rank_of,
    )


def kept_bytes(instance: Instance, plan: LayerPlan, rank_of: IntArray) -> tuple[IntArray, IntArray]:
    """Give the bytes that a microbatch keeps on every stage, whole and for its weight gradient, shape (S,) each."""
    stage, size = plan.stage, len(rank_of)
    saved, saver = held(instance.shared, stage, np.arange(size))
    shared = sum_by(saver, instance.shared.bytes[saved], size)
    layers = instance.ways.of(plan.kind(instance, rank_of), plan.option)
    return sum_by(stage, layers.activation, size) + shared, sum_by(stage, layers.for_weight_gradient, size) + shared


def _received(instance: Instance, moved: Transfers, graph: EventGraph) -> IntArray:
    """Give the bytes of every stage's receive buffers."""
    size = graph.num_stages
    if instance.routing == "host":
        return np.zeros(size, dtype=np.int64)
    sent = ~graph.local * instance.receive_buffers
    forward = sum_by(graph.pairs[:, 1], moved.forward_bytes * sent, size)
    both: IntArray = forward + sum_by(graph.pairs[:, 0], moved.backward_bytes * sent, size)
    return both


def _first_largest(rank_of: IntArray, values: IntArray) -> BoolArray:
    """Choose one stage of every rank, the first of those with the largest value; true or false, shape (S,)."""
    order = np.lexsort((np.arange(len(values)), -values, rank_of))
    chosen = np.zeros(len(values), dtype=bool)
    chosen[order[np.unique(rank_of[order], return_index=True)[1]]] = True
    return chosen
