"""Where a front is not explored yet: closed intervals of values of one metric."""

from collections.abc import Iterator
from dataclasses import dataclass, field

STEP = 3e-9
"""Times that differ by less than this fraction are one: twice the rounding to ticks, and a little."""


@dataclass
class Gaps:
    """Intervals in which the points of a front may lie that are not known yet.

    Parameters
    ----------
    whole
        Whether values are whole numbers, which differ by 1 at least.
    """

    whole: bool
    _open: list[tuple[float, float]] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """Give the intervals, largest values first."""
        return iter(sorted(self._open, reverse=True))

    def __bool__(self) -> bool:
        """Tell whether anything is left to explore."""
        return bool(self._open)

    def above(self, value: float) -> float:
        """Give the smallest value that counts as larger."""
        return value + 1 if self.whole else value * (1 + STEP)

    def below(self, value: float) -> float:
        """Give the largest value that counts as smaller."""
        return value - 1 if self.whole else value * (1 - STEP)

    def open(self, low: float, high: float) -> None:
        """Add an interval, unless it is empty."""
        if low <= high:
            self._open.append((low, high))

    def holding(self, value: float) -> tuple[float, float] | None:
        """Give the interval that a value lies in; None where it is explored."""
        return next((each for each in self._open if each[0] <= value <= each[1]), None)

    def widest(self) -> tuple[float, float]:
        """Give the widest interval, of equally wide ones the one with the largest values."""
        return max(self._open, key=lambda each: (each[1] - each[0], each[1]))

    def resolve(self, interval: tuple[float, float], found: float, upto: float) -> None:
        """Note that of an interval no point lies between ``found``, a point or less than the interval, and ``upto``."""
        low, high = interval
        self._open.remove(interval)
        self.open(low, self.below(found))
        self.open(self.above(upto), high)

    def spread(self, low: float, high: float, number: int) -> list[float]:
        """Give evenly spaced values between two, the largest first."""
        values = [high + (low - high) * step / (number + 1) for step in range(1, number + 1)]
        return [float(int(value)) for value in values] if self.whole else values
