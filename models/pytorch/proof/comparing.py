"""Compares tensors of the split model with those of the unsplit one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import torch

Kind = Literal["loss", "gradient", "buffer", "parameter", "capture"]

TOLERANCE = 1e-6
"""Largest relative difference in 32 bits or more."""
ROUNDINGS = 8
"""In fewer bits: how many times the rounding of the type; in 32 bits about ``TOLERANCE``."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a tensor is from what it should be.

    Attributes
    ----------
    kind, name
        What it is; for a loss, the number of the microbatch; of ``capture``, what the captured graph and the user's
        module give for the same random state.
    step
        The iteration, from 0.
    rank
        Where it was found; None for what no rank has.
    absolute
        Its largest deviation.
    relative
        The same as a fraction of its largest element.
    allowed
        The relative deviation that its type explains.
    """

    kind: Kind
    name: str
    step: int
    rank: int | None
    absolute: float
    relative: float
    allowed: float

    @property
    def is_wrong(self) -> bool:
        """Whether rounding does not explain it."""
        return not self.relative <= self.allowed

    @property
    def place(self) -> str:
        """What it is, and where."""
        if self.kind == "capture":
            return f"{self.name} of the captured graph, apart from the module itself"
        what = f"loss of microbatch {self.name}" if self.kind == "loss" else f"{self.kind} {self.name}"
        return f"{what}, iteration {self.step}" + ("" if self.rank is None else f", rank {self.rank}")


def compare(
    kind: Kind,
    found: Mapping[str, torch.Tensor | None],
    expected: Mapping[str, torch.Tensor],
    step: int,
    rank: int | None,
) -> list[Difference]:
    """Compare tensors by their names; one that is None, as a gradient may be, counts as zeros.

    Parameters
    ----------
    kind
        What they are.
    found
        Those of a rank.
    expected
        Those of the unsplit model, at least the same.
    step, rank
        When and where.
    """
    result = []
    for name, tensor in found.items():
        wanted = expected[name]
        absolute, relative = _deviation(torch.zeros_like(wanted) if tensor is None else tensor, wanted)
        result.append(Difference(kind, name, step, rank, absolute, relative, allowed(wanted.dtype)))
    return result


def missing(kind: Kind, names: Iterable[str], step: int) -> list[Difference]:
    """Give differences for what no rank has."""
    return [Difference(kind, name, step, None, inf, inf, TOLERANCE) for name in names]


def allowed(dtype: torch.dtype) -> float:
    """Give the relative deviation that a type explains: none for whole numbers."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    return TOLERANCE if torch.finfo(dtype).bits >= 32 else ROUNDINGS * float(torch.finfo(dtype).eps)


def largest(differences: Sequence[Difference]) -> Difference | None:
    """Give the largest of differences, the first of equal ones."""
    return max(differences, key=lambda each: (each.relative, -each.step), default=None)


def _deviation(found: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """Give the largest deviation, and the same relative to the largest element that is finite."""
    if found.shape != expected.shape:
        return inf, inf
    if torch.equal(found, expected) or not expected.numel():
        return 0.0, 0.0
    wide = torch.complex128 if expected.is_complex() else torch.float64
    one, other = found.detach().to(wide), expected.detach().to(wide)
    same = (one == other) | (one.isnan() & other.isnan())
    apart = torch.where(same, 0.0, (one - other).abs()).max().item()
    absolute = apart if apart == apart else inf
    scale = torch.where(other.isfinite(), other.abs(), 0.0).max().item()
    return absolute, (absolute / scale if scale else inf) if absolute else 0.0
