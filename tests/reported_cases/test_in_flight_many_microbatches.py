"""Tests that with eight microbatches the first stages get fewer layers (deepspeedai/DeepSpeed#4602)."""

import pytest

from reported_cases.chains import GB, best_plan, chain, sizes


def test_in_flight_many_microbatches() -> None:
    """Tests that two layers on the first stage would need 2 + 4 x 2 GB of 9 GB."""
    layers = [{"forward_s": 0.4, "backward_s": 0.6, "weight_bytes": GB, "activation_bytes": GB}] * 8
    plan = best_plan(chain(layers, devices=4, memory="9GB", schedule="1f1b"))
    assert plan.metrics.bottleneck_time_s == pytest.approx(3.0)
    assert sizes(plan) in ([1, 1, 3, 3], [1, 2, 2, 3], [1, 2, 3, 2])
    assert [stage.memory.in_flight for stage in plan.stages] == [4, 3, 2, 1]
