"""Tests that four stages on two nodes of two cross the slow link once only (huggingface/picotron#17)."""

import pytest

from reported_cases.chains import best_plan, chain


def test_one_slow_crossing() -> None:
    """Tests 4 s of work, one transfer of 0.05 s between nodes and two of 0.5 ms within."""
    links = {"fabric": {"bandwidth_bytes_per_s": 200e9}, "uplink": {"bandwidth_bytes_per_s": 2e9}}
    nodes = [{"name": name, "device": "device", "count": 2} | links for name in ("node0", "node1")]
    layers = [{"forward_s": 1.0, "output_bytes": 10**8}] * 4
    plan = best_plan(chain(layers, devices=4, nodes=nodes, num_microbatches=1, objective="iteration_time"))
    assert plan.metrics.iteration_time_s == pytest.approx(4.051)
    assert plan.metrics.inter_node_bytes == 10**8
    homes = [stage.devices[0].split(":")[0] for stage in plan.stages]
    assert homes[0] == homes[1] != homes[2] == homes[3]
