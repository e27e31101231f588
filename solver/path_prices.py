"""What the paths of a pool cost where stages are intervals: work between positions, and transfers at positions."""

from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import BoolArray, FloatArray, IntArray, Times
from partita.solver.cuts import CutPool
from partita.solver.intervals import IntervalView

NEVER = np.iinfo(np.int64).max // 4
"""A time that nothing reaches."""


@dataclass(frozen=True, slots=True)
class Crossings:
    """Where transfers go from node to node: no more than ``most`` ranks in a row are on one node.

    Attributes
    ----------
    most
        The most stages that a node can hold.
    free
        Whether a boundary need not cross, shape (S - 1,): where a rank comes again among so many stages nothing
        follows, and the row is taken to end.
    """

    most: int
    free: BoolArray

    def least(self, prices: Times) -> Times:
        """Give the least total of crossings of every path, shape (Q,), from the price of each, shape (Q, S - 1)."""
        return np.asarray(self._by_row(prices)[-1].min(axis=1))

    def cheapest(self, prices: Times) -> BoolArray:
        """Give the boundaries that cross where that is cheapest for one path, shape (S - 1,)."""
        rows = self._by_row(prices[None])
        crosses = np.zeros(len(self.free), dtype=bool)
        row = int(rows[-1][0].argmin())
        for boundary in range(len(self.free) - 1, -1, -1):
            crosses[boundary] = row == 1
            row = int(rows[boundary][0].argmin()) if row == 1 else row - 1
        return crosses & ~self.free

    def _by_row(self, prices: Times) -> list[Times]:
        """Give the least totals before every boundary by the stages in a row so far, shape (Q, most + 1) each."""
        best = np.full((len(prices), self.most + 1), NEVER, dtype=prices.dtype)
        best[:, 1] = 0
        rows = [best]
        for boundary, free in enumerate(self.free):
            following = np.full_like(best, NEVER)
            following[:, 1] = rows[-1][:, 1:].min(axis=1) + (0 if free else prices[:, boundary])
            following[:, 2:] = rows[-1][:, 1:-1]
            rows.append(following)
        return rows


@dataclass(frozen=True, slots=True)
class Paths:
    """How often Q paths take the passes of every stage and the transfers between neighbors.

    Attributes
    ----------
    passes, transfers
        Shape (Q, K, S) and (Q, D, S - 1): K passes and D directions, those of all scenarios.
    crossing
        What it costs them at least when a boundary is between two nodes, shape (Q, S - 1).
    base
        What every plan pays at least for transfers, shape (Q,): the cheapest of every boundary, and the crossings.
    """

    passes: Times
    transfers: Times
    crossing: Times
    base: Times

    def part(self, chosen: IntArray) -> "Paths":
        """Give some of the paths."""
        return Paths(self.passes[chosen], self.transfers[chosen], self.crossing[chosen], self.base[chosen])


@dataclass(frozen=True, slots=True)
class Prices:
    """What a path pays each time.

    Attributes
    ----------
    work
        Sums of the work of every pass before every position, shape (K, G + 1).
    least, cheapest
        The least transfer at every position, shape (D, G + 1); the cheapest of those that a boundary can have, which is
        part of the paths' base, shape (D, S - 1).
    crossings
        Where boundaries are between nodes.
    """

    work: Times
    least: Times
    cheapest: Times
    crossings: Crossings

    def paths(self, passes: Times, transfers: Times, crossing: Times) -> Paths:
        """Price paths."""
        base = np.tensordot(transfers, self.cheapest, 2) + self.crossings.least(crossing)
        return Paths(passes, transfers, crossing, base)

    def mean(self, paths: Paths, weights: FloatArray) -> Paths:
        """Give one path, the weighted mean of all: its crossings are the same for all of them."""
        parts = (paths.passes, paths.transfers, paths.crossing)
        return self.paths(*(np.tensordot(weights, part, 1)[None] for part in parts))

    def lengths(self, paths: Paths, starts: IntArray, crosses: BoolArray | None = None) -> Times:
        """Give the length of every path for stages that start so, shape (Q,).

        Parameters
        ----------
        starts
            Shape (S + 1,).
        crosses
            Which boundaries are between nodes, shape (S - 1,); None for those that are cheapest for each path.
        """
        dear = self.least[:, starts[1:-1]] - self.cheapest
        length = np.tensordot(paths.passes, np.diff(self.work[:, starts], axis=1), 2)
        length = length + np.tensordot(paths.transfers, dear, 2)
        if crosses is None:
            return np.asarray(length + paths.base)
        always = np.tensordot(paths.transfers, self.cheapest, 2)
        return np.asarray(length + always + paths.crossing[:, crosses].sum(axis=1))


def price(view: IntervalView, pool: CutPool, low: IntArray, high: IntArray) -> tuple[Paths, Prices]:
    """Price all cuts of a pool where stages start within windows, shape (S + 1,) each."""
    cheapest, extra = _boundary_prices(view, low, high)
    pipeline, most = pool.graph.pipeline, view.instance.topology.most_on_a_node
    free = [pipeline.num_ranks <= most or pipeline.comes_again(stage, most) for stage in range(1, pipeline.num_stages)]
    crossings = Crossings(min(most, pipeline.num_stages), np.array(free, dtype=bool))
    prices = Prices(np.array(view.passes, dtype=np.int64), view.least, cheapest, crossings)
    passes, transfers = pool.counts()
    return prices.paths(passes, transfers, (transfers * extra).sum(axis=1)), prices


def least_transfers(view: IntervalView, pool: CutPool, low: IntArray, high: IntArray) -> IntArray:
    """Give the least that the transfers of every cut can cost, shape (cuts,).

    Every boundary costs at least a transfer on the best path; and of any c + 1 stages in a row, where c is the most
    stages that a node can hold, two neighbors are on different nodes.
    """
    return np.asarray(price(view, pool, low, high)[0].base)


def _boundary_prices(view: IntervalView, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Give every boundary's least price, and what a crossing between nodes adds at least, shape (D, S - 1) each."""
    added = view.between - view.least
    count = max(len(low) - 2, 0)
    cheapest, extra = np.zeros((2, len(view.least), count), dtype=np.int64)
    for boundary in range(count):
        part = slice(int(low[boundary + 1]), int(high[boundary + 1]) + 1)
        cheapest[:, boundary] = view.least[:, part].min(axis=1)
        extra[:, boundary] = added[:, part].min(axis=1)
    return cheapest, extra
