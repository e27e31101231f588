"""How much each owner does now in this process: requests of the last minute, and evaluations under way."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from partita.service.access.keys import Caller
from partita.service.access.quotas import QuotaReached

MINUTE_S = 60.0


class Rates:
    """Counts requests by bucket: each takes a token, and tokens come back evenly over a minute.

    Parameters
    ----------
    clock
        Gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._buckets: dict[str, tuple[float, float]] = {}
        self._evaluating: dict[str, int] = {}

    def wait_s(self, caller: Caller) -> int:
        """Count a request; give 0, or after how many seconds there is room for it."""
        if caller.quotas is None:
            return 0
        most, now = caller.quotas.requests_per_minute, self._clock()
        with self._lock:
            left, since = self._buckets.get(caller.owner, (float(most), now))
            left = min(float(most), left + (now - since) * most / MINUTE_S)
            taken = left >= 1.0
            self._buckets[caller.owner] = (left - 1.0 if taken else left, now)
        return 0 if taken else math.ceil((1.0 - left) * MINUTE_S / most)

    @contextmanager
    def evaluation(self, caller: Caller) -> Iterator[None]:
        """Count an evaluation while it is under way.

        Raises
        ------
        QuotaReached
            When the caller has as many under way as it may have jobs running.
        """
        if caller.quotas is None:
            yield
            return
        most = caller.quotas.max_running
        with self._lock:
            running = self._evaluating.get(caller.owner, 0)
            if running >= most:
                raise QuotaReached(f"max_running is {most}, and as many evaluations are under way")
            self._evaluating[caller.owner] = running + 1
        try:
            yield
        finally:
            with self._lock:
                self._evaluating[caller.owner] -= 1
