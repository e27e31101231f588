"""Tests that two microbatches on four stages keep at most two activations (deepspeedai/DeepSpeed#4602)."""

import pytest

from reported_cases.chains import GB, best_plan, chain, sizes


def test_in_flight_few_microbatches() -> None:
    """Tests that the uniform split fits then: 2 GB of weights and at most 2 x 2 GB of activations."""
    layers = [{"forward_s": 0.4, "backward_s": 0.6, "weight_bytes": GB, "activation_bytes": GB}] * 8
    plan = best_plan(chain(layers, devices=4, memory="9GB", schedule="1f1b", num_microbatches=2))
    assert plan.metrics.bottleneck_time_s == pytest.approx(2.0)
    assert sizes(plan) == [2, 2, 2, 2]
    assert [stage.memory.in_flight for stage in plan.stages] == [2, 2, 2, 1]
