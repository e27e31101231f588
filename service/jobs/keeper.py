"""The thread that keeps a worker and the store in step.

It writes the progress of all running solves, together and at most five times per second; stops and kills those whose
end was asked for, wherever that was; shows that this worker lives; takes over the jobs of workers that do not; and
clears what is old.
"""

import logging
import time
from threading import Event, Thread

from sqlalchemy.exc import SQLAlchemyError

from partita.service.jobs.leases import Lease
from partita.service.jobs.runner import Runner
from partita.service.jobs.store import Store
from partita.service.jobs.upkeep import clear, mend, note, orders

LOG = logging.getLogger("partita.service")

TICK_S = 0.2
BEATS = 5
"""Signs of life within the time after which a worker counts as gone."""
IDLE_S, MEND_S, CLEAR_S = 10.0, 60.0, 3600.0
"""How often it looks for entries that nobody here works on, for what does not agree, and for what is old."""


class Keeper:
    """The thread.

    Parameters
    ----------
    store, runner, lease
        What it keeps.
    lease_s
        After how long without a sign a worker counts as gone.
    keep_s
        How long ended jobs are kept.
    """

    def __init__(self, store: Store, runner: Runner, lease: Lease, lease_s: float, keep_s: float) -> None:
        self._store, self._runner, self._lease = store, runner, lease
        self._beat_s, self._keep_s = lease_s / BEATS, keep_s
        self._over = Event()
        self._idle: set[str] = set()
        self._next_beat = self._next_idle = self._next_mend = self._next_clear = 0.0
        self._thread = Thread(target=self._keep, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, after the step that is under way."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def works(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _keep(self) -> None:
        while not self._over.wait(TICK_S):
            try:
                self._follow_orders()
                now = time.monotonic()
                if now >= self._next_beat:
                    self._next_beat = now + self._beat_s
                    self._show_life()
                    self._take_over()
                if now >= self._next_idle:
                    self._next_idle = now + IDLE_S
                    self._let_go()
                if now >= self._next_mend:
                    self._next_mend = now + MEND_S
                    mend(self._store, time.time() - MEND_S)
                if now >= self._next_clear:
                    self._next_clear = now + CLEAR_S
                    clear(self._store, time.time() - self._keep_s)
            except SQLAlchemyError as error:
                LOG.error("the store cannot be reached, trying again: %s", error)

    def _follow_orders(self) -> None:
        """Write progress, and read what became of the jobs that are solved here."""
        current = {each.claim: each for each in self._runner.current if each.claim is not None}
        if not current:
            return
        note(self._store, {claim: each.progress.news() for claim, each in current.items()})
        still = orders(self._store, current)
        for claim, each in current.items():
            if claim not in still:
                each.kill()
            elif still[claim]:
                each.stop()

    def _show_life(self) -> None:
        if not self._lease.beat():
            LOG.error("this worker was thought to be gone; its jobs were given to others")
            for each in self._runner.current:
                each.kill()
            self._lease.renew()

    def _let_go(self) -> None:
        """Let others have what the queue gave to this worker, and nobody here has worked on for a while.

        So it is with entries whose giving, or whose claim, was written by a database that went away before it said so.
        """
        idle = set(self._store.queue.taken(self._runner.slot)) - self._runner.taken
        self._store.queue.give_back(idle & self._idle)
        self._idle = idle

    def _take_over(self) -> None:
        for worker in self._lease.gone():
            if self._lease.bury(worker):
                LOG.warning("worker %s is gone; its jobs wait for others", worker.slot)
                hand_over(self._store, worker.slot)
                self._lease.remove(worker.slot)


def hand_over(store: Store, slot: str) -> None:
    """Let all jobs of a slot, on which nobody works any more, wait for any worker."""
    store.release(slot)
    store.queue.give_back(store.waiting(store.queue.taken(slot)))
