"""Tests that no stage is left empty where balancing alone would do so (deepspeedai/DeepSpeed#4312)."""

import pytest

from reported_cases.chains import best_plan, chain


def test_no_empty_stage() -> None:
    """Tests five equal layers on four stages."""
    plan = best_plan(chain([{"forward_s": 1.0}] * 5, devices=4))
    assert plan.metrics.bottleneck_time_s == pytest.approx(2.0)
    assert sorted(stage.forward_s for stage in plan.stages) == pytest.approx([1.0, 1.0, 1.0, 2.0])
