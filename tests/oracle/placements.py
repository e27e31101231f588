"""Every way to put stages on devices, and the way between two devices.

A *place* is a device that an explicit link names, or all other devices of a node together: nothing tells these apart.
Two places are equal when exchanging them changes nothing but names: they have as many slots, the same fabric, the same
ways to all other places, and share their nodes with the same places. Two placements are the same when renaming equal
places turns one into the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from partita.models.cluster import Cluster

Placement = tuple[str, ...]
"""The first device of every stage, such as ``node0:2``."""


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
    """The places of a cluster for stages of ``degree`` devices of one node."""

    def __init__(self, cluster: Cluster, degree: int) -> None:
        self._cluster = cluster
        named = {end for link in cluster.links for end in link.between if ":" in end}
        assert degree == 1 or not named
        self._slots: dict[str, list[str]] = {}
        for node in cluster.expanded_nodes():
            starts = [f"{node.name}:{slot * degree}" for slot in range(node.count // degree)]
            self._slots[node.name] = [start for start in starts if start not in named]
            self._slots |= {start: [start] for start in starts if start in named}
        self._slots = {place: slots for place, slots in self._slots.items() if slots}
        self._place_of = {slot: place for place, slots in self._slots.items() for slot in slots}
        self._kinds: list[list[str]] = []
        for place in self._slots:
            kind = next((kind for kind in self._kinds if self._exchangeable(kind[0], place)), None)
            if kind is None:
                self._kinds.append([place])
            else:
                kind.append(place)

    def _exchangeable(self, one: str, other: str) -> bool:
        """Tell whether two places are equal."""
        mine, its = self._slots[one], self._slots[other]
        fabric = {node.name: node.fabric for node in self._cluster.expanded_nodes()}
        if len(mine) != len(its) or fabric[node_of(one)] != fabric[node_of(other)]:
            return False
        for third, (slot, *_) in self._slots.items():
            if third in (one, other):
                continue
            if way_between(self._cluster, mine[0], slot) != way_between(self._cluster, its[0], slot):
                return False
            if (node_of(one) == node_of(third)) != (node_of(other) == node_of(third)):
                return False
        return True

    def canonical(self, placement: Placement) -> Placement:
        """Give the same text for placements that are the same: equal places are named in the order of first use."""
        renamed: dict[str, str] = {}
        for device in placement:
            place = self._place_of[device]
            if place not in renamed:
                (kind,) = [kind for kind in self._kinds if place in kind]
                renamed[place] = kind[len([used for used in renamed if used in kind])]
        return tuple(renamed[self._place_of[device]] for device in placement)

    def placements(self, num_stages: int) -> list[Placement]:
        """Give one of each kind of placement."""
        kinds: dict[Placement, Placement] = {}
        for placement in self._all(num_stages):
            kinds.setdefault(self.canonical(placement), placement)
        return list(kinds.values())

    def _all(self, num_stages: int, begun: Placement = ()) -> Iterator[Placement]:
        """Yield every placement; the first free slot of a place stands for all of them."""
        if len(begun) == num_stages:
            yield begun
            return
        for slots in self._slots.values():
            for slot in [slot for slot in slots if slot not in begun][:1]:
                yield from self._all(num_stages, (*begun, slot))
