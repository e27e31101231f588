"""Tests that of 61 equal layers on 8 stages no stage gets the whole remainder (sgl-project/sglang#6666)."""

import pytest

from reported_cases.chains import best_plan, chain, sizes


def test_remainder_61_on_8() -> None:
    """Tests that the slowest stage has 8 layers and every layer has its place."""
    plan = best_plan(chain([{"forward_s": 1.0}] * 61, devices=8))
    assert plan.metrics.bottleneck_time_s == pytest.approx(8.0)
    assert sum(sizes(plan)) == 61
    assert min(sizes(plan)) >= 7
    assert max(sizes(plan)) == 8
