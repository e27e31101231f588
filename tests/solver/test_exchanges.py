"""Tests which placements are the same, against the oracle's rule: exchanges of places, and of whole nodes."""

from itertools import combinations, permutations
from random import Random
from typing import Any

import numpy as np
import pytest

from oracle.placements import Places
from oracle.small import Json, equal_layers, optimal, small_problem
from partita.models.cluster import Cluster
from partita.models.document import validate
from partita.solver import exchanges
from partita.solver.topology import Topology

FAST, SLOW, OTHER = ({"bandwidth_bytes_per_s": bandwidth, "latency_s": 0.5} for bandwidth in (4e9, 1e9, 2e9))
Ends = tuple[str, str]


def node(name: str, count: int, fabric: Json | None = FAST, uplink: Json = SLOW) -> Json:
    """Give a node."""
    return {"name": name, "device": "gpu", "count": count, "fabric": fabric, "uplink": uplink}


def cluster(nodes: list[Json], links: dict[Ends, Json]) -> Cluster:
    """Give a cluster."""
    listed = [{"between": list(ends)} | link for ends, link in links.items()]
    return validate(Cluster, {"devices": {"gpu": {"memory_bytes": 1}}, "nodes": nodes, "links": listed})


def check_against_oracle(given: Cluster, most_ranks: int) -> int:
    """Check that two placements have one name exactly where the oracle says so; give how many are different."""
    places, found = Places(given, 1), Topology(given, 1, 99, inside=False)
    location_of = {slot[0]: number for number, each in enumerate(found.locations) for slot in each.slots}
    different = 0
    for ranks in range(1, most_ranks + 1):
        names: dict[Any, Any] = {}
        for placement in permutations(location_of, ranks):
            location = np.array([location_of[device] for device in placement])
            ours = tuple(found.canonical(location).tolist())
            assert names.setdefault(places.canonical(placement), ours) == ours, placement
        assert len(set(names.values())) == len(names)
        different += len(names)
    return different


def crossed(*pairs: str, link: Json = FAST) -> dict[Ends, Json]:
    """Give links between devices of the nodes l, r, s, t: ``l0r1`` joins l:0 and r:1."""
    return {(f"{pair[0]}:{pair[1]}", f"{pair[2]}:{pair[3]}"): link for pair in pairs}


@pytest.mark.parametrize(
    ("count", "names", "links"),
    [
        (2, "lr", crossed("l0r1")),  # exchanged with the devices the other way round
        (2, "lr", crossed("l0r1", "l1r0")),
        (2, "lr", crossed("l0r0", "l1r1")),  # in two orders
        (2, "lr", crossed("l0r0", "l1r1") | crossed("l0r1", "l1r0", link=OTHER)),
        (3, "lr", crossed("l0l1") | crossed("r1r2")),
        (3, "lr", crossed("l0l1", "l1l2") | crossed("r0r2", "r1r2")),  # middles 1 and 2
        (3, "lr", crossed("l0r1", "l1r2", "l2r0")),
        (2, "lrs", crossed("l0r1", "r0s1", "s0l1")),  # a ring: no two can be exchanged
        (2, "lrs", crossed("l0l1", "r0r1", "s0s1")),
        (2, "lrs", crossed("l0r0", "r0s0", "l0s0", "l1r1", "r1s1", "l1s1")),
        (2, "lrst", crossed("l0r0", "s0t1")),
        (4, "lr", crossed("l0l1", "l2l3") | crossed("r0r2", "r1r3")),
        (4, "lr", crossed("l0r0", "l1r1", "l2r2", "l3r3")),
    ],
)
def test_nodes_with_links_between_devices(count: int, names: str, links: dict[Ends, Json]) -> None:
    """Tests equal nodes whose exchange needs their devices in some order, and some that cannot be exchanged."""
    check_against_oracle(cluster([node(name, count) for name in names], links), 3 if count < 4 else 2)


