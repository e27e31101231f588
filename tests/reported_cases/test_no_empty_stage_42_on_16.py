"""Tests that 42 equal layers on 16 stages leave none empty (deepspeedai/DeepSpeed#5078)."""

import pytest

from reported_cases.chains import best_plan, chain, sizes


def test_no_empty_stage_42_on_16() -> None:
    """Tests that every stage gets one to three layers."""
    plan = best_plan(chain([{"forward_s": 1.0}] * 42, devices=16))
    assert plan.metrics.bottleneck_time_s == pytest.approx(3.0)
    assert sum(sizes(plan)) == 42
    assert set(sizes(plan)) <= {1, 2, 3}
