"""Wall-clock time that a search may take."""

from dataclasses import dataclass
from time import monotonic

REPORTING_SHARE, MOST_REPORTING_S = 0.05, 0.2
"""Part of a time limit that is kept for evaluating and reporting what was found, and the most of it in seconds."""


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

    @classmethod
    def for_problem(cls, limit: float) -> "Deadline":
        """Give the deadline of a search with a time limit in seconds, so that what was found can still be reported."""
        now = monotonic()
        return cls(now, now + limit - min(MOST_REPORTING_S, REPORTING_SHARE * limit))

    def part(self, share: float) -> "Deadline":
        """Give the deadline that leaves a share, 0 to 1, of the time that is left."""
        return Deadline(self.started, min(self.ends, monotonic() + share * self.remaining))

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
