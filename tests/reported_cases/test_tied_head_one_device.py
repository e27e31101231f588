"""Tests that on one stage a tied matrix counts once and needs no synchronization (uw-syfi/piper#13)."""

from reported_cases.chains import GB, best_plan, chain, memory


def test_tied_head_one_device() -> None:
    """Tests 2 GB of vocabulary and four layers of 1 GB on a device of 6 GB."""
    layers = [{"forward_s": 0.1}, *[{"forward_s": 1.0, "weight_bytes": GB}] * 4, {"forward_s": 0.1}]
    vocabulary = {"name": "vocabulary", "bytes": 2 * GB, "layers": ["layer0", "layer5"]}
    plan = best_plan(chain(layers, devices=1, memory="6GB", weights=[vocabulary]))
    assert memory(plan) == [6 * GB]
    assert sum(weight.synchronised_bytes for weight in plan.tied_weights) == 0
