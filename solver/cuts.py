"""Path cuts: every path of the event graph bounds the makespan of every plan from below."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from partita.solver.arrays import FloatArray, IntArray, Times
from partita.solver.deadline import Deadline
from partita.solver.event_graph import EventGraph

SLIGHTLY, MUCH = 3, 50
"""Percent by which a stage is made heavier to find the paths that matter when it is."""


class CutPool:
    """Different path cuts for one number of stages.

    A cut is a row of coefficients of the C times of the event graph, where the passes are computing times (with
    ``blocking`` and ``host`` these include the host's).

    Attributes
    ----------
    usefulness
        How long the shortest plans were by every cut lately, as a part of what was allowed, shape (cuts,).
    """

    def __init__(self, graph: EventGraph) -> None:
        self.graph = graph
        self.rows = np.zeros((0, graph.num_columns), dtype=np.int64)
        self.usefulness: FloatArray = np.zeros(0)
        self._known: set[bytes] = set()

    def __len__(self) -> int:
        """Give the number of cuts."""
        return len(self.rows)

    @property
    def passes(self) -> list[IntArray]:
        """The coefficients of the passes, shape (cuts, S) each."""
        return self.graph.passes(self.rows)

    def boundaries(self, direction: int) -> IntArray:
        """Give the coefficients of the transfers between neighbors in a direction, shape (cuts, S - 1)."""
        return self.graph.transfers(self.rows, direction)[:, : self.graph.num_stages - 1]

    def counts(self) -> tuple[IntArray, IntArray]:
        """Give how often cuts take every pass, shape (cuts, K, S), and transfers, shape (cuts, D, S - 1)."""
        transfers = [self.boundaries(direction) for direction in range(self.graph.num_directions)]
        return np.stack(self.passes, axis=1), np.stack(transfers, axis=1)

    def add(self, visits: IntArray) -> int:
        """Add the paths of a batch that are new; tell how many were."""
        rows = self._coefficients(visits)
        fresh = []
        for row in rows:
            key = row.tobytes()
            if key not in self._known:
                self._known.add(key)
                fresh.append(row)
        if fresh:
            self.rows = np.concatenate([self.rows, np.array(fresh)])
            self.usefulness = np.append(self.usefulness, np.ones(len(fresh)))
        return len(fresh)

    def _coefficients(self, visits: IntArray) -> IntArray:
        """Turn visits into coefficients of computing times and transfers.

        A blocking transfer is part of the passes at both ends, less the part that both do at the same time.
        """
        graph = self.graph
        if not graph.blocking:
            return visits
        rows = visits.copy()
        remote = ~graph.local
        for direction in range(graph.num_directions):
            passes = graph.of_direction(graph.passes(visits), direction)
            both = passes[:, graph.pairs[:, 0]] + passes[:, graph.pairs[:, 1]]
            graph.transfers(rows, direction)[...] += both * remote
        return rows

    def lengths(self, times: IntArray) -> FloatArray:
        """Give the length of every cut's path, about, shape (N, cuts), for the times of plans, shape (N, C)."""
        product: FloatArray = times.astype(np.float64) @ self.rows.T.astype(np.float64)  # much faster than of integers
        return product


BATCH = 64
"""Plans whose paths are found together."""


def starting_cuts(pool: CutPool, times: Times, deadline: Deadline) -> None:
    """Add the critical paths of a plan as it is, with one stage or one rank heavier, and with one transfer slower.

    ``times`` are those of the plan, shape (C,). Stops when the deadline passes, but for the first of these.
    """
    variations = _variations(pool.graph, times)
    while copies := list(islice(variations, BATCH)):
        _, visits = pool.graph.critical_paths(np.stack(copies))
        pool.add(visits)
        if deadline.passed:
            return


def _variations(graph: EventGraph, times: Times) -> Iterator[Times]:
    """Give the times of a plan, and what they would be if one of them were larger."""
    yield times
    pipeline = graph.pipeline
    sets = [np.array([stage]) for stage in range(graph.num_stages)]
    if not pipeline.one_each:
        sets += [stages for stages in pipeline.stages_of if len(stages) > 1]
    for percent in (SLIGHTLY, MUCH):
        for members in sets:
            row = times.copy()
            for passes in graph.passes(row):
                passes[members] += passes[members] * percent // 100
            yield row
    slower = max(1, int(graph.passes(times)[0].mean()))
    for boundary in np.flatnonzero(~pipeline.turns).tolist():
        row = times.copy()
        for direction in range(graph.num_directions):
            if graph.blocking:
                graph.of_direction(graph.passes(row), direction)[boundary : boundary + 2] += slower
            graph.transfers(row, direction)[boundary] += slower
        yield row
