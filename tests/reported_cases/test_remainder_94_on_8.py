"""Tests that of 94 equal layers on 8 stages no stage gets the whole remainder (sgl-project/sglang#9798)."""

import pytest

from reported_cases.chains import best_plan, chain, sizes


def test_remainder_94_on_8() -> None:
    """Tests that the slowest stage has 12 layers and every layer has its place."""
    plan = best_plan(chain([{"forward_s": 1.0}] * 94, devices=8))
    assert plan.metrics.bottleneck_time_s == pytest.approx(12.0)
    assert sum(sizes(plan)) == 94
    assert min(sizes(plan)) >= 10
    assert max(sizes(plan)) == 12
