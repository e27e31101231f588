"""The figures of all possible stages at all degrees: bounds on their computing time, and everything else exactly."""

from dataclasses import dataclass, field

import numpy as np

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.deadline import Deadline
from partita.solver.steady.cuts import Cuts, relayed, sent_directly
from partita.solver.steady.knapsack import Ladders, least_time
from partita.solver.steady.menu import Degree, Menu


def exchange_s(menu: Menu, exchanged: FloatArray, replicas: int) -> FloatArray:
    """Give the seconds per microbatch in which replicas exchange so many bytes of gradients, of any shape."""
    fabric = menu.problem.cluster.nodes[0].fabric
    if replicas == 1 or fabric is None:
        return np.zeros_like(exchanged)
    ways = 4 if menu.problem.training.gradient_exchange == "half_duplex" else 2
    moved = ways * (replicas - 1) / replicas * exchanged / fabric.bandwidth_bytes_per_s
    rounds = menu.problem.training.gradient_exchange_after == "round"
    return (fabric.latency_s + moved) / (replicas if rounds else menu.microbatches)


def in_flight(later: int, replicas: int) -> int:
    """Give the microbatches in flight on each replica of a stage before stages of ``later`` replicas in all."""
    return 1 + -(-later // replicas)


@dataclass(frozen=True)
class Stages:
    """Figures of P possible stages at T degrees of tensor parallelism, with up to Y microbatches in flight.

    Attributes
    ----------
    menu, cuts
        What there is to choose from.
    lower, upper
        Bounds on the computing time of one microbatch, from below, and from above by a choice that is known to fit;
        infinite where none fits; shape (T, P, Y + 1).
    added
        Seconds of blocking transfers, shape (T, P).
    beside
        Seconds of the longest transfer over either boundary where transfers overlap, shape (P,).
    exchanged
        Bytes that replicas exchange, shape (T, P).
    room
        Bytes that the layers may use for themselves, shape (T, P).
    chosen
        The exact choices known so far, by degree, stage and microbatches in flight.
    """

    menu: Menu
    cuts: Cuts
    lower: FloatArray
    upper: FloatArray
    added: FloatArray
    beside: FloatArray
    exchanged: FloatArray
    room: IntArray
    chosen: dict[tuple[int, int, int], tuple[int, ...]] = field(default_factory=dict)

    def seconds(self, compute: FloatArray, row: int, stages: IntArray, replicas: int) -> FloatArray:
        """Give the time per microbatch from computing times, shape (stages, ...), at one degree and replication."""
        plus = self.added[row, stages] / replicas + exchange_s(self.menu, self.exchanged[row, stages], replicas)
        shape = (-1,) + (1,) * (compute.ndim - 1)
        busy = compute / replicas + plus.reshape(shape)
        longest: FloatArray = np.maximum(busy, (self.beside[stages] / replicas).reshape(shape))
        return longest

    def settle(self, row: int, stage: int, flight: int, deadline: Deadline) -> None:
        """Make the bounds of one stage exact; ``TimeOver`` is raised when the time is over."""
        key = (row, stage, flight)
        if key in self.chosen:
            return
        degree, layers = self.menu.degrees[row], np.flatnonzero(self.cuts.layers(np.array([stage]))[0])
        room = int(self.room[row, stage])
        known = float(self.upper[key])
        found = _exact(self.menu, degree, layers, flight, room, known, deadline)
        if found is None:
            self.lower[key] = self.upper[key] = np.inf
            self.chosen[key] = ()
        else:
            self.lower[key] = self.upper[key] = found[0]
            self.chosen[key] = found[1]


def received_bytes(menu: Menu, cuts: Cuts) -> IntArray:
    """Give the bytes of receive buffers of every possible stage, shape (P,)."""
    training = menu.problem.training
    copies = {"none": 0, "generic": 1, "torch": menu.microbatches}[training.runtime]
    if not copies:
        return np.zeros(len(cuts.first), dtype=np.int64)
    if training.routing == "relay":
        forward, backward = relayed(menu, cuts)
        return copies * (forward[cuts.first] + backward[cuts.last])
    edges = menu.instance.edges
    total = np.zeros(len(cuts.first), dtype=np.int64)
    for number, (consumer,) in enumerate(edges.consumers):
        inside = [cuts.before[cuts.last, x] & ~cuts.before[cuts.first, x] for x in (edges.producer[number], consumer)]
        total += (inside[1] & ~inside[0]) * edges.forward_bytes[number]
        total += (inside[0] & ~inside[1]) * edges.backward_bytes[number]
    return copies * total


def price_stages(menu: Menu, cuts: Cuts, deadline: Deadline) -> Stages:
    """Price all possible stages; ``TimeOver`` is raised when the time is over."""
    most = min(menu.devices, menu.microbatches)
    shape = (len(menu.tensor), len(cuts.first), most + 1)
    lower, upper = np.full(shape, np.inf), np.full(shape, np.inf)
    received = received_bytes(menu, cuts)
    room: IntArray = np.stack([_rooms(menu, cuts, degree, received) for degree in menu.degrees])
    for row, degree in enumerate(menu.degrees):
        for flight in range(1, most + 1):
            deadline.check()
            lower[row, :, flight], upper[row, :, flight] = _bounds(menu, cuts, degree, flight, room[row])
    added, beside = _transfers(menu, cuts)
    exchanged: FloatArray = np.stack([cuts.sums(degree.exchanged) + 0.0 for degree in menu.degrees])
    return Stages(menu, cuts, lower, upper, added, beside, exchanged, room)


def _rooms(menu: Menu, cuts: Cuts, degree: Degree, received: IntArray) -> IntArray:
    """Give the bytes that the layers of every stage may use for themselves, shape (P,)."""
    workspace = np.zeros(len(received), dtype=np.int64)
    for layer in np.argsort(degree.workspace, kind="stable").tolist():
        if degree.workspace[layer]:
            inside = cuts.before[cuts.last, layer] & ~cuts.before[cuts.first, layer]
            workspace[inside] = degree.workspace[layer]
    room: IntArray = menu.capacity - menu.device.reserve_bytes - workspace - received
    return room


def _bounds(menu: Menu, cuts: Cuts, degree: Degree, flight: int, room: IntArray) -> tuple[FloatArray, FloatArray]:
    sizes = degree.fixed + flight * degree.activation
    if not menu.whole:
        ladders = Ladders.of(degree.time, sizes, degree.has)
        need = cuts.sums(ladders.bytes) - room
        return ladders.bounds(cuts.layers, cuts.sums(ladders.fastest), need, cuts.sums(ladders.most_saved))
    best = np.full(len(room), np.inf)
    for kind in range(len(menu.kinds)):
        time, size = _by_one_kind(degree, sizes, kind)
        best = np.minimum(best, np.where(cuts.sums(size) <= room, cuts.sums(time), np.inf))
    return best, best.copy()


def _by_one_kind(degree: Degree, sizes: IntArray, kind: int) -> tuple[FloatArray, IntArray]:
    """Give times and sizes of layers that run by one kind of recompute where they have it."""
    has = degree.has[kind]
    return np.where(has, degree.time[kind], degree.time[0]), np.where(has, sizes[kind], sizes[0])


def _exact(
    menu: Menu, degree: Degree, layers: IntArray, flight: int, room: int, known: float, deadline: Deadline
) -> tuple[float, tuple[int, ...]] | None:
    """Give the least time of a stage and the kind of recompute of each of its layers; None where it does not fit."""
    sizes = degree.fixed + flight * degree.activation
    if not menu.whole:
        return least_time(degree.time[:, layers], sizes[:, layers], degree.has[:, layers], room, known, deadline)
    fitting = []
    for kind in range(len(menu.kinds)):
        time, size = _by_one_kind(degree, sizes, kind)
        if size[layers].sum() <= room:
            ways = np.where(degree.has[kind, layers], kind, 0)
            fitting.append((float(time[layers].sum()), tuple(ways.tolist())))
    return min(fitting, default=None)


def _transfers(menu: Menu, cuts: Cuts) -> tuple[FloatArray, FloatArray]:
    """Give the seconds of transfers that are added to those of a stage, (T, P), and of those beside it, (P,)."""
    training, fabric = menu.problem.training, menu.problem.cluster.nodes[0].fabric
    count = len(cuts.first)
    added, beside = np.zeros((len(menu.tensor), count)), np.zeros(count)
    if fabric is None:
        return added, beside
    bandwidth, latency = fabric.bandwidth_bytes_per_s, fabric.latency_s
    if training.routing == "direct":
        return sent_directly(menu, cuts) / bandwidth, beside
    forward, backward = relayed(menu, cuts)
    inner = np.ones(len(cuts), dtype=bool)
    inner[[0, -1]] = False
    each = np.where(inner, latency + np.stack([forward, backward]) / bandwidth, 0.0)
    if training.communication == "blocking":
        both = each.sum(axis=0)
        return added + both[cuts.first] + both[cuts.last], beside
    longest = each.max(axis=0)
    return added, np.maximum(longest[cuts.first], longest[cuts.last])
