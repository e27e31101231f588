"""Where boundaries can lie: the sets of layers that can come before one, and what crosses it."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from partita.solver.arrays import BoolArray, FloatArray, IntArray
from partita.solver.grouping import Groups, group_layers
from partita.solver.steady.menu import Menu

MOST_CUTS = 3000
"""Cuts that are looked at; of a model with more, only those along one order of its layers."""
MOST_ENTRIES = 20_000_000
"""Figures of all possible stages that are kept at once; of a model with more, fewer cuts are looked at."""


Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Cuts:
    """The n cuts, from nothing to everything, each after those that it contains.

    Attributes
    ----------
    before
        The layers before each cut, shape (n, L).
    first, last
        The cuts at which each of the P possible stages begins and ends, sorted by ``last``, then by ``first``.
    complete
        Whether these are all cuts of the model.
    """

    before: BoolArray
    first: IntArray
    last: IntArray
    complete: bool

    def __len__(self) -> int:
        """Give the number of cuts."""
        return len(self.before)

    def thinned(self, count: int) -> "Cuts":
        """Give the possible stages between so many of these cuts, the first and the last among them."""
        kept = np.unique(np.linspace(0, len(self) - 1, count).round().astype(int))
        number = np.full(len(self), -1)
        number[kept] = np.arange(len(kept))
        possible = (number[self.first] >= 0) & (number[self.last] >= 0)
        return Cuts(self.before[kept], number[self.first][possible], number[self.last][possible], complete=False)

    def layers(self, stages: IntArray) -> BoolArray:
        """Give the layers of some possible stages, shape (stages, L)."""
        inside: BoolArray = self.before[self.last[stages]] & ~self.before[self.first[stages]]
        return inside

    def sums(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Add up a value of each layer, shape (L,), over every possible stage, shape (P,); exactly for integers."""
        before = self.before.astype(values.dtype) @ values
        total: npt.NDArray[Number] = before[self.last] - before[self.first]
        return np.maximum(total, 0) if total.dtype.kind == "f" else total


def find_cuts(menu: Menu, most: int = MOST_CUTS) -> Cuts:
    """Find all cuts; where these are more than ``most`` or make too many stages, some along one topological order."""
    groups = group_layers(menu.instance)
    per_stage = len(menu.tensor) * min(menu.devices, menu.microbatches)
    most = min(most, max(2, int((2 * MOST_ENTRIES / per_stage) ** 0.5)))
    found = _all_cuts(groups, most)
    complete = found is not None
    if found is None:
        kept = np.unique(np.linspace(0, len(groups), min(most, len(groups) + 1)).round().astype(int))
        found = [(1 << number) - 1 for number in kept.tolist()]
    member = np.array([[cut >> group & 1 for group in range(len(groups))] for cut in found], dtype=bool)
    first, last = _possible(found)
    return Cuts(member[:, groups.group_of], first, last, complete)


def _all_cuts(groups: Groups, most: int) -> list[int] | None:
    """Give all sets of groups that contain what their members need, as bits, smallest first; None for too many."""
    if len(groups) + 1 > most:
        return None
    if groups.total_order:
        return [(1 << number) - 1 for number in range(len(groups) + 1)]
    needs = [0] * len(groups)
    for group, successors in enumerate(groups.successors):
        for after in successors:
            needs[after] |= 1 << group
    found = {0}
    latest = {0}
    while latest:
        larger = set()
        for cut in latest:
            for group, needed in enumerate(needs):
                if not cut >> group & 1 and not needed & ~cut:
                    larger.add(cut | 1 << group)
        found |= larger
        if len(found) > most:
            return None
        latest = larger
    return sorted(found, key=lambda cut: (cut.bit_count(), cut))


def _possible(cuts: list[int]) -> tuple[IntArray, IntArray]:
    """Give the pairs of cuts of which the first is part of the second."""
    pairs = [(i, j) for j, after in enumerate(cuts) for i, before in enumerate(cuts[:j]) if not before & ~after]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def relayed(menu: Menu, cuts: Cuts) -> tuple[IntArray, IntArray]:
    """Give the bytes that cross every cut forward and backward with ``relay``, shape (n,) each."""
    edges = menu.instance.edges
    forward, backward = np.zeros(len(cuts), dtype=np.int64), np.zeros(len(cuts), dtype=np.int64)
    for number, consumers in enumerate(edges.consumers):
        crosses = cuts.before[:, edges.producer[number]] & ~cuts.before[:, consumers].all(axis=1)
        forward += crosses * edges.forward_bytes[number]
        backward += crosses * edges.backward_bytes[number]
    return forward, backward


def sent_directly(menu: Menu, cuts: Cuts) -> FloatArray:
    """Give the bytes that every possible stage sends and receives with ``direct``, resharding included.

    Shape (T, P) for T degrees of tensor parallelism.
    """
    edges, tensors = menu.instance.edges, menu.problem.model.tensors or ()
    total = np.zeros((len(menu.tensor), len(cuts.first)))
    for number, (consumer,) in enumerate(edges.consumers):
        produced, consumed = (
            cuts.before[cuts.last, layer] & ~cuts.before[cuts.first, layer]
            for layer in (edges.producer[number], consumer)
        )
        sends, receives = produced & ~consumed, consumed & ~produced
        moved = float(edges.forward_bytes[number] + edges.backward_bytes[number])
        extra = {each.tensor_parallel: each for each in tensors[number].resharding} if tensors else {}
        for row, degree in enumerate(menu.tensor):
            more = extra.get(degree)
            total[row] += sends * (moved + (2 * more.send_bytes if more else 0))
            total[row] += receives * (moved + (2 * more.receive_bytes if more else 0))
    return total
