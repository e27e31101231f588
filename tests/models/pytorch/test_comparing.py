"""What counts as a difference between stages and the unsplit model."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
comparing = pytest.importorskip("partita.models.pytorch.proof.comparing")


@pytest.mark.parametrize(
    ("found", "expected", "wrong"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]), False),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.00001]), True),
        (torch.tensor([1.0 + 2.0j]), torch.tensor([1.0 + 2.000001j]), False),  # complex numbers round too
        (torch.tensor([1.0 + 2.0j]), torch.tensor([1.0 - 2.0j]), True),
        (torch.tensor([1.0, 2.0]).bfloat16(), torch.tensor([1.0, 2.01]).bfloat16(), False),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), True),
        (None, torch.tensor([0.0, 1e-30]), True),  # a gradient that got lost
        (None, torch.zeros(2), False),
        (torch.tensor([float("nan"), 1.0]), torch.tensor([float("nan"), 1.0]), False),
        (torch.tensor([float("nan"), 1.0]), torch.tensor([1.0, 1.0]), True),
        (torch.zeros(2), torch.zeros(3), True),
    ],
)
def test_what_rounding_explains(found: Any, expected: Any, wrong: bool) -> None:
    """Tests that a difference is wrong where rounding in the type does not explain it."""
    (difference,) = comparing.compare("gradient", {"w": found}, {"w": expected}, 0, 1)
    assert difference.is_wrong is wrong
    assert difference.place == "gradient w, iteration 0, rank 1"
