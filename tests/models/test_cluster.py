"""Tests of clusters: machines, names and links."""

from typing import Any

import pytest

from partita.models.cluster import Cluster
from partita.models.document import validate

FABRIC = {"bandwidth_bytes_per_s": 3e11, "latency_s": 3e-6}
UPLINK = {"bandwidth_bytes_per_s": 25e9}


def cluster(*nodes: dict[str, object], **fields: object) -> dict[str, Any]:
    """Give a cluster of one kind of device."""
    return {"devices": {"a100": {"memory_bytes": "80GiB"}}, "nodes": list(nodes), **fields}


def node(name: str = "node", **fields: object) -> dict[str, object]:
    """Give a node of eight devices with a fabric and an uplink."""
    return {"name": name, "device": "a100", "count": 8, "fabric": FABRIC, "uplink": UPLINK, **fields}


def test_replicas_are_numbered() -> None:
    """Tests the names of machines, and that a single one keeps its own."""
    read = validate(Cluster, cluster(node("big", replicas=3), node("small", count=1, fabric=None)))
    assert read.node_names() == ["big0", "big1", "big2", "small"]
    assert read.num_devices == 25
    assert [(n.name, n.index_of_group, n.count) for n in read.expanded_nodes()] == [
        ("big0", 0, 8),
        ("big1", 0, 8),
        ("big2", 0, 8),
        ("small", 1, 1),
    ]
    assert read.expanded_nodes()[3].fabric is None


def test_a_single_device_needs_no_link() -> None:
    """Tests the smallest cluster."""
    assert validate(Cluster, cluster({"name": "n", "device": "a100", "count": 1})).num_devices == 1


def link(*between: str) -> dict[str, object]:
    """Give a link between two places."""
    return {"between": list(between), "bandwidth_bytes_per_s": 5e10}


def test_links_join_nodes_or_devices() -> None:
    """Tests the links that are allowed: two nodes, devices of one node, devices of two."""
    links = [link("node0", "node1"), link("node0:0", "node0:7"), link("node0:0", "node1:0")]
    assert len(validate(Cluster, cluster(node(replicas=2), links=links)).links) == 3


@pytest.mark.parametrize(
    ("document", "pointer", "detail"),
    [
        (cluster(node(device="v100")), "/nodes/0/device", "there are 'a100'"),
        (cluster(node(fabric=None)), "/nodes/0/fabric", "8 devices of one node"),
        (cluster(node(replicas=2, uplink=None)), "/nodes/0/uplink", "has 2 machines"),
        (cluster(node("n"), node("n")), "/nodes/1/name", "second machine named 'n'"),
        (cluster(node("n", replicas=2), node("n1")), "/nodes/1/name", "belongs to node 0"),
        (cluster(node("a:b")), "/nodes/0/name", "colon"),
        (cluster(node(replicas=20_000)), "/nodes", "160000 devices in all; at most 100000"),
        (
            cluster(node(fabric={"bandwidth_bytes_per_s": 25})),
            "/nodes/0/fabric/bandwidth_bytes_per_s",
            "at least 1000; check the unit",
        ),
        (cluster(node(), links=[link("node", "node")]), "/links/0/between/1", "two different places"),
        (cluster(node(), links=[link("node", "node:1")]), "/links/0/between", "not one of each"),
        (cluster(node(), links=[link("node:0", "node:8")]), "/links/0/between/1", "node:0 to node:7"),
        (cluster(node(), links=[link("node:0", "node:01")]), "/links/0/between/1", "node:0 to node:7"),
        (cluster(node(), links=[link("node:0", "node:")]), "/links/0/between/1", "node:0 to node:7"),
        (cluster(node(replicas=2), links=[link("node", "node1")]), "/links/0/between/0", "no node 'node'"),
        (cluster(node(), links=[link("node:0")]), "/links/0/between", "at least 2"),
        (cluster(node(), links=[link("node:0", "node:1"), link("node:1", "node:0")]), "/links/1/between", "number 0"),
    ],
)
def test_clusters_that_make_no_sense_are_refused(refused: Any, document: object, pointer: str, detail: str) -> None:
    """Tests every rule on machines and links."""
    assert detail in refused(document, Cluster)[pointer].detail


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"memory_bytes": 0}, "/devices/a100/memory_bytes"),
        ({"memory_bytes": 8, "reserve_bytes": 8}, "/devices/a100/reserve_bytes"),
        ({"memory_bytes": 8, "speed": 0}, "/devices/a100/speed"),
        ({"memory_bytes": 8, "speed": 1e-310}, "/devices/a100/speed"),
        ({"memory_bytes": 8, "speed": 0.9e-6}, "/devices/a100/speed"),
        ({"memory_bytes": 8, "speed": 1e7}, "/devices/a100/speed"),
    ],
)
def test_devices_have_memory_and_speed(refused: Any, fields: object, pointer: str) -> None:
    """Tests the bounds of a device."""
    document = cluster(node())
    document["devices"]["a100"] = fields
    assert list(refused(document, Cluster)) == [pointer]
