"""Wall-clock time that a search may take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic

REPORTING_SHARE, MOST_REPORTING_S = 0.05, 0.2
"""Part of a time limit that is kept for evaluating and reporting what was found, and the most of it in seconds."""


LOOK_S = 0.05
"""How often a running solver is asked to stop once it should."""


class TimeOver(Exception):
    """Raised in the middle of a computation when the time is over."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment in time (``time.monotonic`` seconds) at which a search must have ended; ``stop``, once set, ends it."""

    started: float
    ends: float
    stop: Event | None = None

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """Give the deadline so many seconds from now."""
        now = monotonic()
        return cls(now, now + seconds)

    @classmethod
    def for_problem(cls, limit: float, stop: Event | None = None) -> "Deadline":
        """Give the deadline of a search with a time limit in seconds, so that what was found can still be reported."""
        now = monotonic()
        return cls(now, now + limit - min(MOST_REPORTING_S, REPORTING_SHARE * limit), stop)

    def part(self, share: float) -> "Deadline":
        """Give the deadline that leaves a share, 0 to 1, of the time that is left."""
        return Deadline(self.started, min(self.ends, monotonic() + share * self.remaining), self.stop)

    @property
    def remaining(self) -> float:
        """Seconds left, never below 0."""
        return 0.0 if self.stopped else max(0.0, self.ends - monotonic())

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
        return self.stopped or monotonic() >= self.ends

    @property
    def stopped(self) -> bool:
        """Whether someone asked the search to stop."""
        return self.stop is not None and self.stop.is_set()

    @contextmanager
    def stopping(self, halt: Callable[[], object]) -> Iterator[None]:
        """Call ``halt`` from another thread, again and again, once the search should stop while the block runs.

        A solver that has not begun yet does not hear the first call.
        """
        if self.stop is None:
            yield
            return
        stop, over = self.stop, Event()

        def watch() -> None:
            while not over.is_set():
                if stop.wait(LOOK_S):
                    halt()
                    over.wait(LOOK_S)

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
