"""Tests that suspicious units are shown with their numbers."""

from typing import Any

import pytest

from partita.models.document import validate
from partita.models.problem import Problem


def test_usual_figures_are_not_suspicious(two_layers: Any) -> None:
    """Tests NVLink in one direction and a few seconds."""
    assert validate(Problem, two_layers).warnings() == []


@pytest.mark.parametrize(
    ("fabric", "words"),
    [(600e9, ["NVLink 3", "6e+11", "halve it to 3e+11"]), (900e9, ["NVLink 4", "4.5e+11"]), (64e9, ["PCIe 4"])],
)
def test_both_directions_together_are_noticed(two_layers: Any, fabric: float, words: list[str]) -> None:
    """Tests fabrics with the figure of a data sheet."""
    two_layers["cluster"]["nodes"][0]["fabric"]["bandwidth_bytes_per_s"] = fabric
    warnings = validate(Problem, two_layers).warnings()
    assert len(warnings) == 1
    assert all(word in warnings[0] for word in ["/cluster/nodes/0/fabric/bandwidth_bytes_per_s", *words])


def test_gigabits_taken_for_gigabytes_are_noticed(two_layers: Any) -> None:
    """Tests an uplink and a link between nodes, but not a link between devices."""
    two_layers["cluster"]["nodes"][0].update(replicas=2, uplink={"bandwidth_bytes_per_s": 200e9})
    two_layers["cluster"]["links"] = [
        {"between": ["node00", "node01"], "bandwidth_bytes_per_s": 400e9},
        {"between": ["node00:0", "node00:1"], "bandwidth_bytes_per_s": 400e9},
        {"between": ["node00:0", "node01:1"], "bandwidth_bytes_per_s": 128e9},
    ]
    uplink, link, device_link = validate(Problem, two_layers).warnings()
    assert "PCIe 5" in device_link
    assert "equals 1600 Gb/s; if 200 Gb/s was meant, write 2.5e+10" in uplink
    assert link.startswith("/cluster/links/0/")


def test_a_network_at_a_figure_of_both_directions_is_noticed(two_layers: Any) -> None:
    """Tests nodes that are joined by NVLink, on a cluster of single devices without fabrics."""
    two_layers["cluster"]["nodes"] = [
        {"name": name, "device": "a100", "count": 1, "uplink": {"bandwidth_bytes_per_s": 900e9}} for name in "ab"
    ]
    warnings = validate(Problem, two_layers).warnings()
    assert [warning.split(":")[0] for warning in warnings] == [
        "/cluster/nodes/0/uplink/bandwidth_bytes_per_s",
        "/cluster/nodes/1/uplink/bandwidth_bytes_per_s",
    ]


def test_milliseconds_taken_for_seconds_are_noticed(two_layers: Any) -> None:
    """Tests a layer of more than an hour, and many layers of less."""
    two_layers["model"]["layers"][1]["forward_s"] = 4000.0
    assert "/model/layers/1/forward_s: 4000 s" in validate(Problem, two_layers).warnings()[0]
    two_layers["model"]["layers"] = [{"name": f"l{i}", "forward_s": 3000.0} for i in range(40)]
    assert "120000 s in all layers" in validate(Problem, two_layers).warnings()[0]
