"""Figures that are valid but look like a mistake in the unit."""

from collections.abc import Iterator
from math import isclose

from partita.models.cluster import Cluster
from partita.models.machines import Link
from partita.models.profile import ModelProfile

BOTH_DIRECTIONS = {
    600e9: "NVLink 3",
    900e9: "NVLink 4",
    1800e9: "NVLink 5",
    64e9: "PCIe 4 x16",
    128e9: "PCIe 5 x16",
}
"""Well-known bandwidths in bytes/s that data sheets give for both directions together."""

NETWORK_GIGABITS = (100, 200, 400, 800)
"""Usual network speeds in Gb/s."""

LONG_LAYER_S = 3600.0
"""A pass of one layer and microbatch that takes longer than this is suspicious, seconds."""
LONG_MODEL_S = 1e5
"""A model whose passes take longer than this in all, for one microbatch, is suspicious, seconds."""


def unit_warnings(model: ModelProfile, cluster: Cluster) -> list[str]:
    """Name every suspicious bandwidth and time, with its place, the number and what may have been meant."""
    return [*_bandwidth_warnings(cluster), *_time_warnings(model)]


def _bandwidth_warnings(cluster: Cluster) -> Iterator[str]:
    """Look at fabrics, uplinks and explicit links."""
    for index, node in enumerate(cluster.nodes):
        if node.fabric is not None:
            yield from _doubled(f"/cluster/nodes/{index}/fabric", node.fabric)
        if node.uplink is not None:
            yield from _network(f"/cluster/nodes/{index}/uplink", node.uplink)
    for index, link in enumerate(cluster.links):
        between_nodes = ":" not in link.between[0]
        yield from (_network if between_nodes else _doubled)(f"/cluster/links/{index}", link)


def _doubled(place: str, link: Link) -> Iterator[str]:
    """Recognize a bandwidth quoted for both directions together."""
    given = link.bandwidth_bytes_per_s
    for known, name in BOTH_DIRECTIONS.items():
        if isclose(given, known):
            yield (
                f"{place}/bandwidth_bytes_per_s: {given:g} B/s is what {name} carries in both directions together; "
                f"the field is for one direction: if both were meant, halve it to {given / 2:g}"
            )


def _network(place: str, link: Link) -> Iterator[str]:
    """Recognize bits taken for bytes, else a bandwidth quoted for both directions."""
    given = link.bandwidth_bytes_per_s
    for gigabits in NETWORK_GIGABITS:
        if isclose(given, gigabits * 1e9):
            yield (
                f"{place}/bandwidth_bytes_per_s: {given:g} B/s equals {gigabits * 8} Gb/s; "
                f"if {gigabits} Gb/s was meant, write {gigabits / 8 * 1e9:g}"
            )
            return
    yield from _doubled(place, link)


def _time_warnings(model: ModelProfile) -> Iterator[str]:
    """Recognize milliseconds or microseconds given as seconds."""
    for index, layer in enumerate(model.layers):
        for field, time in (("forward_s", layer.forward_s), ("backward_s", layer.backward_s)):
            if time > LONG_LAYER_S:
                yield (
                    f"/model/layers/{index}/{field}: {time:g} s for one microbatch of layer {layer.name!r} is more "
                    "than an hour; if milliseconds were meant, divide all times by 1000"
                )
                return
    total = sum(layer.forward_s + layer.backward_s for layer in model.layers)
    if total > LONG_MODEL_S:
        yield (
            f"/model/layers: one microbatch takes {total:g} s in all layers together; "
            "if milliseconds were meant, divide all times by 1000"
        )
