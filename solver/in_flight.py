"""What ranks keep between passes, read off their orders.

A microbatch is kept whole on a stage from its forward pass to its whole backward pass or input gradient; after an
input gradient the part that the weight gradient needs stays. A rank is fullest right after some forward pass; which
one depends on the sizes of its stages, so all moments are kept that can be the fullest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.schedules.actions import Order, Orders

Counts = tuple[tuple[int, int], ...]
"""Of every stage of a rank: microbatches kept whole, and those of which only the weight gradient is left."""


@dataclass(frozen=True)
class Moments:
    """Moments at which ranks can be fullest, M of them.

    Attributes
    ----------
    rank
        Whose moment it is, ascending, shape (M,).
    moment, stage
        A moment and a stage of its rank, shape (E,).
    whole, postponed
        Microbatches that the stage then keeps whole, and those of which only the weight gradient is left, shape (E,).
    """

    rank: IntArray
    moment: IntArray
    stage: IntArray
    whole: IntArray
    postponed: IntArray

    def fullest(self, kept: IntArray, for_weights: IntArray) -> tuple[IntArray, IntArray]:
        """Give what every stage keeps at the fullest moment of its rank, whole and postponed, shape (S,) each.

        Parameters
        ----------
        kept, for_weights
            Bytes of a microbatch kept whole, and of one whose weight gradient is left, on every stage, shape (S,).
        """
        if len(self.rank) > self.rank[-1] + 1:
            held = np.zeros(len(self.rank), dtype=np.int64)
            np.add.at(held, self.moment, self.whole * kept[self.stage] + self.postponed * for_weights[self.stage])
            starts = np.flatnonzero(np.diff(self.rank, prepend=-1))
            largest = np.flatnonzero(held == np.maximum.reduceat(held, starts)[self.rank])
            first = largest[np.unique(self.rank[largest], return_index=True)[1]]
            chosen = np.flatnonzero(np.isin(self.moment, first))
        else:
            chosen = np.arange(len(self.moment))
        whole, postponed = np.zeros_like(kept), np.zeros_like(kept)
        whole[self.stage[chosen]], postponed[self.stage[chosen]] = self.whole[chosen], self.postponed[chosen]
        return whole, postponed

    @property
    def least_alone(self) -> int:
        """The most microbatches that some stage keeps whole, of the stage where that is least."""
        most = np.zeros(int(self.stage.max()) + 1, dtype=np.int64)
        np.maximum.at(most, self.stage, self.whole)
        return int(most.min())

    @property
    def least_together(self) -> int:
        """The most microbatches that all stages of a rank keep whole at once, of the rank where that is least."""
        together = np.full(len(self.rank), np.iinfo(np.int64).max, dtype=np.int64)
        np.minimum.at(together, self.moment, self.whole)
        most = np.zeros(int(self.rank[-1]) + 1, dtype=np.int64)
        np.maximum.at(most, self.rank, together)
        return int(most.min())

    def alone(self, num_stages: int) -> tuple[IntArray, IntArray]:
        """Give what every stage keeps when it is fullest itself, whole and postponed, shape (Y, S) each.

        As with ranks several moments can be the fullest; a stage with fewer of them than Y repeats its last.
        """
        found: list[set[Counts]] = [set() for _ in range(num_stages)]
        for stage, whole, postponed in zip(self.stage, self.whole, self.postponed, strict=True):
            found[int(stage)].add(((int(whole), int(postponed)),))
        moments = [undominated(each) for each in found]
        most = max(len(each) for each in moments)
        padded = np.array([[each[min(y, len(each) - 1)][0] for each in moments] for y in range(most)], dtype=np.int64)
        return padded[:, :, 0], padded[:, :, 1]


def find_moments(orders: Orders) -> Moments:
    """Find the moments of all ranks."""
    owner: list[int] = []
    entries: list[tuple[int, int, int, int]] = []
    for rank, order in enumerate(orders):
        stages = sorted({stage for _, stage, _ in order})
        for counts in undominated(_full_moments(order, stages)):
            entries += [(len(owner), stage, *counts[i]) for i, stage in enumerate(stages)]
            owner.append(rank)
    columns = np.array(entries, dtype=np.int64).reshape(-1, 4).T
    return Moments(np.array(owner, dtype=np.int64), *columns)


def _full_moments(order: Order, stages: Sequence[int]) -> set[Counts]:
    """Give what is kept after every forward pass that no other forward pass follows; nothing without a backward."""
    if all(kind == "F" for kind, _, _ in order):
        return {((0, 0),) * len(stages)}
    held = {stage: [0, 0] for stage in stages}
    found: set[Counts] = set()
    growing = False
    for kind, stage, _ in order:
        if growing and kind != "F":
            found.add(tuple((whole, postponed) for whole, postponed in held.values()))
        growing = kind == "F"
        counts = held[stage]
        counts[0] += {"F": 1, "B": -1, "I": -1, "W": 0}[kind]
        counts[1] += {"F": 0, "B": 0, "I": 1, "W": -1}[kind]
    return found


def undominated(found: set[Counts]) -> list[Counts]:
    """Drop the moments at which another one keeps at least as much on every stage, whatever the sizes are.

    What is kept whole counts for more than what is postponed.
    """
    ordered = sorted(found, reverse=True)
    if len(ordered) < 2:
        return ordered
    counts = np.array(ordered, dtype=np.int64)
    measure = np.concatenate([counts[:, :, 0], counts.sum(axis=2)], axis=1)
    sequence = np.argsort(-measure.sum(axis=1), kind="stable")
    kept = np.zeros((0, measure.shape[1]), dtype=np.int64)
    chosen = []
    for index in sequence.tolist():
        if not (kept >= measure[index]).all(axis=1).any():
            kept = np.concatenate([kept, measure[index : index + 1]])
            chosen.append(ordered[index])
    return chosen
