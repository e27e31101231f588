"""Where ranks can be placed, and what the paths between those places cost.

A *slot* is what one rank occupies: as many devices as its degrees of parallelism ask for, on one node or, where its
replicas are spread, as many on each node of a set of similar ones. Slots that nothing tells apart form a *location*;
two locations that can be exchanged are *alike*. A set of nodes goes by the name of its first one: all replicas of the
pipeline are placed alike, so that paths inside and between sets are those inside and between their first nodes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from partita.models.cluster import Cluster, ExpandedNode, Link
from partita.solver.arrays import BoolArray, IntArray
from partita.solver.exchanges import Exchanges


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
    kind
        The number of its kind of device, in the order in which the cluster's nodes name them.
    """

    node: str
    slots: tuple[tuple[str, ...], ...]
    sort: int
    kind: int


@dataclass(frozen=True, slots=True)
class Path:
    """The links between two slots, and their bandwidth (bytes/s, one direction) and latency (s) together."""

    names: tuple[str, ...]
    bandwidth: float
    latency: float


NO_PATH = Path((), float("inf"), 0.0)
"""Between a slot and itself, where nothing is sent."""


class Topology:
    """Locations and paths of a cluster for stages of ``width`` devices on each of ``span`` nodes.

    Parameters
    ----------
    cluster
        The machines.
    width
        Devices of a stage on one node.
    most_stages
        Of nodes that are alike no more are kept than there can be stages.
    only
        The sets of nodes to keep, by name; None for all.
    inside
        Whether a stage uses the fabric of its node itself, not only between two stages.
    span
        Nodes of a stage.

    Attributes
    ----------
    kinds, devices_by_kind
        The Q kinds of device that the cluster's nodes have.
    nodes, sets
        The nodes kept, of a set its first one, by name; the names of the nodes of every set.
    """

    def __init__(
        self,
        cluster: Cluster,
        width: int,
        most_stages: int,
        only: Collection[tuple[str, ...]] | None = None,
        inside: bool = True,
        span: int = 1,
    ) -> None:
        self._inside, self._span = inside, span
        self.kinds = cluster.kinds
        self.devices_by_kind = tuple(cluster.devices[kind] for kind in self.kinds)
        self._links = {frozenset(link.between): link for link in cluster.links}
        self.nodes: dict[str, ExpandedNode] = {}
        self.sets: set[tuple[str, ...]] = set()
        self.locations: list[Location] = []
        self._add_locations(cluster, width, most_stages, only)

    def _add_locations(
        self, cluster: Cluster, width: int, most_stages: int, only: Collection[tuple[str, ...]] | None
    ) -> None:
        linked = {end for pair in self._links for end in pair}
        linked_devices = {end for end in linked if ":" in end}
        linked_nodes = {end.partition(":")[0] for end in linked}
        kept: dict[object, int] = {}
        sets: dict[object, int] = {}
        for members in node_sets(cluster, width, self._span, only):
            node = members[-1]  # the smallest
            kind, room = self.kinds.index(node.device), node.count // width
            own = node.name if node.name in linked_nodes else None
            fabric = node.fabric if self._inside or room > 1 else None
            sort = (kind, room, fabric, node.uplink, own)
            kept[sort] = kept.get(sort, 0) + 1
            if kept[sort] > most_stages and only is None:
                continue
            name = members[0].name
            self.nodes[name] = members[0]
            self.sets.add(tuple(each.name for each in members))
            if self._span > 1:
                slots = tuple(_slot(members, width, number) for number in range(room))
                self.locations.append(Location(name, slots, sets.setdefault((sort, "plain"), len(sets)), kind))
                continue
            names = [f"{name}:{index}" for index in range(node.count)]
            plain = [each for each in names if each not in linked_devices]
            slots = tuple(tuple(plain[i : i + width]) for i in range(0, len(plain) - width + 1, width))
            if slots:
                self.locations.append(Location(name, slots, sets.setdefault((sort, "plain"), len(sets)), kind))
            for each in names:
                if each in linked_devices:
                    self.locations.append(Location(name, ((each,),), sets.setdefault(each, len(sets)), kind))

    @cached_property
    def kind_of(self) -> IntArray:
        """The kind of device of every location, shape (locations,)."""
        return np.array([location.kind for location in self.locations], dtype=np.int64)

    @cached_property
    def reserves(self) -> IntArray:
        """Bytes kept free on the devices of every kind, shape (Q,)."""
        return np.array([device.reserve_bytes for device in self.devices_by_kind], dtype=np.int64)

    @cached_property
    def slots(self) -> IntArray:
        """How many stages every location has room for, shape (locations,)."""
        return np.array([len(location.slots) for location in self.locations], dtype=np.int64)

    @property
    def num_slots(self) -> int:
        """How many stages there is room for (of nodes that are alike, only those kept count)."""
        return int(self.slots.sum())

    def path(self, first: int, second: int) -> Path:
        """Give the path between a slot of one location and another slot of the same or another one.

        In a location of a single slot it is the way by which the devices of a stage reach each other or the host.
        """
        here, there = self.locations[first], self.locations[second]
        if first != second:
            for ends, name in self._explicit(here, there):
                link = self._links.get(ends)
                if link is not None:
                    return Path((name,), link.bandwidth_bytes_per_s, link.latency_s)
        elif len(here.slots) == 1 and not self._inside:
            return NO_PATH
        a, b = self.nodes[here.node], self.nodes[there.node]
        if here.node == there.node:
            return NO_PATH if a.fabric is None else _single(f"{a.name} fabric", a.fabric)
        return self._between(a, b)

    @staticmethod
    def _between(a: ExpandedNode, b: ExpandedNode) -> Path:
        """Give the path from uplink to uplink."""
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
    def _classes(self) -> tuple[list[tuple[float, float]], IntArray, IntArray]:
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
        across = np.zeros(len(self.locations), dtype=np.int64)
        if self._span > 1:
            for place, location in enumerate(self.locations):
                path = self._between(self.nodes[location.node], self.nodes[location.node])
                across[place] = classes.setdefault((path.bandwidth, path.latency), len(classes))
        return list(classes), table, across

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

    @property
    def across(self) -> IntArray:
        """The class of the path between the nodes of one set, shape (locations,); 0 where a stage is on one node."""
        return self._classes[2]

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
        np.fill_diagonal(usable, self.slots > 1)
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
    def usable_classes(self) -> list[int]:
        """The classes of path that some plan can use: between two stages, or within the devices of one."""
        within = np.diagonal(self.class_of).tolist() if self._inside else []
        spread = self.across.tolist() if self._span > 1 else []
        found = {*self.inside_classes, *self.between_classes, *within, *spread}
        return sorted(found) or [int(self.class_of[0, 0])]

    @cached_property
    def most_on_a_node(self) -> int:
        """The most stages that one node can hold."""
        return int(np.bincount(self.node_of, weights=self.slots).max())

    @cached_property
    def _exchanges(self) -> Exchanges:
        sizes = list(zip(self.slots.tolist(), self.kind_of.tolist(), strict=True))
        looks = self.class_of.copy()
        looks[np.diag_indices_from(looks)] += (
            len(self.classes) * self.across
        )  # what replicas use tells places apart too
        return Exchanges(sizes, self.node_of, looks)

    @property
    def alike(self) -> IntArray:
        """The set of interchangeable locations that each belongs to, shape (locations,)."""
        return self._exchanges.alike

    def in_order(self, num_ranks: int) -> IntArray | None:
        """Place ranks by filling one location after the other; None when there are too few slots."""
        order = np.repeat(np.arange(len(self.slots)), self.slots)
        return order[:num_ranks] if len(order) >= num_ranks else None

    def on_few_nodes(self, num_ranks: int) -> IntArray | None:
        """Place ranks in one location that has room for all, or else by filling the largest first; fast ones before.

        None when there are too few slots.
        """
        inside = [self.classes[number] for number in np.diagonal(self.class_of)]
        slots = self.slots.tolist()

        def urgency(place: int) -> tuple[int, float, float]:
            bandwidth, latency = inside[place]
            return -min(slots[place], num_ranks), latency, -bandwidth

        order = np.array(sorted(range(len(slots)), key=urgency), dtype=np.int64)
        places: IntArray = np.repeat(order, self.slots[order])
        return places[:num_ranks] if len(places) >= num_ranks else None

    def in_runs(self, runs: Sequence[int]) -> IntArray | None:
        """Place runs of ranks, each in one location, the longest first; None when one has no room."""
        room = self.slots.tolist()
        chosen = [0] * len(runs)
        for run in sorted(range(len(runs)), key=lambda each: -runs[each]):
            fits = [place for place, left in enumerate(room) if left >= runs[run]]
            if not fits:
                return None
            chosen[run] = min(fits, key=lambda place: room[place])
            room[chosen[run]] -= runs[run]
        return np.repeat(np.array(chosen, dtype=np.int64), runs)

    def canonical(self, location: IntArray) -> IntArray:
        """Rename interchangeable nodes and locations by first use, so that equal plans look equal."""
        return self._exchanges.canonical(location)

    def devices(self, location: IntArray) -> list[tuple[str, ...]]:
        """Give the devices of every stage, slots of a location being handed out in order."""
        taken: dict[int, int] = {}
        given = []
        for place in location.tolist():
            given.append(self.locations[place].slots[taken.get(place, 0)])
            taken[place] = taken.get(place, 0) + 1
        return given


