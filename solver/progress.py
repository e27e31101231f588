"""How far a search is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is; objective values in the unit of the answer, None where unknown."""

    phase: str
    incumbent: float | None
    bound: float | None
    wall_s: float


OnProgress = Callable[[Progress], None]
