"""The event graph of an iteration: its longest path is the makespan.

Nodes are the actions of all ranks. Edges are the order on each rank and the data: a forward pass waits for the same
microbatch on earlier stages, a backward pass for that on later stages. The graph depends on the schedule and the
numbers of stages and microbatches only; a plan gives the weights of nodes and edges.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from partita.solver.figures import Times
from partita.solver.schedules import SCHEDULES, Action, Orders, in_flight
from partita.solver.topology import IntArray

MAX_GRAPH_BYTES = 2**30
"""Largest array of a batch of plans that is walked at once."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the event graph for a batch of N plans, all in one unit of time.

    Attributes
    ----------
    forward, backward
        Duration of a stage's passes, shape (N, S).
    forward_delay, backward_delay
        From the end of a pass to the earliest start of the same microbatch's pass across a pair of stages,
        shape (N, P); negative where the receiver starts with the transfer.
    """

    forward: Times
    backward: Times
    forward_delay: Times
    backward_delay: Times


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a path visits what, for a batch of N paths; shapes as in ``Weights``."""

    forward: IntArray
    backward: IntArray
    forward_delay: IntArray
    backward_delay: IntArray


def stage_pairs(num_stages: int, skipping: bool) -> IntArray:
    """List the pairs (a, b) of stages, a < b, that tensors pass between, shape (P, 2).

    The S - 1 pairs of neighbors come first; with ``skipping`` all others follow.
    """
    pairs = [(k, k + 1) for k in range(num_stages - 1)]
    if skipping:
        pairs += [(a, b) for a in range(num_stages) for b in range(a + 2, num_stages)]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