def node_sets(
    cluster: Cluster, width: int, span: int, only: Collection[tuple[str, ...]] | None = None
) -> list[list[ExpandedNode]]:
    """Give the sets of ``span`` nodes on which a stage can be, the largest node of each first.

    The nodes of a set have equal devices, fabrics and uplinks and no links of their own; they are taken in order of how
    many stages they hold, so that sets hold as many as they can. What is left over is not used.

    Parameters
    ----------
    cluster, width, span
        The machines, and how many devices on how many nodes a stage has.
    only
        The sets by the names of their nodes, instead of these.
    """
    nodes = [node for node in cluster.expanded_nodes() if node.count >= width]
    if only is not None:
        named = {node.name: node for node in nodes}
        members = [[named[name] for name in names] for names in only if all(name in named for name in names)]
        return [sorted(each, key=lambda node: -(node.count // width)) for each in members]
    if span == 1:
        return [[node] for node in nodes]
    linked = {end.partition(":")[0] for link in cluster.links for end in link.between}
    by_look: dict[object, list[ExpandedNode]] = {}
    for node in nodes:
        if node.name not in linked:
            by_look.setdefault((node.device, node.fabric, node.uplink), []).append(node)
    found = []
    for each in by_look.values():
        each.sort(key=lambda node: -(node.count // width))
        found += [each[start : start + span] for start in range(0, len(each) - span + 1, span)]
    return found


def similar(cluster: Cluster, names: Sequence[str]) -> bool:
    """Tell whether nodes can form a set."""
    linked = {end.partition(":")[0] for link in cluster.links for end in link.between}
    looks = {(node.device, node.fabric, node.uplink) for node in cluster.expanded_nodes() if node.name in names}
    return len(looks) == 1 and linked.isdisjoint(names)


def _slot(members: Sequence[ExpandedNode], width: int, number: int) -> tuple[str, ...]:
    """Name the devices of a slot, those of the first node first."""
    devices = range(number * width, (number + 1) * width)
    return tuple(f"{node.name}:{device}" for node in members for device in devices)


def _single(name: str, link: Link) -> Path:
    return Path((name,), link.bandwidth_bytes_per_s, link.latency_s)
