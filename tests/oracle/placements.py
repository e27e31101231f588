"""Every way to put stages on devices, and the link between two devices.

Two placements are the same when renaming equal nodes and equal devices turns one into the other. Devices of one node
are equal unless an explicit link names them; nodes are equal when they are alike in kind, count, fabric and uplink and
no explicit link names them or one of their devices.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations

from partita.models.cluster import Cluster, ExpandedNode

Placement = tuple[str, ...]
"""The first device of every stage, such as ``node0:2``."""
Renaming = Callable[[str], str]


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


def placements(cluster: Cluster, degree: int, num_stages: int) -> list[Placement]:
    """Give one of each kind of placement; a stage takes ``degree`` devices of one node."""
    equal = renamings(cluster)
    kinds: dict[Placement, Placement] = {}
    for placement in _all_placements(cluster, degree, num_stages):
        kinds.setdefault(canonical(cluster, placement, equal), placement)
    return list(kinds.values())


def canonical(cluster: Cluster, placement: Placement, equal: list[Renaming] | None = None) -> Placement:
    """Give the same text for placements that are the same: device names where links name them, else node names."""
    named = linked_devices(cluster)
    places = [device if device in named else node_of(device) for device in placement]
    return min(tuple(rename(place) for place in places) for rename in equal or renamings(cluster))


def linked_devices(cluster: Cluster) -> list[str]:
    """Give the devices that explicit links name; all other devices of a node are alike."""
    return sorted({end for link in cluster.links for end in link.between if ":" in end})


def _all_placements(cluster: Cluster, degree: int, num_stages: int) -> Iterator[Placement]:
    """Yield every placement; of the devices of a node that are alike, the first free one is always taken."""
    named = set(linked_devices(cluster))
    assert degree == 1 or not named
    alike: dict[str, list[str]] = {}
    for node in cluster.expanded_nodes():
        slots = [f"{node.name}:{slot * degree}" for slot in range(node.count // degree)]
        alike[node.name] = [slot for slot in slots if slot not in named]

    def extend(begun: Placement) -> Iterator[Placement]:
        if len(begun) == num_stages:
            yield begun
            return
        choices = [device for device in sorted(named) if device not in begun]
        for slots in alike.values():
            choices += [slot for slot in slots if slot not in begun][:1]
        for choice in choices:
            yield from extend((*begun, choice))

    return extend(())


def renamings(cluster: Cluster) -> list[Renaming]:
    """Give every renaming of equal nodes; what a link names keeps its name."""
    nodes = {node.name: node for node in cluster.expanded_nodes()}
    named = linked_devices(cluster)
    fixed = {node_of(end) for link in cluster.links for end in link.between}
    free = [name for name in nodes if name not in fixed]
    same = {name: name for name in [*fixed, *named]}
    found: list[Renaming] = []
    for order in permutations(free):
        renamed = dict(zip(free, order, strict=True))
        if all(_nature(nodes[old]) == _nature(nodes[new]) for old, new in renamed.items()):
            found.append((renamed | same).__getitem__)
    return found


def _nature(node: ExpandedNode) -> tuple[object, ...]:
    """Give all that makes one node differ from another, but for explicit links."""
    return node.device, node.count, node.fabric, node.uplink
