"""Tests a boundary of GPT-3's width on NVLink and InfiniBand, with the rates of one direction in bytes."""

import pytest

from reported_cases.chains import best_plan, chain


def test_gpt3_boundary() -> None:
    """Tests 4 x 2048 x 12288 x 2 bytes: 0.67 ms at 300 GB/s one way, 8.05 ms at 200 Gb/s."""
    size = 4 * 2048 * 12288 * 2
    links = {"fabric": {"bandwidth_bytes_per_s": 300e9}, "uplink": {"bandwidth_bytes_per_s": 25e9}}
    nodes = [{"name": name, "device": "device", "count": 2} | links for name in ("node0", "node1")]
    layers = [{"forward_s": 0.3, "output_bytes": size}] * 4
    plan = best_plan(chain(layers, devices=4, nodes=nodes, num_microbatches=1, objective="iteration_time"))
    within = set()
    for boundary in plan.boundaries:
        ends = [plan.stages[index].devices[0].split(":")[0] for index in (boundary.from_stage, boundary.to_stage)]
        within.add(ends[0] == ends[1])
        assert boundary.forward_bytes == 201326592
        assert boundary.transfer_s == pytest.approx(0.00067108864 if ends[0] == ends[1] else 0.00805306368)
    assert within == {True, False}
