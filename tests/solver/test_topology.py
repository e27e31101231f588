"""Tests slots, paths and what is alike, on clusters of a few devices."""

from typing import Any

import numpy as np
import pytest

from oracle.small import optimal, small_problem
from partita.models.cluster import Cluster
from partita.models.document import validate
from partita.solver.topology import Path, Topology

FABRIC = {"bandwidth_bytes_per_s": 4e9, "latency_s": 0.25}
FAST, SLOW = ({"bandwidth_bytes_per_s": bandwidth, "latency_s": 0.5} for bandwidth in (2e9, 1e9))
LINK = {"bandwidth_bytes_per_s": 8e9, "latency_s": 0.125}


def node(name: str, count: int, uplink: dict[str, Any] = FAST) -> dict[str, Any]:
    """Give a node."""
    return {"name": name, "device": "gpu", "count": count, "fabric": FABRIC, "uplink": uplink}


def cluster(*nodes: dict[str, Any], links: tuple[tuple[str, str], ...] = ()) -> Cluster:
    """Give a cluster; all links are equal."""
    listed = [{"between": list(ends)} | LINK for ends in links]
    return validate(Cluster, {"devices": {"gpu": {"memory_bytes": 1}}, "nodes": list(nodes), "links": listed})


def topology(
    *nodes: dict[str, Any], links: tuple[tuple[str, str], ...] = (), width: int = 1, most_stages: int = 8
) -> Topology:
    """Give the topology of a cluster."""
    return Topology(cluster(*nodes, links=links), width, most_stages)


def at(found: Topology, device: str) -> int:
    """Give the number of the location that holds a device."""
    (number,) = [n for n, each in enumerate(found.locations) if any(device in slot for slot in each.slots)]
    return number


def test_paths_without_links() -> None:
    """Tests fabric within a node; between nodes the narrower uplink, with both latencies."""
    found = topology(node("a", 2), node("b", 2, SLOW))
    assert [each.slots for each in found.locations] == [(("a:0",), ("a:1",)), (("b:0",), ("b:1",))]
    assert found.path(0, 0) == Path(("a fabric",), 4e9, 0.25)
    assert found.path(0, 1) == Path(("a uplink", "b uplink"), 1e9, 1.0)
    assert found.path(1, 0) == Path(("b uplink", "a uplink"), 1e9, 1.0)
    assert found.class_of[0, 1] == found.class_of[1, 0] != found.class_of[0, 0]
    assert found.classes[found.class_of[0, 1]] == (1e9, 1.0)


def test_links_between_nodes() -> None:
    """Tests that a link between two nodes replaces their uplinks, and no others."""
    found = topology(node("a", 1), node("b", 1), node("c", 1), links=(("a", "b"),))
    assert found.path(0, 1) == Path(("link a - b",), 8e9, 0.125)
    assert found.path(0, 2) == Path(("a uplink", "c uplink"), 2e9, 1.0)
    assert found.alike.tolist() == [0, 0, 2]


def test_links_between_devices() -> None:
    """Tests that a link singles out its two devices, within a node and between nodes."""
    found = topology(node("a", 3), node("b", 2), links=(("a:0", "a:2"), ("a:0", "b:1")))
    inner, far, plain = at(found, "a:2"), at(found, "b:1"), at(found, "a:1")
    first = at(found, "a:0")
    assert found.num_slots == 5
    assert found.path(first, inner) == Path(("link a:0 - a:2",), 8e9, 0.125)
    assert found.path(first, far) == Path(("link a:0 - b:1",), 8e9, 0.125)
    assert found.path(first, plain) == Path(("a fabric",), 4e9, 0.25)
    assert found.path(inner, far) == Path(("a uplink", "b uplink"), 2e9, 1.0)
    assert len(set(found.alike.tolist())) == len(found.locations)


