"""The event graph of an iteration: its longest path is the makespan.

Nodes are the actions of all ranks and, where transfers are overlapped, the transfers. Edges are the order on every
rank, the order of the transfers of one pair of stages in one direction, and the data: a forward pass waits for the same
microbatch on earlier stages, a backward pass for that on later stages. The graph depends on the schedule and on how
many stages and microbatches there are, and on nothing else; a plan gives the durations.

The *times* of a plan are a row of columns: K S passes (of every stage forward, then backward; or forward, input
gradient, then weight gradient where the schedule splits some) and 2 P transfers (of every pair forward, then backward).
With ``blocking`` the passes contain their transfers, and a receiver starts when the sender starts to send. Of several
scenarios each has such columns, one after the other.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from partita.solver.arrays import BoolArray, IntArray, Times
from partita.solver.pipeline import Pipeline

MAX_GRAPH_BYTES = 2**30
"""Largest array of a batch of plans that is walked at once."""

FORWARD, BACKWARD = 0, 1


def stage_pairs(num_stages: int, skipping: bool) -> IntArray:
    """List the pairs (a, b) of stages, a < b, that tensors pass between, shape (P, 2).

    The S - 1 pairs of neighbors come first; with ``skipping`` all others follow.
    """
    pairs = [(k, k + 1) for k in range(num_stages - 1)]
    if skipping:
        pairs += [(a, b) for a in range(num_stages) for b in range(a + 2, num_stages)]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


class EventGraph:
    """The event graph of a pipeline.

    Parameters
    ----------
    pipeline
        The orders.
    skipping
        Whether tensors go between stages that are not neighbors.
    blocking
        Whether transfers are part of the passes at both ends.
    num_cases, worst
        How many scenarios run through the same graph with times of their own, one after the other; or, where the
        longest of them counts, side by side.

    Attributes
    ----------
    pairs, local
        The pairs of stages that exchange tensors, shape (P, 2), and which of them are on one rank, shape (P,).
    num_passes
        K: 2, or 3 where some backward passes are split.
    """

    def __init__(
        self, pipeline: Pipeline, skipping: bool, blocking: bool, num_cases: int = 1, worst: bool = False
    ) -> None:
        self.pipeline, self.blocking, self.num_cases, self.worst = pipeline, blocking, num_cases, worst
        self.num_stages = pipeline.num_stages
        self.num_passes = 3 if pipeline.splits else 2
        self.pairs = stage_pairs(self.num_stages, skipping)
        self.local: BoolArray = np.asarray(pipeline.rank_of[self.pairs[:, 0]] == pipeline.rank_of[self.pairs[:, 1]])
        wiring = _Wiring(self)
        self.num_nodes = len(wiring.column)
        self.nodes = wiring
        self._levels, self._renumbered, self._first, self._source, self._delay = _by_level(wiring)
        self._column = np.empty_like(wiring.column)
        self._column[self._renumbered] = wiring.column
        self._last = np.setdiff1d(np.arange(self.num_nodes), self._source)
        self._rounds = _rounds(self._levels, self._first)

    @property
    def num_columns(self) -> int:
        """C: the columns of one scenario after those of another."""
        return self.num_cases * self._width

    @property
    def _width(self) -> int:
        """Columns of one scenario."""
        return self.num_passes * self.num_stages + 2 * len(self.pairs)

    @property
    def num_directions(self) -> int:
        """Forward and backward, for every scenario."""
        return 2 * self.num_cases

    def transfer_column(self, direction: int) -> int:
        """Give the column of the first pair's transfer in a direction of one scenario."""
        case, within = divmod(direction, 2)
        return case * self._width + self.num_passes * self.num_stages + within * len(self.pairs)

    def passes(self, rows: IntArray) -> list[IntArray]:
        """Give the columns of the passes, of shape (..., S) each, from rows of C columns, by scenario."""
        size = self.num_stages
        starts = [case * self._width + k * size for case in range(self.num_cases) for k in range(self.num_passes)]
        return [rows[..., start : start + size] for start in starts]

    def transfers(self, rows: IntArray, direction: int) -> IntArray:
        """Give the columns of the transfers in a direction of one scenario, of shape (..., P), from rows of C."""
        first = self.transfer_column(direction)
        return rows[..., first : first + len(self.pairs)]

    def of_direction(self, blocks: Sequence[Times], direction: int) -> Times:
        """Give the forward passes, or the first of the backward ones, that go with the transfers in a direction."""
        case, within = divmod(direction, 2)
        return blocks[case * self.num_passes + within]

    @property
    def num_levels(self) -> int:
        """The most nodes on a path."""
        return len(self._levels) - 1

    def makespans(self, times: Times) -> Times:
        """Give the makespan of every plan of a batch over all scenarios, shape (N,), from its times, shape (N, C)."""
        return self.over_cases(self.makespans_by_case(times))

    def makespans_by_case(self, times: Times) -> Times:
        """Give the makespan of every plan of a batch in every scenario, shape (N, cases); times of shape (N, C)."""
        rows = times.reshape(-1, self._width)
        found = [self._walk(part)[self._last].max(axis=0) for part in self._batches(rows)]
        return np.concatenate(found).reshape(-1, self.num_cases)

    def over_cases(self, each: Times) -> Times:
        """Give the makespan that counts, shape (N,), from those in every scenario, shape (N, cases)."""
        return np.asarray(each.max(axis=1) if self.worst else each.sum(axis=1))

    def critical_paths(self, times: Times) -> tuple[Times, IntArray]:
        """Give what ``makespans_by_case`` gives, and how often the longest path takes every time, shape (N, C).

        With ``blocking`` what counts of a transfer is how often the path gains by it. Of several scenarios there is a
        path in each; where the longest counts the others' are left out.
        """
        parts = [self._trace(part) for part in self._batches(times.reshape(-1, self._width))]
        makespans = np.concatenate([makespan for makespan, _ in parts]).reshape(-1, self.num_cases)
        visits = np.concatenate([visits for _, visits in parts]).reshape(-1, self.num_cases, self._width)
        if self.worst:
            visits = visits * (np.arange(self.num_cases) == makespans.argmax(axis=1)[:, None])[:, :, None]
        return makespans, visits.reshape(len(makespans), -1)

    def ends(self, times: Times) -> Times:
        """Give when every node of ``nodes`` ends for one plan in one scenario, shape (n,)."""
        end: Times = self._walk(times[None, :])[:, 0][self._renumbered]
        return end

    def durations(self, times: Times) -> Times:
        """Give how long every node of ``nodes`` takes for one plan, shape (n,)."""
        duration: Times = self._durations(times[None, :])[self.nodes.column, 0]
        return duration

    def critical_nodes(self, times: Times) -> IntArray:
        """Give the nodes of ``nodes`` on a longest path of one plan, first to last."""
        end = self._walk(times[None, :])
        steps = [node[0] for node, _ in self._back(end, self._delays(times[None, :]))]
        original = np.argsort(self._renumbered)
        return original[np.array(steps[::-1], dtype=np.int64)]

    def _passes_of_case(self, rows: IntArray) -> list[IntArray]:
        """Give the columns of the passes from rows of one scenario, of shape (..., S) each."""
        size = self.num_stages
        return [rows[..., k * size : (k + 1) * size] for k in range(self.num_passes)]

    def _batches(self, times: Times) -> list[Times]:
        """Split a batch so that no array grows too large."""
        size = max(1, MAX_GRAPH_BYTES // (64 * self.num_nodes))
        return [times[i : i + size] for i in range(0, len(times), size)]

    def _durations(self, times: Times) -> Times:
        """Give how long every kind of node takes: the C times, S whole backward passes, no time; by kind and plan."""
        plans = len(times)
        passes = self._passes_of_case(times)
        whole = sum(passes[1:])
        return np.concatenate([times, whole, np.zeros((plans, 1), dtype=times.dtype)], axis=1).T

    def _delays(self, times: Times) -> Times | None:
        """Give by how much earlier than its sender's end a receiver may start, by edge, shape (e, N)."""
        if self._delay is None:
            return None
        return -self._durations(times)[self._delay]

    def _walk(self, times: Times) -> Times:
        """Give when every node ends, by level, shape (n + 1, N); the last is the start of all."""
        duration, delays = self._durations(times), self._delays(times)
        end = np.zeros((self.num_nodes + 1, len(times)), dtype=times.dtype)
        for (node, following), rounds in zip(pairwise(self._levels.tolist()), self._rounds, strict=True):
            latest = np.zeros((following - node, len(times)), dtype=times.dtype)
            for edges in rounds:
                arrival = end[self._source[edges]]
                if delays is not None:
                    arrival += delays[edges]
                np.maximum(latest[: len(edges)], arrival, out=latest[: len(edges)])
            end[node:following] = latest + duration[self._column[node:following]]
        return end

    def _trace(self, times: Times) -> tuple[Times, IntArray]:
        """Give the makespans and what every longest path visits, shape (N, C)."""
        end, delays = self._walk(times), self._delays(times)
        makespan = end[self._last].max(axis=0)
        width = self._width + self.num_stages + 1
        visits = np.zeros((len(times), width), dtype=np.int64)
        plans = np.arange(len(times))
        for node, edge in self._back(end, delays):
            going = node < self.num_nodes
            np.add.at(visits, (plans[going], self._column[node[going]]), 1)
            if self._delay is not None:
                np.subtract.at(visits, (plans[going], self._delay[edge[going]]), 1)
        whole = visits[:, self._width : -1]
        visits = visits[:, : self._width]
        for part in self._passes_of_case(visits)[1:]:
            part += whole
        return makespan, visits

    def _back(self, end: Times, delays: Times | None) -> "list[tuple[IntArray, IntArray]]":
        """Go back along the longest paths; give the node of every plan and the edge it came by, step by step."""
        plans = np.arange(end.shape[1])
        node = self._last[end[self._last].argmax(axis=0)]
        steps = []
        while (node < self.num_nodes).any():
            first = self._first[np.minimum(node, self.num_nodes - 1)]
            count = self._first[np.minimum(node, self.num_nodes - 1) + 1] - first
            best = np.full(len(plans), -1, dtype=end.dtype)
            edge = first.copy()
            for column in range(int(count.max())):
                here = np.minimum(first + column, first + count - 1)
                arrival = end[self._source[here], plans]
                if delays is not None:
                    arrival = arrival + delays[here, plans]
                later = arrival > best
                best[later], edge[later] = arrival[later], here[later]
            steps.append((node, edge))
            node = np.where(node < self.num_nodes, self._source[edge], self.num_nodes)
        return steps


class _Wiring:
    """Nodes and edges in the order of the ranks' actions, then of the transfers.

    Attributes
    ----------
    column
        Of every node, among the durations; whole backward passes follow the C times.
    source, target, delay
        Of every edge; the delay's column is -1 for none.
    """

    def __init__(self, graph: EventGraph) -> None:
        self._graph = graph
        pipeline, stages = graph.pipeline, graph.num_stages
        flat = [action for order in pipeline.orders for action in order]
        self.kind = np.array(["FBIW".index(kind) for kind, _, _ in flat], dtype=np.int64)
        self.stage = np.array([stage for _, stage, _ in flat], dtype=np.int64)
        self.microbatch = np.array([microbatch for _, _, microbatch in flat], dtype=np.int64)
        self.num_actions = len(flat)
        whole = graph.num_columns // graph.num_cases if pipeline.splits else stages
        self.column = self.stage + np.array([0, whole, stages, 2 * stages])[self.kind]
        self.pair = np.full(self.num_actions, -1, dtype=np.int64)
        self.direction = np.full(self.num_actions, -1, dtype=np.int64)
        self._edges: list[tuple[IntArray, IntArray, int]] = []
        self._add_ranks()
        self._add_data()
        self.source = np.concatenate([source for source, _, _ in self._edges])
        self.target = np.concatenate([target for _, target, _ in self._edges])
        self.delay = np.concatenate([np.full(len(source), delay) for source, _, delay in self._edges])

    def _add_ranks(self) -> None:
        sizes = np.array([len(order) for order in self._graph.pipeline.orders], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        following = np.setdiff1d(np.arange(self.num_actions), starts)
        self._edges.append((following - 1, following, -1))

    def _add_data(self) -> None:
        graph = self._graph
        microbatches = int(self.microbatch.max()) + 1
        node = np.full((2, graph.num_stages, microbatches), -1, dtype=np.int64)
        for direction, kinds in ((FORWARD, self.kind == 0), (BACKWARD, (self.kind == 1) | (self.kind == 2))):
            found = np.flatnonzero(kinds)
            node[direction, self.stage[found], self.microbatch[found]] = found
        transfers = []
        count = self.num_actions
        for direction in (FORWARD, BACKWARD):
            for pair, ends in enumerate(graph.pairs.tolist()):
                sender, receiver = ends if direction == FORWARD else ends[::-1]
                if node[direction, sender, 0] < 0:
                    continue
                column = graph.transfer_column(direction) + pair
                if graph.local[pair] or graph.blocking:
                    delay = -1 if graph.local[pair] else column
                    self._edges.append((node[direction, sender], node[direction, receiver], delay))
                    continue
                sequence = np.argsort(node[direction, sender])
                sent = count + np.arange(microbatches)
                count += microbatches
                self._edges += [
                    (node[direction, sender][sequence], sent, -1),
                    (sent[:-1], sent[1:], -1),
                    (sent, node[direction, receiver][sequence], -1),
                ]
                transfers.append((column, pair, direction, sequence))
        for name, values in (
            ("column", [np.full(microbatches, column) for column, _, _, _ in transfers]),
            ("pair", [np.full(microbatches, pair) for _, pair, _, _ in transfers]),
            ("direction", [np.full(microbatches, direction) for _, _, direction, _ in transfers]),
            ("microbatch", [sequence for _, _, _, sequence in transfers]),
        ):
            setattr(self, name, np.concatenate([getattr(self, name), *values]))


def _by_level(wiring: _Wiring) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray | None]:
    """Sort nodes so that those of one level follow each other, most edges first, and edges by the nodes they lead to.

    Gives where every level starts, the place of every node, where every node's edges start, and of every edge the
    source and, where there are any, the delay's column. A node without predecessors gets an edge from the start of all.
    """
    size = len(wiring.column)
    level = _levels(size, wiring.source, wiring.target)
    order = np.lexsort((-np.bincount(wiring.target, minlength=size), level))
    renumbered = np.empty(size + 1, dtype=np.int64)
    renumbered[order] = np.arange(size)
    renumbered[size] = size
    free = np.flatnonzero(level == 0)
    source = renumbered[np.concatenate([wiring.source, np.full(len(free), size)])]
    target = renumbered[np.concatenate([wiring.target, free])]
    delay = np.concatenate([wiring.delay, np.full(len(free), -1)])
    by_target = np.argsort(target, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=size))])
    starts = np.concatenate([[0], np.cumsum(np.bincount(level))])
    delays = delay[by_target] if (delay >= 0).any() else None
    return starts, renumbered[:size], first, source[by_target], delays


def _rounds(levels: IntArray, first: IntArray) -> list[list[IntArray]]:
    """Give for every level the first edges of its nodes, the second edges of those that have any, and so on."""
    found = []
    counts = np.diff(first)
    for node, following in pairwise(levels.tolist()):
        many = counts[node:following]
        found.append([first[node : node + int((many > each).sum())] + each for each in range(int(many[0]))])
    return found


def _levels(size: int, source: IntArray, target: IntArray) -> IntArray:
    """Give the length of the longest way to every node, in edges."""
    waiting = np.bincount(target, minlength=size)
    by_source = np.argsort(source, kind="stable")
    following = target[by_source]
    first = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=size))])
    level = np.zeros(size, dtype=np.int64)
    ready, done, depth = np.flatnonzero(waiting == 0), 0, 0
    while len(ready):
        level[ready] = depth
        done, depth = done + len(ready), depth + 1
        counts = first[ready + 1] - first[ready]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        reached, times = np.unique(following[np.repeat(first[ready], counts) + offsets], return_counts=True)
        waiting[reached] -= times
        ready = reached[waiting[reached] == 0]
    assert done == size, "the orders of a schedule never wait for each other in a circle"
    return level
