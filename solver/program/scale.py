"""The units in which a backend gets times and bytes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Ticks and bytes per unit of the program, powers of two so that scaling is exact; 1 and 1 for integers.

    A backend in floating point wants numbers near 1, one with integers wants the numbers themselves.
    """

    ticks: int = 1
    bytes: int = 1

    @property
    def integer(self) -> bool:
        """Whether the program keeps integers."""
        return self.ticks == self.bytes == 1

    def time(self, ticks: int) -> int | float:
        """Give a time in the program's unit."""
        return int(ticks) if self.ticks == 1 else int(ticks) / self.ticks

    def size(self, size: int) -> int | float:
        """Give a number of bytes in the program's unit."""
        return int(size) if self.bytes == 1 else int(size) / self.bytes


INTEGER = Scale()

TARGET_TICKS, TARGET_BYTES = 2**17, 2**14
"""Magnitude that times and capacities get in floating point."""


def floating(largest_time: int, capacity: int) -> Scale:
    """Give the scale with which a time and a capacity of these magnitudes become moderate numbers."""
    return Scale(power(largest_time, TARGET_TICKS), power(capacity, TARGET_BYTES))


def power(value: int, target: int) -> int:
    """Give a power of two, at least 2, by which a value becomes about as large as the target."""
    return 1 << max(1, (value // target).bit_length())
