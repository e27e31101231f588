"""Tests that bytes are balanced, not layers: two devices of 7 GB take 3 and 5 layers (ggml-org/llama.cpp#12654)."""

from reported_cases.chains import GB, best_plan, chain, memory, sizes


def test_bytes_not_counts() -> None:
    """Tests four layers of 2 GB before four of 1 GB."""
    layers = [{"forward_s": 1.0, "weight_bytes": size * GB} for size in (2, 2, 2, 2, 1, 1, 1, 1)]
    plan = best_plan(chain(layers, devices=2, memory="7GB"))
    assert sizes(plan) == [3, 5]
    assert memory(plan) == [6 * GB, 6 * GB]
