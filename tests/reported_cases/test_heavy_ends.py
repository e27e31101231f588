"""Tests that stages with a heavy embedding or head get fewer blocks (deepspeedai/DeepSpeed#1378)."""

import pytest

from reported_cases.chains import best_plan, chain, sizes


def test_heavy_ends() -> None:
    """Tests four blocks between ends that weigh as much as two."""
    plan = best_plan(chain([{"forward_s": cost} for cost in (2.0, 1.0, 1.0, 1.0, 1.0, 2.0)], devices=4))
    assert plan.metrics.bottleneck_time_s == pytest.approx(2.0)
    assert sizes(plan) == [1, 2, 2, 1]
