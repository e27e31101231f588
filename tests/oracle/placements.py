"""Every way to put ranks on devices, and the way between two devices.

A *place* is a device that an explicit link names, or all other devices of a node together: nothing tells these apart.
Two places are equal when exchanging them changes nothing but names: they have as many slots, the same fabric where it
is used (between two slots, or by a rank within its own), the same ways to all other places, and share their nodes with
the same places. Two nodes are equal when exchanging all places of
one with those of the other, one by one, changes nothing. Two placements are the same when such exchanges, one after the
other, turn one into the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

from partita.models.cluster import Cluster

Placement = tuple[str, ...]
"""The first device of every rank, such as ``node0:2``."""


@dataclass(frozen=True)
class Way:
    """How bytes get from one device to another."""

    latency_s: float
    bandwidth: float

    def seconds(self, size: float) -> float:
        """Give the seconds that ``size`` bytes take."""
        return self.latency_s + size / self.bandwidth


def node_of(device: str) -> str:
    """Give the node of a device, or of a node itself."""
    return device.partition(":")[0]


def way_between(cluster: Cluster, one: str, other: str) -> Way:
    """Find the way between two different devices: own link, fabric, link of the nodes, or uplink to uplink."""
    explicit = {frozenset(link.between): Way(link.latency_s, link.bandwidth_bytes_per_s) for link in cluster.links}
    if frozenset((one, other)) in explicit:
        return explicit[frozenset((one, other))]
    nodes = {node.name: node for node in cluster.expanded_nodes()}
    here, there = nodes[node_of(one)], nodes[node_of(other)]
    if here.name == there.name:
        assert here.fabric is not None
        return Way(here.fabric.latency_s, here.fabric.bandwidth_bytes_per_s)
    if frozenset((here.name, there.name)) in explicit:
        return explicit[frozenset((here.name, there.name))]
    assert here.uplink is not None and there.uplink is not None
    bandwidth = min(here.uplink.bandwidth_bytes_per_s, there.uplink.bandwidth_bytes_per_s)
    return Way(here.uplink.latency_s + there.uplink.latency_s, bandwidth)


class Places:
    """The places of a cluster for ranks of ``degree`` devices of a node.

    ``inside``, ``across``: that use its fabric, or its uplink, themselves.
    """

    def __init__(self, cluster: Cluster, degree: int, inside: bool = False, across: bool = False) -> None:
        self._cluster, self._inside, self._across = cluster, inside, across
        named = {end for link in cluster.links for end in link.between if ":" in end}
        assert degree == 1 or not named
        self._slots: dict[str, list[str]] = {}
        for node in cluster.expanded_nodes():
            starts = [f"{node.name}:{slot * degree}" for slot in range(node.count // degree)]
            self._slots[node.name] = [start for start in starts if start not in named]
            self._slots |= {start: [start] for start in starts if start in named}
        self._slots = {place: slots for place, slots in self._slots.items() if slots}
        self._place_of = {slot: place for place, slots in self._slots.items() for slot in slots}
        self._exchanges = [each for each in self._possible_exchanges() if self._changes_nothing(each)]
        self._known: dict[Placement, Placement] = {}

    def _possible_exchanges(self) -> Iterator[dict[str, str]]:
        """Give exchanges of two places, and of all places of two nodes in any order, as renamings."""
        for one, other in combinations(self._slots, 2):
            yield {one: other, other: one}
        by_node: dict[str, list[str]] = {}
        for place in self._slots:
            by_node.setdefault(node_of(place), []).append(place)
        for mine, its in combinations(by_node.values(), 2):
            if len(mine) == len(its) > 1:
                for order in permutations(its):
                    there = dict(zip(mine, order, strict=True))
                    yield there | {its_one: my_one for my_one, its_one in there.items()}

    def _changes_nothing(self, exchange: dict[str, str]) -> bool:
        """Tell whether sizes, fabrics, ways and who shares a node stay as they are."""
        fabric = {node.name: node.fabric for node in self._cluster.expanded_nodes()}
        uplink = {node.name: node.uplink for node in self._cluster.expanded_nodes()}
        kind = {node.name: node.device for node in self._cluster.expanded_nodes()}
        renamed = {place: exchange.get(place, place) for place in self._slots}
        for place, new in renamed.items():
            if len(self._slots[place]) != len(self._slots[new]):
                return False
            if kind[node_of(place)] != kind[node_of(new)]:
                return False
            used = self._inside or len(self._slots[place]) > 1
            if used and fabric[node_of(place)] != fabric[node_of(new)]:
                return False
            if self._across and uplink[node_of(place)] != uplink[node_of(new)]:
                return False
        for one, other in combinations(self._slots, 2):
            if (node_of(one) == node_of(other)) != (node_of(renamed[one]) == node_of(renamed[other])):
                return False
            before = way_between(self._cluster, self._slots[one][0], self._slots[other][0])
            after = way_between(self._cluster, self._slots[renamed[one]][0], self._slots[renamed[other]][0])
            if before != after:
                return False
        return True

    def canonical(self, placement: Placement) -> Placement:
        """Give the same text for placements that are the same: the first of all that exchanges lead to."""
        places = tuple(self._place_of[device] for device in placement)
        if places not in self._known:
            same = {places}
            waiting = [places]
            while waiting:
                begun = waiting.pop()
                for exchange in self._exchanges:
                    further = tuple(exchange.get(place, place) for place in begun)
                    if further not in same:
                        same.add(further)
                        waiting.append(further)
            self._known |= dict.fromkeys(same, min(same))
        return self._known[places]

    def placements(self, num_ranks: int) -> list[Placement]:
        """Give one of each kind of placement."""
        kinds: dict[Placement, Placement] = {}
        for placement in self._all(num_ranks):
            kinds.setdefault(self.canonical(placement), placement)
        return list(kinds.values())

    def _all(self, num_ranks: int, begun: Placement = ()) -> Iterator[Placement]:
        """Yield every placement; the first free slot of a place stands for all of them."""
        if len(begun) == num_ranks:
            yield begun
            return
        for slots in self._slots.values():
            for slot in [slot for slot in slots if slot not in begun][:1]:
                yield from self._all(num_ranks, (*begun, slot))
