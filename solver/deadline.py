"""Wall-clock time that a search may take."""

from dataclasses import dataclass
from time import monotonic


class TimeOver(Exception):
    """Raised in the middle of a computation when the time is over."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment in time (``time.monotonic`` seconds) at which a search must have ended."""

    started: float
    ends: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """Give the deadline so many seconds from now."""
        now = monotonic()
        return cls(now, now + seconds)

    @property
    def remaining(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.ends - monotonic())

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.started

    def check(self) -> None:
        """Raise ``TimeOver`` when the time is over."""
        if self.passed:
            raise TimeOver

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return monotonic() >= self.ends
