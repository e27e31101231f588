"""Tests that 470 GB of weights on four devices of 80 GB are refused with the numbers (unslothai/unsloth#4137)."""

import re

from reported_cases.chains import GB, chain, why_not


def test_too_large_in_all() -> None:
    """Tests that 150 GB are missing and that six devices would do."""
    explanation = why_not(chain([{"forward_s": 1.0, "weight_bytes": 5 * GB}] * 94, devices=4, memory="80GB"))
    assert str(150 * GB) in explanation
    assert re.search(r"\b6\b", explanation)
