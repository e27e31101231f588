"""Tests that 175 billion parameters of 14 bytes do not fit on 8 devices of 80 GB, and how many would do."""

import re

from reported_cases.chains import GB, chain, why_not


def test_gpt3_model_states() -> None:
    """Tests 100 layers of 24.5 GB: 2450 GB in all, so at least 31 devices."""
    optimizer = {"gradient_bytes_per_weight_byte": 0, "state_bytes_per_weight_byte": 6}
    layers = [{"forward_s": 0.1, "backward_s": 0.2, "weight_bytes": 7 * GB // 2}] * 100
    problem = chain(layers, devices=8, memory="80GB", schedule="1f1b", optimizer=optimizer, objective="iteration_time")
    explanation = why_not(problem)
    assert str(2450 * GB) in explanation
    assert re.search(r"\b31\b", explanation)
