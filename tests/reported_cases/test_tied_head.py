"""Tests that a head sharing the embedding's matrix makes both stages hold it (NVIDIA/Megatron-LM#299)."""

from reported_cases.chains import GB, best_plan, chain, memory, sizes


def test_tied_head() -> None:
    """Tests 2 GB of vocabulary on each of two stages, beside two layers of 1 GB."""
    layers = [{"forward_s": 0.1}, *[{"forward_s": 1.0, "weight_bytes": GB}] * 4, {"forward_s": 0.1}]
    vocabulary = {"name": "vocabulary", "bytes": 2 * GB, "layers": ["layer0", "layer5"]}
    plan = best_plan(chain(layers, devices=2, memory="4.5GB", weights=[vocabulary]))
    assert sizes(plan) == [3, 3]
    assert memory(plan) == [4 * GB, 4 * GB]
    assert [(weight.name, weight.stages) for weight in plan.tied_weights] == [("vocabulary", (0, 1))]
