"""Tests that four microbatches on eight stages are legal, and their bubble is told (pytorch/torchtitan#775)."""

import pytest

from reported_cases.chains import best_plan, chain


def test_fewer_microbatches_than_stages() -> None:
    """Tests (4 + 8 - 1) x 3 s, of which 7/11 are idle."""
    layers = [{"forward_s": 1.0, "backward_s": 2.0}] * 8
    plan = best_plan(chain(layers, devices=8, schedule="1f1b", num_microbatches=4, objective="iteration_time"))
    assert plan.metrics.iteration_time_s == pytest.approx(33.0)
    assert plan.metrics.bubble_fraction == pytest.approx(7 / 11)