def test_a_device_link_beats_a_node_link() -> None:
    """Tests that the nearer link counts where both are given."""
    found = topology(node("a", 2), node("b", 1), links=(("a", "b"), ("a:0", "b:0")))
    assert found.path(at(found, "a:0"), at(found, "b:0")).names == ("link a:0 - b:0",)
    assert found.path(at(found, "a:1"), at(found, "b:0")).names == ("link a - b",)


def test_slots_of_two_devices() -> None:
    """Tests that five devices hold two stages of two, and a node of one device none."""
    found = topology(node("a", 5), node("b", 1), node("c", 2), width=2)
    assert [each.slots for each in found.locations] == [(("a:0", "a:1"), ("a:2", "a:3")), (("c:0", "c:1"),)]
    assert found.num_slots == 3
    assert found.in_order(3).tolist() == [0, 0, 1]  # type: ignore[union-attr]
    assert found.in_order(4) is None
    assert found.devices(np.array([0, 1, 0])) == [("a:0", "a:1"), ("c:0", "c:1"), ("a:2", "a:3")]


def test_no_more_equal_nodes_than_stages() -> None:
    """Tests that of ten equal nodes two are kept for two stages, and that linked ones are never left out."""
    equal = node("n", 1) | {"replicas": 10}
    assert topology(equal, most_stages=2).num_slots == 2
    assert topology(equal, links=(("n8", "n9"),), most_stages=2).num_slots == 4


def test_equal_nodes_are_alike() -> None:
    """Tests that equal nodes are named in the order of first use, and others kept apart."""
    found = topology(node("a", 2), node("b", 2), node("c", 2, SLOW))
    assert found.alike.tolist() == [0, 0, 2]
    assert found.canonical(np.array([1, 2, 1, 0])).tolist() == [0, 2, 0, 1]


def test_equal_devices_of_one_link_are_alike() -> None:
    """Tests that the two ends of a link within a node can be exchanged, and the rest of the node cannot."""
    found = topology(node("a", 4), links=(("a:1", "a:2"),))
    one, other, plain = at(found, "a:1"), at(found, "a:2"), at(found, "a:0")
    assert found.alike[one] == found.alike[other] != found.alike[plain]
    assert found.canonical(np.array([other, plain])).tolist() == [min(one, other), plain]


PAIRS = (("a:0", "a:1"), ("b:0", "b:1"))


@pytest.mark.parametrize("count", [2, 3])
def test_equal_nodes_with_a_link_inside_each(count: int) -> None:
    """Tests that exchanging two whole nodes changes nothing, although no single device can be exchanged."""
    found = topology(node("a", count), node("b", count), links=PAIRS)

    def canonical(*devices: str) -> list[int]:
        return found.canonical(np.array([at(found, device) for device in devices])).tolist()  # type: ignore[no-any-return]

    assert canonical("a:0", "a:1") == canonical("b:0", "b:1") == canonical("b:1", "b:0")
    assert canonical("a:0", "b:1") == canonical("b:0", "a:0") == canonical("b:1", "a:1")
    assert canonical("a:0", "a:1") != canonical("a:0", "b:0")
    if count == 3:
        assert canonical("a:2", "b:0") == canonical("b:2", "a:1") != canonical("a:0", "b:2")


def test_plans_on_equal_nodes_are_one() -> None:
    """Tests that two layers on two such nodes have two plans: over a link, and over the uplinks."""
    links = [{"between": list(ends)} | LINK for ends in PAIRS]
    problem = small_problem("ab", nodes=[node("a", 2), node("b", 2)], links=links, num_stages=2)
    plans = optimal(problem).candidates
    assert [plan.metrics.iteration_time_s for plan in plans] == [2.125, 3.0]


def test_nodes_with_unequal_links_are_different() -> None:
    """Tests that a link of a third node to one of two otherwise equal nodes tells them apart."""
    found = topology(node("a", 2), node("b", 2), node("c", 1), links=(*PAIRS, ("c:0", "b:0")))
    assert (
        found.canonical(np.array([at(found, "a:0")])).tolist() != found.canonical(np.array([at(found, "b:1")])).tolist()
    )
