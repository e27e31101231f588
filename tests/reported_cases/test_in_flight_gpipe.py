"""Tests that GPipe keeps the activations of all microbatches, so that nothing fits (deepspeedai/DeepSpeed#4602)."""

from reported_cases.chains import GB, chain, why_not


def test_in_flight_gpipe() -> None:
    """Tests that some stage of two layers needs 2 GB of weights and 16 GB of activations."""
    layers = [{"forward_s": 0.4, "backward_s": 0.6, "weight_bytes": GB, "activation_bytes": GB}] * 8
    assert why_not(chain(layers, devices=4, memory="9GB", schedule="gpipe"))
