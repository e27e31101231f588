"""Which locations and nodes nothing but their names tells apart, and one name for all placements that are the same.

Two placements are the same when exchanges turn one into the other: of two locations, or of all locations of two nodes
in any order, that leave every path, every size and who shares a node as they are.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from partita.solver.arrays import BoolArray, IntArray

MOST_STEPS = 20_000
"""Steps of looking for exchanges of nodes in one cluster; nodes not compared by then count as different."""

MOST_PLACES = 200
"""Locations of a node that is compared with others."""

MOST_ORDERS = 64
"""Orders in which nodes can be exchanged; where there are more, each two nodes are exchanged in one order only."""

MOST_NAMES = 200
"""Names of one placement by exchanges in several orders; where there are more, placements may stay apart."""


class Exchanges:
    """The exchanges that change nothing but names.

    Parameters
    ----------
    sizes
        How many slots every location has, and the kind of its devices.
    node_of
        The node of every location, shape (locations,).
    class_of
        The class of the path between any two locations, and within each, shape (locations, locations); symmetric.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], node_of: IntArray, class_of: IntArray) -> None:
        self._sizes, self._node_of, self._class_of = sizes, node_of, class_of
        self._steps = 0
        self._names: dict[tuple[int, ...], tuple[int, ...]] = {}

    @cached_property
    def alike(self) -> IntArray:
        """The set of interchangeable locations that each belongs to, shape (locations,).

        Two locations are interchangeable when they have as many slots of one kind and the same paths to themselves and
        to all others: exchanging them changes nothing but names.
        """
        sizes, class_of = self._sizes, self._class_of
        together: BoolArray = self._node_of[:, None] == self._node_of[None, :]
        number = np.arange(len(sizes))
        firsts: dict[object, list[int]] = {}
        for place in range(len(sizes)):
            key = (sizes[place], int(class_of[place, place]), np.sort(class_of[place]).tobytes())
            for first in firsts.setdefault(key, []):
                others = np.ones(len(sizes), dtype=bool)
                others[[place, first]] = False
                same_paths = (class_of[place] == class_of[first])[others].all()
                if same_paths and (together[place] == together[first])[others].all():
                    number[place] = first
                    break
            else:
                firsts[key].append(place)
        return number

    @cached_property
    def _mates(self) -> dict[int, list[int]]:
        """The locations of every set of interchangeable ones, ascending."""
        mates: dict[int, list[int]] = {}
        for place, number in enumerate(self.alike.tolist()):
            mates.setdefault(number, []).append(place)
        return mates

    @cached_property
    def _nodes(self) -> list[list[list[int]]]:
        """Sets of nodes that can be exchanged; each node as its locations, in an order in which they can.

        Nodes of one location are left out: to exchange them is to exchange their locations.
        """
        places: dict[int, list[int]] = {}
        for place, node in enumerate(self._node_of.tolist()):
            places.setdefault(node, []).append(place)
        found: dict[object, list[list[list[int]]]] = {}
        for own in places.values():
            if not 1 < len(own) <= MOST_PLACES:
                continue
            looks = tuple(sorted((self._sizes[place], np.sort(self._class_of[place]).tobytes()) for place in own))
            for twins in found.setdefault(looks, []):
                order = next(self._orders(twins[0], own), None)
                if order is not None:
                    twins.append(order)
                    break
            else:
                found[looks].append([own])
        return [twins for sets in found.values() for twins in sets if len(twins) > 1]

    @cached_property
    def _further(self) -> list[IntArray]:
        """All exchanges of two nodes, as renamings, where some nodes can be exchanged in several orders."""
        renamings = []
        for twins in self._nodes:
            if len([*zip(range(2), self._orders(twins[0], twins[1]), strict=False)]) < 2:
                continue
            for first, second in combinations(twins, 2):
                for order in self._orders(first, second):
                    renaming = np.arange(len(self._sizes))
                    renaming[first], renaming[order] = order, first
                    renamings.append(renaming)
                    if len(renamings) > MOST_ORDERS:
                        return []
        return renamings if self._steps <= MOST_STEPS else []

    def _orders(self, first: list[int], second: list[int]) -> Iterator[list[int]]:
        """Give the orders of one node's locations in which they can be exchanged with those of another.

        Of orders that differ by interchangeable locations only one is given. There may be more after too many steps.
        """
        self._steps += len(first)
        if self._steps > MOST_STEPS:
            return iter(())
        class_of, alike = self._class_of, self.alike
        outside = np.ones(len(self._sizes), dtype=bool)
        outside[first + second] = False

        def look(place: int, own: list[int], other: list[int]) -> object:
            near, far = np.sort(class_of[place, own]), np.sort(class_of[place, other])
            paths = class_of[place, outside]
            return self._sizes[place], class_of[place, place], near.tobytes(), far.tobytes(), paths.tobytes()

        looks = [look(place, second, first) for place in second]
        wanted = [look(place, first, second) for place in first]

        def fits(order: list[int], place: int) -> bool:
            here = first[len(order)]
            before = first[: len(order)]
            same_node = (class_of[here, before] == class_of[place, order]).all()
            return bool(same_node and (class_of[here, order] == class_of[place, before]).all())

        def extend(order: list[int]) -> Iterator[list[int]]:
            if len(order) == len(first):
                yield list(order)
                return
            tried: set[int] = set()
            for place, its in zip(second, looks, strict=True):
                if place in order or alike[place] in tried or its != wanted[len(order)]:
                    continue
                tried.add(int(alike[place]))
                self._steps += 1
                if self._steps > MOST_STEPS:
                    return
                if fits(order, place):
                    yield from extend([*order, place])

        return extend([])

    def canonical(self, location: IntArray) -> IntArray:
        """Rename interchangeable nodes and locations by first use, so that equal placements look equal."""
        name = self._by_first_use(location)
        start = tuple(name.tolist())
        if start not in self._names:
            if not self._further:
                return name
            same, waiting = {start}, [name]
            while waiting and len(same) <= MOST_NAMES:
                begun = waiting.pop()
                for renaming in self._further:
                    other = self._by_first_use(renaming[begun])
                    if tuple(other.tolist()) not in same:
                        same.add(tuple(other.tolist()))
                        waiting.append(other)
            if waiting:  # too many: from now on by first use alone
                self._further.clear()
                return name
            self._names |= dict.fromkeys(same, min(same))
        return np.array(self._names[start], dtype=np.int64)

    def _by_first_use(self, location: IntArray) -> IntArray:
        """Rename nodes in one of the orders in which they can be exchanged, then locations, by first use."""
        location = self._with_nodes_renamed(location)
        used: dict[int, int] = {}
        renamed: dict[int, int] = {}
        for old in location.tolist():
            if old not in renamed:
                alike = int(self.alike[old])
                renamed[old] = self._mates[alike][used.get(alike, 0)]
                used[alike] = used.get(alike, 0) + 1
        return np.array([renamed[old] for old in location.tolist()], dtype=np.int64)

    def _with_nodes_renamed(self, location: IntArray) -> IntArray:
        if not self._nodes:
            return location
        renamed = np.arange(len(self._sizes))
        for twins in self._nodes:
            number = {place: at for at, own in enumerate(twins) for place in own}
            used = dict.fromkeys(number[place] for place in location.tolist() if place in number)
            unused = [at for at in range(len(twins)) if at not in used]
            for target, at in zip(twins, [*used, *unused], strict=True):
                renamed[twins[at]] = target
        return renamed[location]
