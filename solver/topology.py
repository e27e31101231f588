"""Where stages can be placed, and what the paths between those places cost.

A *slot* is what one stage occupies: as many devices of one node as its degrees of parallelism ask for. Slots that
nothing tells apart form a *location*; two locations that can be exchanged are *alike*.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from partita.models.cluster import Cluster, ExpandedNode, Link

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Location:
    """Slots of one node that nothing tells apart.

    Attributes
    ----------
    node
        The node's name.
    slots
        The names of the devices of each slot.
    sort
        Locations of one sort have the same links.
    """

    node: str
    slots: tuple[tuple[str, ...], ...]
    sort: int


@dataclass(frozen=True, slots=True)
class Path:
    """The links between two slots, and their bandwidth (bytes/s, one direction) and latency (s) together."""

    names: tuple[str, ...]
    bandwidth: float
    latency: float


NO_PATH = Path((), float("inf"), 0.0)
"""Between a slot and itself: nothing is sent."""


class Topology:
    """Locations and paths of a cluster for stages of ``width`` devices.

    Parameters
    ----------
    cluster
        The machines.
    width
        Devices of a stage, all on one node.
    most_stages
        Of nodes that are alike no more are kept than there can be stages.
    only
        The names of the nodes to keep; None for all.
    """

    def __init__(self, cluster: Cluster, width: int, most_stages: int, only: frozenset[str] | None = None) -> None:
        self.device = cluster.devices[cluster.nodes[0].device]
        self._links = {frozenset(link.between): link for link in cluster.links}
        self.nodes: dict[str, ExpandedNode] = {}
        self.locations: list[Location] = []
        self._add_locations(cluster, width, most_stages, only)

    def _add_locations(self, cluster: Cluster, width: int, most_stages: int, only: frozenset[str] | None) -> None:
        linked = {end for pair in self._links for end in pair}
        linked_devices = {end for end in linked if ":" in end}
        singled_out = {end.partition(":")[0] for end in linked_devices}
        kept: dict[object, int] = {}
        sets: dict[object, int] = {}
        for node in cluster.expanded_nodes():
            if node.count < width or (only is not None and node.name not in only):
                continue
            own = node.name if node.name in linked or node.name in singled_out else None
            sort = (node.count // width, node.fabric, node.uplink, own)
            kept[sort] = kept.get(sort, 0) + 1
            if kept[sort] > most_stages and only is None:
                continue
            self.nodes[node.name] = node
            names = [f"{node.name}:{index}" for index in range(node.count)]
            plain = [name for name in names if name not in linked_devices]
            slots = tuple(tuple(plain[i : i + width]) for i in range(0, len(plain) - width + 1, width))
            if slots:
                self.locations.append(Location(node.name, slots, sets.setdefault((sort, "plain"), len(sets))))
            for name in names:
                if name in linked_devices:
                    self.locations.append(Location(node.name, ((name,),), sets.setdefault(name, len(sets))))

    @cached_property
    def num_slots(self) -> int:
        """How many stages there is room for (of nodes that are alike, only those kept count)."""
        return sum(len(location.slots) for location in self.locations)

    def path(self, first: int, second: int) -> Path:
        """Give the path between a slot of one location and another slot of the same or another one."""
        here, there = self.locations[first], self.locations[second]
        if first != second:
            for ends, name in self._explicit(here, there):
                link = self._links.get(ends)
                if link is not None:
                    return Path((name,), link.bandwidth_bytes_per_s, link.latency_s)
        a, b = self.nodes[here.node], self.nodes[there.node]
        if here.node == there.node:
            return NO_PATH if a.fabric is None else _single(f"{a.name} fabric", a.fabric)
        assert a.uplink is not None and b.uplink is not None, "nodes of a larger cluster have uplinks"
        return Path(
            (f"{a.name} uplink", f"{b.name} uplink"),
            min(a.uplink.bandwidth_bytes_per_s, b.uplink.bandwidth_bytes_per_s),
            a.uplink.latency_s + b.uplink.latency_s,
        )

    def _explicit(self, here: Location, there: Location) -> list[tuple[frozenset[str], str]]:
        """Give the ends and names under which a link between two locations may be listed, the nearest first."""
        found = []
        if len(here.slots) == len(there.slots) == 1:
            a, b = here.slots[0][0], there.slots[0][0]
            found.append((frozenset((a, b)), f"link {a} - {b}"))
        if here.node != there.node:
            found.append((frozenset((here.node, there.node)), f"link {here.node} - {there.node}"))
        return found

    @cached_property
    def _classes(self) -> tuple[list[tuple[float, float]], IntArray]:
        sort = np.array([location.sort for location in self.locations], dtype=np.int64)
        examples = {number: np.flatnonzero(sort == number)[:2].tolist() for number in range(int(sort.max()) + 1)}
        classes: dict[tuple[float, float], int] = {}
        between = np.zeros((len(examples), len(examples)), dtype=np.int64)
        within = np.zeros(len(examples), dtype=np.int64)
        for a, firsts in examples.items():
            within[a] = self._class_number(firsts[0], firsts[0], classes)
            for b, seconds in examples.items():
                if a != b or len(firsts) > 1:
                    between[a, b] = self._class_number(firsts[0], seconds[-1], classes)
        table = between[sort[:, None], sort[None, :]]
        np.fill_diagonal(table, within[sort])
        return list(classes), table

    def _class_number(self, first: int, second: int, classes: dict[tuple[float, float], int]) -> int:
        path = self.path(first, second)
        return classes.setdefault((path.bandwidth, path.latency), len(classes))

    @property
    def classes(self) -> list[tuple[float, float]]:
        """The different (bandwidth, latency) of all paths."""
        return self._classes[0]

    @property
    def class_of(self) -> IntArray:
        """The class of the path between any two locations, shape (locations, locations)."""
        return self._classes[1]

    @cached_property
    def node_of(self) -> IntArray:
        """The node of every location, as a number, shape (locations,)."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(loc.node, len(numbers)) for loc in self.locations], dtype=np.int64)

    @cached_property
    def same_node(self) -> BoolArray:
        """Whether two locations belong to one node, shape (locations, locations)."""
        return np.asarray(self.node_of[:, None] == self.node_of[None, :])

    @cached_property
    def usable(self) -> BoolArray:
        """Whether two stages can be on two locations: a location with one slot holds one; as ``same_node``."""
        usable = np.ones_like(self.class_of, dtype=bool)
        np.fill_diagonal(usable, [len(location.slots) > 1 for location in self.locations])
        return usable

    @cached_property
    def inside_classes(self) -> list[int]:
        """The classes of path between two stages on one node."""
        return np.unique(self.class_of[self.usable & self.same_node]).tolist()  # type: ignore[no-any-return]

    @cached_property
    def between_classes(self) -> list[int]:
        """The classes of path between two stages on different nodes."""
        return np.unique(self.class_of[~self.same_node]).tolist()  # type: ignore[no-any-return]

    @cached_property
    def most_on_a_node(self) -> int:
        """The most stages that one node can hold."""
        counts = np.array([len(location.slots) for location in self.locations], dtype=np.int64)
        return int(np.bincount(self.node_of, weights=counts).max())

    @cached_property
    def twins(self) -> IntArray:
        """The set of interchangeable nodes that the node of each location belongs to, shape (locations,).

        Two nodes are interchangeable when exchanging all their locations, in order, changes no path.
        """
        members = [np.flatnonzero(self.node_of == node) for node in range(int(self.node_of.max()) + 1)]
        sizes = [tuple(len(self.locations[place].slots) for place in each.tolist()) for each in members]
        number = np.arange(len(members))
        for node in range(len(members)):
            for first in range(node):
                if number[first] == first and sizes[first] == sizes[node]:
                    order = np.arange(len(self.locations))
                    order[members[node]], order[members[first]] = members[first], members[node]
                    if (self.class_of[np.ix_(order, order)] == self.class_of).all():
                        number[node] = first
                        break
        return number[self.node_of]

    @cached_property
    def alike(self) -> IntArray:
        """The set of interchangeable locations that each belongs to, shape (locations,).

        Two locations are interchangeable when they have as many slots and the same paths to themselves and to all
        others: exchanging them changes nothing but names.
        """
        sizes = [len(location.slots) for location in self.locations]
        class_of = self.class_of
        together = self.same_node
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

    def in_order(self, num_stages: int) -> IntArray | None:
        """Place stages by filling one location after the other; None when there are too few slots."""
        order = [index for index, location in enumerate(self.locations) for _ in location.slots]
        return np.array(order[:num_stages], dtype=np.int64) if len(order) >= num_stages else None

    def canonical(self, location: IntArray) -> IntArray:
        """Rename interchangeable nodes and locations by first use, so that equal plans look equal."""
        location = self._with_nodes_renamed(location)
        members: dict[int, list[int]] = {}
        for index, number in enumerate(self.alike.tolist()):
            members.setdefault(number, []).append(index)
        used: dict[int, int] = {}
        renamed: dict[int, int] = {}
        for old in location.tolist():
            if old not in renamed:
                alike = int(self.alike[old])
                renamed[old] = members[alike][used.get(alike, 0)]
                used[alike] = used.get(alike, 0) + 1
        return np.array([renamed[old] for old in location.tolist()], dtype=np.int64)

    def _with_nodes_renamed(self, location: IntArray) -> IntArray:
        """Rename interchangeable nodes in the order of their first use, where that is not a matter of locations."""
        if len(set(self.twins.tolist())) == len(set(self.node_of.tolist())) or len(self.locations) == len(
            set(self.node_of.tolist())
        ):
            return location
        waiting: dict[int, list[int]] = {}
        for node in dict.fromkeys(self.node_of.tolist()):
            place = int(np.flatnonzero(self.node_of == node)[0])
            waiting.setdefault(int(self.twins[place]), []).append(node)
        renamed = np.arange(len(self.locations))
        for node in dict.fromkeys(self.node_of[location].tolist()):
            own = np.flatnonzero(self.node_of == node)
            target = waiting[int(self.twins[own[0]])].pop(0)
            renamed[own] = np.flatnonzero(self.node_of == target)
        return renamed[location]

    def devices(self, location: IntArray) -> list[tuple[str, ...]]:
        """Give the devices of every stage, slots of a location being handed out in order."""
        taken: dict[int, int] = {}
        given = []
        for place in location.tolist():
            given.append(self.locations[place].slots[taken.get(place, 0)])
            taken[place] = taken.get(place, 0) + 1
        return given


def _single(name: str, link: Link) -> Path:
    return Path((name,), link.bandwidth_bytes_per_s, link.latency_s)
