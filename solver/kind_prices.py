"""What stages cost that are intervals on given kinds of device, with given paths between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from partita.solver.arrays import FloatArray, IntArray, Times
from partita.solver.cuts import CutPool
from partita.solver.figures import Figures
from partita.solver.instance import Instance
from partita.solver.intervals import IntervalView
from partita.solver.seats import Seating


@dataclass(frozen=True, slots=True)
class KindPaths:
    """How often Q paths take the passes of every stage and the transfers between neighbors.

    Attributes
    ----------
    passes, transfers
        Shape (Q, K, S) and (Q, D, S - 1): K passes and D directions, those of all scenarios.
    """

    passes: Times
    transfers: Times

    @classmethod
    def of(cls, pool: CutPool) -> "KindPaths":
        """Give the cuts of a pool."""
        return cls(*pool.counts())

    @classmethod
    def once(cls, num_passes: int, num_directions: int, num_stages: int) -> "KindPaths":
        """Give the path that takes everything once."""
        shapes = (1, num_passes, num_stages), (1, num_directions, num_stages - 1)
        return cls(*(np.ones(shape, dtype=np.int64) for shape in shapes))

    def __len__(self) -> int:
        """Give Q."""
        return len(self.passes)

    def part(self, chosen: IntArray | slice) -> "KindPaths":
        """Give some of the paths."""
        return KindPaths(self.passes[chosen], self.transfers[chosen])

    def mean(self, weights: FloatArray) -> "KindPaths":
        """Give one path, the weighted mean of all."""
        return KindPaths(*(np.tensordot(weights, each, 1)[None] for each in (self.passes, self.transfers)))


@dataclass(frozen=True, slots=True)
class KindPrices:
    """What a path pays each time.

    Attributes
    ----------
    work
        Sums of the work of every pass before every position on every kind of device, shape (kinds, K, G + 1).
    rides
        The least transfer at every position by every ride, shape (rides, D, G + 1).
    """

    work: IntArray
    rides: IntArray

    def starts(self, paths: KindPaths, stage: int, places: slice) -> Times:
        """Give what the start of a stage takes off, shape (kinds, rides, positions, Q)."""
        work = self.ends(paths, stage, places)[:, None]
        if stage == 0:
            return np.asarray(np.broadcast_to(work, (len(work), len(self.rides), *work.shape[2:])))
        moved = np.einsum("qk,rkp->rpq", paths.transfers[:, :, stage - 1], self.rides[:, :, places], optimize=True)
        return np.asarray(work - moved)

    def ends(self, paths: KindPaths, stage: int, places: slice) -> Times:
        """Give what the end of a stage adds, shape (kinds, positions, Q)."""
        ends: Times = np.einsum("qk,dkp->dpq", paths.passes[:, :, stage], self.work[:, :, places], optimize=True)
        return ends

    def lengths(self, paths: KindPaths, starts: IntArray, kinds: IntArray, rides: IntArray) -> Times:
        """Give the length of every path, shape (Q,), for stages that start so, on these kinds, by these rides.

        Shapes of the stages are (S + 1,), (S,) and (S,); the first ride leads nowhere.
        """
        work = self.work[kinds, :, starts[1:]] - self.work[kinds, :, starts[:-1]]
        moved = self.rides[rides[1:], :, starts[1:-1]]
        return np.asarray(np.tensordot(paths.passes, work.T, 2) + np.tensordot(paths.transfers, moved.T, 2))


def prices_by_kind(view: IntervalView, of_kinds: Sequence[IntervalView], seating: Seating) -> KindPrices:
    """Price every kind of device and every ride of a seating."""
    rides = [view.transfers(classes) for classes in seating.rides]
    return KindPrices(np.array([each.passes for each in of_kinds], dtype=np.int64), np.array(rides, dtype=np.int64))


def views_by_kind(view: IntervalView) -> list[IntervalView]:
    """Give the costs of intervals on every kind of device, the reserve left out: it is the least of all kinds."""
    kinds = range(len(view.instance.ways.kinds))
    return [IntervalView(_instance_on(view.instance, q), _figures_on(view.figures, q), view.groups) for q in kinds]


def _instance_on(instance: Instance, kind: int) -> Instance:
    """Give an instance whose layers run on one kind of device, in every scenario."""
    ways = instance.ways
    costs = ways.costs.map(itemgetter(slice(kind, kind + 1)))
    several = tuple(_instance_on(case, kind) for case in instance.several)
    return replace(instance, ways=replace(ways, kinds=(ways.kinds[kind],), costs=costs), several=several)


def _figures_on(figures: Figures, kind: int) -> Figures:
    """Give the figures of that instance."""
    by_way = figures.by_way[:, kind : kind + 1]
    forward, backward, weight_gradient = by_way.min(axis=(1, 2))
    several = tuple(_figures_on(case, kind) for case in figures.several)
    times = {"forward": forward, "backward": backward, "weight_gradient": weight_gradient, "by_way": by_way}
    return replace(figures, **times, several=several)
