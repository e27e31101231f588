"""Where the stages run: all machines and the links between them."""

import re
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from partita.models.base import Faults, Many, Model, at_most
from partita.models.machines import MAX_DEVICES, Device, ExplicitLink, Link, Node
from partita.models.naming import check_known, listing
from partita.models.quantities import Name

__all__ = ["Cluster", "Device", "ExpandedNode", "ExplicitLink", "Link", "Node"]

_DEVICE_NUMBER = re.compile(r"0|[1-9][0-9]{0,6}")


@dataclass(frozen=True, slots=True)
class ExpandedNode:
    """One machine of the cluster; ``index_of_group`` is the place of its entry in ``Cluster.nodes``."""

    name: str
    index_of_group: int
    device: str
    count: int
    fabric: Link | None
    uplink: Link | None


class Cluster(Model):
    """All machines that a plan may use.

    Attributes
    ----------
    devices
        The kinds of device by name.
    nodes
        The machines.
    links
        Links that differ from what fabrics and uplinks give.
    """

    devices: Annotated[dict[Name, Device], Field(min_length=1, max_length=1000)]
    nodes: Annotated[Many[Node], Field(min_length=1), at_most(MAX_DEVICES, "nodes")]
    links: Annotated[Many[ExplicitLink], at_most(MAX_DEVICES, "links")] = ()

    @property
    def num_devices(self) -> int:
        """How many devices there are in all."""
        return sum(node.replicas * node.count for node in self.nodes)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of device that the nodes have, by first use."""
        return tuple(dict.fromkeys(node.device for node in self.nodes))

    def expanded_nodes(self) -> list[ExpandedNode]:
        """Give every machine, replicas one by one, in the order of ``nodes``."""
        return [
            ExpandedNode(name, index, node.device, node.count, node.fabric, node.uplink)
            for index, node in enumerate(self.nodes)
            for name in node.replica_names()
        ]

    def node_names(self) -> list[str]:
        """Give the name of every machine, in the order of ``expanded_nodes``."""
        return [name for node in self.nodes for name in node.replica_names()]

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        for index, node in enumerate(self.nodes):
            check_known(faults, ("nodes", index, "device"), "kind of device", node.device, self.devices)
        if self.num_devices > MAX_DEVICES:
            detail = f"{self.num_devices} devices in all; at most {MAX_DEVICES} are allowed"
            faults.add(("nodes",), detail, self.num_devices, "too_many_devices")
        else:
            _check_machines(faults, self)
            _check_links(faults, self)
        faults.raise_if_any("Cluster")
        return self


def _check_machines(faults: Faults, cluster: Cluster) -> None:
    """Refuse two machines of one name, and machines without a way to the others."""
    owner: dict[str, int] = {}
    for index, node in enumerate(cluster.nodes):
        for name in node.replica_names():
            if name in owner:
                detail = f"a second machine named {name!r} (the first belongs to node {owner[name]}); rename one"
                faults.add(("nodes", index, "name"), detail, node.name, "repeated_name")
                break
            owner[name] = index
    machines = sum(node.replicas for node in cluster.nodes)
    for index, node in enumerate(cluster.nodes):
        if machines > 1 and node.uplink is None:
            detail = f"needed: the cluster has {machines} machines; give the uplink's bandwidth_bytes_per_s"
            faults.add(("nodes", index, "uplink"), detail, code="missing")


def _check_links(faults: Faults, cluster: Cluster) -> None:
    """Refuse links from or to places that do not exist, between a node and a device, and twice between one pair."""
    if not cluster.links:
        return
    counts = {machine.name: machine.count for machine in cluster.expanded_nodes()}
    first: dict[frozenset[str], int] = {}
    for index, link in enumerate(cluster.links):
        known = [_check_end(faults, index, position, end, counts) for position, end in enumerate(link.between)]
        if all(known) and len({":" in end for end in link.between}) == 2:
            detail = "a link joins two nodes or two devices, not one of each; name two nodes or two devices"
            faults.add(("links", index, "between"), detail, link.between, "mixed_link")
        pair = frozenset(link.between)
        if first.setdefault(pair, index) != index:
            detail = f"a second link between {listing(sorted(pair))} (the first is number {first[pair]}); keep one"
            faults.add(("links", index, "between"), detail, link.between, "repeated_link")


def _check_end(faults: Faults, index: int, position: int, end: str, counts: dict[str, int]) -> bool:
    """Refuse an end of a link that is neither a machine nor a device of one; tell whether it exists."""
    place = ("links", index, "between", position)
    node, colon, number = end.partition(":")
    if not check_known(faults, place, "node", node, counts):
        return False
    if not colon or (_DEVICE_NUMBER.fullmatch(number) and int(number) < counts[node]):
        return True
    detail = f"{node!r} has the devices {node}:0 to {node}:{counts[node] - 1}; name one of them"
    faults.add(place, detail, end, "unknown_name")
    return False