class EventGraph:
    """The event graph of a schedule.

    Parameters
    ----------
    kind
        The schedule's name.
    num_stages, num_microbatches
        S and m.
    skipping
        Whether tensors go between stages that are not neighbors.
    """

    def __init__(self, kind: str, num_stages: int, num_microbatches: int, skipping: bool) -> None:
        self.num_stages = num_stages
        self.pairs = stage_pairs(num_stages, skipping)
        orders = SCHEDULES[kind](num_stages, num_microbatches)
        self.in_flight = np.array(in_flight(orders), dtype=np.int64)
        self.num_nodes = sum(len(order) for order in orders)
        self._weight, self._before, self._edge = self._connect(orders)
        self._starts = self._sort_by_level()

    def _connect(self, orders: Orders) -> tuple[IntArray, IntArray, IntArray]:
        """Give every action's weight, predecessors and the edges from those, shapes (n,), (n, K) and (n, K).

        The weight of an action is its stage, plus S for a backward pass. Missing predecessors are node n; edges
        without a delay are the last, 2 P.
        """
        stages = self.num_stages
        number: dict[Action, int] = {}
        for order in orders:
            for action in order:
                number[action] = len(number)
        pair_of = {(a, b): p for p, (a, b) in enumerate(self.pairs.tolist())}
        sources = {
            "F": [[(a, pair_of[a, b]) for a in range(b) if (a, b) in pair_of] for b in range(stages)],
            "B": [[(b, pair_of[a, b]) for b in range(a + 1, stages) if (a, b) in pair_of] for a in range(stages)],
        }
        width = 1 + max(1, max(len(each) for kind in sources.values() for each in kind))
        nothing, free = len(number), 2 * len(self.pairs)
        weight = np.empty(nothing, dtype=np.int64)
        before = np.full((nothing, width), nothing, dtype=np.int64)
        edge = np.full((nothing, width), free, dtype=np.int64)
        for order in orders:
            previous = nothing
            for action in order:
                kind, stage, i = action
                node = number[action]
                weight[node] = stage + (stages if kind == "B" else 0)
                before[node, 0] = previous
                for column, (other, pair) in enumerate(sources[kind][stage], start=1):
                    before[node, column] = number[kind, other, i]
                    edge[node, column] = pair + (len(self.pairs) if kind == "B" else 0)
                if kind == "B" and stage == stages - 1:
                    before[node, 1] = number["F", stage, i]
                previous = node
        return weight, before, edge

    def _sort_by_level(self) -> IntArray:
        """Renumber the nodes so that those of one level follow each other; give where every level starts."""
        nodes = self.num_nodes
        waiting = (self._before < nodes).sum(axis=1)
        after: list[list[int]] = [[] for _ in range(nodes)]
        for node, sources in enumerate(self._before.tolist()):
            for source in sources:
                if source < nodes:
                    after[source].append(node)
        ready = np.flatnonzero(waiting == 0).tolist()
        remaining, depth = waiting.tolist(), [0] * nodes
        for node in ready:
            for follower in after[node]:
                depth[follower] = max(depth[follower], depth[node] + 1)
                remaining[follower] -= 1
                if remaining[follower] == 0:
                    ready.append(follower)
        assert len(ready) == nodes, "the orders of a schedule never wait for each other in a circle"
        level = np.array(depth, dtype=np.int64)
        order = np.argsort(level, kind="stable")
        renumbered = np.empty(nodes + 1, dtype=np.int64)
        renumbered[order] = np.arange(nodes)
        renumbered[nodes] = nodes
        self._weight, self._before, self._edge = self._weight[order], renumbered[self._before[order]], self._edge[order]
        return np.concatenate([[0], np.cumsum(np.bincount(level))])

    def makespans(self, weights: Weights) -> Times:
        """Give the makespan of every plan of a batch, shape (N,)."""
        parts = [self._walk(part).max(axis=0) for part in self._batches(weights)]
        return np.concatenate(parts)

    def critical_paths(self, weights: Weights) -> tuple[Times, Counts]:
        """Give the makespan of every plan of a batch and what its longest path visits."""
        parts = [self._trace(part) for part in self._batches(weights)]
        makespans = np.concatenate([makespan for makespan, _ in parts])
        visits = np.concatenate([visited for _, visited in parts])
        stages, pairs = self.num_stages, len(self.pairs)
        cuts = np.cumsum([stages, stages, pairs])
        return makespans, Counts(*np.split(visits, cuts, axis=1))

    def _batches(self, weights: Weights) -> list[Weights]:
        """Split a batch so that no array grows too large."""
        size = max(1, MAX_GRAPH_BYTES // (64 * self.num_nodes))
        total = len(weights.forward)
        return [
            Weights(
                weights.forward[i : i + size],
                weights.backward[i : i + size],
                weights.forward_delay[i : i + size],
                weights.backward_delay[i : i + size],
            )
            for i in range(0, total, size)
        ]

    def _walk(self, weights: Weights, chosen: npt.NDArray[np.int16] | None = None) -> Times:
        """Give when every action ends, shape (n, N), filling in which predecessor each one waited for last."""
        plans = len(weights.forward)
        duration = np.concatenate([weights.forward, weights.backward], axis=1).T[self._weight]
        no_delay = np.zeros((plans, 1), dtype=duration.dtype)
        delay = np.concatenate([weights.forward_delay, weights.backward_delay, no_delay], axis=1).T
        end = np.zeros((self.num_nodes + 1, plans), dtype=duration.dtype)
        starts = self._starts.tolist()
        for first, last in pairwise(starts):
            latest = end[self._before[first:last, 0]]
            for column in range(1, self._before.shape[1]):
                arrival = end[self._before[first:last, column]] + delay[self._edge[first:last, column]]
                if chosen is not None:
                    chosen[first:last][arrival > latest] = column
                latest = np.maximum(latest, arrival)
            end[first:last] = latest + duration[first:last]
        return end[:-1]

    def _trace(self, weights: Weights) -> tuple[Times, IntArray]:
        """Give the makespans, and how often each path visits every stage's passes and edges, shape (N, 2 S + 2 P)."""
        plans = len(weights.forward)
        chosen = np.zeros((self.num_nodes, plans), dtype=np.int16)
        end = self._walk(weights, chosen)
        visits = np.zeros((plans, 2 * self.num_stages + 2 * len(self.pairs) + 1), dtype=np.int64)
        plan, node = np.arange(plans), end.argmax(axis=0)
        makespan = end[node, plan]
        while len(plan):
            np.add.at(visits, (plan, self._weight[node]), 1)
            column = chosen[node, plan]
            np.add.at(visits, (plan, 2 * self.num_stages + self._edge[node, column]), 1)
            node = self._before[node, column]
            going = node < self.num_nodes
            plan, node = plan[going], node[going]
        return makespan, visits[:, :-1]


@lru_cache(maxsize=128)
def event_graph(kind: str, num_stages: int, num_microbatches: int, skipping: bool) -> EventGraph:
    """Give the event graph of a schedule, built once."""
    return EventGraph(kind, num_stages, num_microbatches, skipping)