def random_cluster(random: Random) -> Cluster:
    """Give two to four nodes of one to three devices, mostly equal, with a few links of two kinds."""
    fabric, uplink = random.choice([FAST, OTHER]), random.choice([SLOW, FAST])
    count = random.randint(1, 3)
    nodes = []
    for name in "lrst"[: random.randint(2, 4 if count < 3 else 2)]:
        own = count if random.random() < 0.8 else random.randint(1, 2)
        used = random.choice([fabric, fabric, fabric, OTHER, None if own == 1 else SLOW])
        nodes.append(node(name, own, used, uplink if random.random() < 0.9 else OTHER))
    ends = [f"{each['name']}:{number}" for each in nodes for number in range(each["count"])]
    chosen = random.sample([*combinations(ends, 2)], min(random.randint(0, 4), len(ends) - 1))
    links: dict[Ends, Json] = {pair: random.choice([FAST, FAST, OTHER]) for pair in chosen}
    for pair in combinations([each["name"] for each in nodes], 2):
        if random.random() < 0.2:
            links[pair] = random.choice([FAST, SLOW])
    return cluster(nodes, links)


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_random_clusters(first: int) -> None:
    """Tests small clusters drawn at random."""
    for seed in range(first, first + 25):
        check_against_oracle(random_cluster(Random(seed)), 3)


def test_many_equal_nodes_are_named_quickly() -> None:
    """Tests twenty nodes with a link inside each, given in different orders: all are one."""
    links = {(f"n{k}:{k % 2}", f"n{k}:2"): FAST for k in range(20)}
    found = Topology(cluster([node("n", 3, fabric=SLOW) | {"replicas": 20}], links), 1, 99, inside=False)
    at = {slot[0]: number for number, each in enumerate(found.locations) for slot in each.slots}
    one = found.canonical(np.array([at["n4:0"], at["n7:1"], at["n7:2"], at["n9:0"]]))
    same = found.canonical(np.array([at["n2:2"], at["n0:2"], at["n0:0"], at["n3:0"]]))
    assert one.tolist() == same.tolist()


@pytest.mark.parametrize("limit", ["MOST_STEPS", "MOST_ORDERS", "MOST_NAMES"])
def test_with_too_much_effort_placements_stay_apart(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a name is still one of the placement's own where the search is given up."""
    monkeypatch.setattr(exchanges, limit, 1)
    given = cluster([node(name, 3) for name in "lr"], crossed("l0r0", "l1r1", "l2r2"))
    places, found = Places(given, 1), Topology(given, 1, 99, inside=False)
    device_of = [each.slots[0][0] for each in found.locations]
    for placement in permutations(range(len(device_of)), 3):
        name = found.canonical(np.array(placement)).tolist()
        assert places.canonical(tuple(device_of[place] for place in name)) == places.canonical(
            tuple(device_of[place] for place in placement)
        )


def plans_of(nodes: list[Json], links: dict[Ends, Json] | None = None, **training: Any) -> int:
    """Give how many plans two equal layers have on two stages."""
    listed = [{"between": list(ends)} | link for ends, link in (links or {}).items()]
    layers = equal_layers("ab", forward_s=1.0, backward_s=1.0, weight_bytes=10**9, output_bytes=10**9)
    usual = {"schedule": "1f1b", "num_stages": 2, "replicas_per_node": training.get("data_parallel", 1)}
    return len(
        optimal(
            small_problem(layers, nodes=nodes, links=listed, search={"candidates": 20}, **usual | training)
        ).candidates
    )


def test_a_fabric_that_nothing_uses() -> None:
    """Tests one plan on two nodes that a stage fills, whether or not one of them states another fabric."""
    assert plans_of([node("l", 1, None), node("r", 1, FAST)]) == 1
    assert plans_of([node("l", 1, SLOW), node("r", 1, FAST)]) == 1
    assert plans_of([node("l", 2, SLOW), node("r", 2, FAST)], tensor_parallel=2) == 1
    assert plans_of([node("l", 3, SLOW), node("r", 2, FAST)], tensor_parallel=2) == 1
    assert plans_of([node("l", 2, SLOW), node("r", 2, FAST)], data_parallel=2, schedule="forward_only") == 1


def test_a_fabric_that_is_used() -> None:
    """Tests that the fabric tells two nodes apart between two stages, and where replicas of a stage use it."""
    assert plans_of([node("l", 2, SLOW), node("r", 2, FAST)]) == 4
    assert plans_of([node("l", 2, SLOW), node("r", 2, FAST)], data_parallel=2) == 2


def test_plans_on_nodes_exchanged_in_another_order() -> None:
    """Tests a link from l:0 to r:1: along it, beside it, across from it or to it, and within a node in both ways."""
    assert plans_of([node("l", 2), node("r", 2)], crossed("l0r1")) == 6
