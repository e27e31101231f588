"""How far a running job is, as its worker hears it and as the store is told."""

import time
from threading import Lock

from partita.service.solving.talk import Accepted, Message, Step


class Progress:
    """The last that was heard of a solve; written by its thread, read by the keeper's."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._step: Step | None = None
        self._improved_at: float | None = None
        self._alive_at: float | None = None
        self._news = False

    def note(self, message: Message) -> None:
        """Hear something, which is always a sign of life."""
        with self._lock:
            self._alive_at, self._news = time.time(), True
            if isinstance(message, Accepted):
                self._improved_at = self._alive_at
            elif isinstance(message, Step):
                if self._step is None or _reached(self._step) != _reached(message):
                    self._improved_at = self._alive_at
                self._step = message

    def news(self) -> dict[str, object] | None:
        """Give what changed since the last call, as columns of ``jobs``; None where nothing did."""
        with self._lock:
            if not self._news:
                return None
            self._news = False
            step = self._step or Step("search")
            return {
                "phase": step.phase,
                "incumbent": step.incumbent,
                "bound": step.bound,
                "relative_gap": step.relative_gap,
                "points": step.points,
                "improved_at": self._improved_at,
                "alive_at": self._alive_at,
            }


def _reached(step: Step) -> tuple[float | int | None, ...]:
    """Give the figures of a step, in which progress shows."""
    return step.incumbent, step.bound, step.points
