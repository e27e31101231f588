"""Path cuts: every path of the event graph bounds the makespan of every plan from below."""

import numpy as np

from partita.solver.event_graph import Counts, EventGraph, Weights
from partita.solver.instance import Instance
from partita.solver.measure import StageTimes, graph_weights
from partita.solver.topology import IntArray

SLIGHTLY, MUCH = 3, 50
"""Percent by which a stage is made heavier to find the paths that matter when it is."""


class CutPool:
    """Different path cuts for one number of stages.

    A cut is a row of coefficients: S of the forward times (with ``blocking`` and ``host`` these include the host's),
    S of the backward times, P of the forward transfers and P of the backward transfers.
    """

    def __init__(self, graph: EventGraph, blocking: bool) -> None:
        self.graph, self.blocking = graph, blocking
        self.rows = np.zeros((0, 2 * graph.num_stages + 2 * len(graph.pairs)), dtype=np.int64)
        self._known: set[bytes] = set()

    def __len__(self) -> int:
        """Give the number of cuts."""
        return len(self.rows)

    def add(self, counts: Counts) -> int:
        """Add the paths of a batch that are new; tell how many were."""
        rows = self._coefficients(counts)
        fresh = []
        for row in rows:
            key = row.tobytes()
            if key not in self._known:
                self._known.add(key)
                fresh.append(row)
        if fresh:
            self.rows = np.concatenate([self.rows, np.array(fresh)])
        return len(fresh)

    def _coefficients(self, counts: Counts) -> IntArray:
        """Turn visits into coefficients of computing times and transfers.

        A blocking transfer is part of the passes at both ends, less the part that both do at the same time.
        """
        forward, backward = counts.forward_delay, counts.backward_delay
        if self.blocking:
            first, second = self.graph.pairs[:, 0], self.graph.pairs[:, 1]
            forward = counts.forward[:, first] + counts.forward[:, second] - forward
            backward = counts.backward[:, first] + counts.backward[:, second] - backward
        return np.concatenate([counts.forward, counts.backward, forward, backward], axis=1)

    def lengths(self, times: IntArray) -> IntArray:
        """Give the length of every cut's path for plans given by ``cut_times``, shape (N, cuts)."""
        return times @ self.rows.T


def cut_times(times: StageTimes) -> IntArray:
    """Give a plan's times in the order of a cut's coefficients."""
    moved = times.moved
    return np.concatenate(
        [times.forward + moved.host_forward, times.backward + moved.host_backward, moved.forward, moved.backward]
    )


def starting_cuts(instance: Instance, pool: CutPool, times: StageTimes) -> None:
    """Add the critical paths of a plan as it is, with one stage heavier, and with one transfer slower."""
    base = graph_weights(instance, [times])
    stages, pairs = pool.graph.num_stages, pool.graph.num_stages - 1
    copies = 1 + 2 * stages + pairs
    forward, backward = (np.repeat(each, copies, axis=0) for each in (base.forward, base.backward))
    forward_delay, backward_delay = (
        np.repeat(each, copies, axis=0) for each in (base.forward_delay, base.backward_delay)
    )
    for stage in range(stages):
        for copy, percent in ((1 + stage, SLIGHTLY), (1 + stages + stage, MUCH)):
            forward[copy, stage] += forward[copy, stage] * percent // 100
            backward[copy, stage] += backward[copy, stage] * percent // 100
    slower = max(1, int(base.forward.mean()))
    for pair in range(pairs):
        copy = 1 + 2 * stages + pair
        if pool.blocking:
            for stage in pool.graph.pairs[pair].tolist():
                forward[copy, stage] += slower
                backward[copy, stage] += slower
        sign = -1 if pool.blocking else 1
        forward_delay[copy, pair] += sign * slower
        backward_delay[copy, pair] += sign * slower
    _, counts = pool.graph.critical_paths(Weights(forward, backward, forward_delay, backward_delay))
    pool.add(counts)
