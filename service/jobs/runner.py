"""Solves the jobs of one worker and records how they end."""

import asyncio
import logging
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from partita import __version__
from partita.service.jobs.database import DatabaseAway
from partita.service.jobs.progress import Progress
from partita.service.jobs.records import Ending, Stored, digest_of
from partita.service.jobs.store import Claim, Store
from partita.service.refusals import abandoned, logged_refusal
from partita.service.solving.outcomes import Answered, Cancelled, Failed, Outcome
from partita.service.solving.process import SolveProcess
from partita.service.solving.solves import Solves
from partita.service.solving.talk import Accepted, Message
from partita.service.solving.work import Task
from partita.service.tracing import MOST_PHASES, Life, Phase, Traces

LOG = logging.getLogger("partita.service")

AGAIN_S = 1.0
"""How long to wait before the store is tried again when it cannot be reached."""

KEPT = ("optimal", "feasible", "infeasible", "complete", "sample", "partial")
"""The statuses of answers that are given again to equal requests: those in which something was found."""

Result = TypeVar("Result")


class _Lost(Exception):
    """The job is not this worker's to solve."""


class Current:
    """A job that is being solved here.

    Attributes
    ----------
    claim
        The right to solve it; None until its turn has come.
    progress
        How far it is.
    """

    def __init__(self, store: Store, task: Task) -> None:
        self._store, self.task = store, task
        self.claim: Claim | None = None
        self.progress = Progress()
        self.known: str | None = None
        self.key: str | None = None
        self.process: SolveProcess | None = None
        self.stop_asked = False
        self.begun_at = 0.0
        self.phases: list[Phase] = []

    def heard(self, message: Message) -> bool:
        """Note what the process says; False where the answer is known already."""
        self.progress.note(message)
        self._follow(message)
        if isinstance(message, Accepted) and message.digest is not None and self.claim is not None:
            self.key = digest_of(__version__, self.claim.owner, self.task.kind, message.digest)
            with suppress(SQLAlchemyError):  # where the store cannot be asked the problem is solved once more
                if self._store.holds(self.key):
                    self.known = self.key
            return self.known is None
        return True

    def _follow(self, message: Message) -> None:
        """Note when the search turns to something else."""
        name = "search" if isinstance(message, Accepted) else getattr(message, "phase", None)
        if name is not None and (not self.phases or self.phases[-1].name != name) and len(self.phases) < MOST_PHASES:
            self.phases.append(Phase(name, time.time()))

    def stop(self) -> None:
        """End the search with what it has found."""
        if not self.stop_asked and self.process is not None:
            self.stop_asked = True
            self.process.stop()

    def kill(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()


class Runner:
    """Solves jobs in this process.

    Parameters
    ----------
    store
        Where they are.
    solves
        The slots of this process.
    traces
        Told of jobs that have ended; None for nobody.

    Attributes
    ----------
    taken
        The jobs of the queue that are being solved here, or wait here for their turn.
    slot
        The name under which this process works.
    closing
        Whether it is about to end.
    """

    def __init__(self, store: Store, solves: Solves, traces: Traces | None = None) -> None:
        self._store, self._solves, self._traces = store, solves, traces
        self._lock = Lock()
        self._current: set[Current] = set()
        self.taken: set[str] = set()
        self.slot = ""
        self.closing = False

    @property
    def current(self) -> list[Current]:
        """What is being solved now."""
        with self._lock:
            return list(self._current)

    def kill(self, job: str) -> None:
        """End the process of a job, where it is solved here."""
        for each in self.current:
            if each.claim is not None and each.claim.job == job:
                each.kill()

    async def run(self, job: str) -> None:
        """Solve a job of the queue, unless it has ended or another worker has it.

        Raises
        ------
        asyncio.CancelledError
            When the job has not ended: the queue then does not take it for done.
        """
        self.taken.add(job)
        try:
            task = await self._surely(lambda: self._store.task(job))
            if task is not None:
                await self.solve(task, lambda: self._claimed(job))
                if await self._surely(lambda: self._store.task(job)) is not None:
                    raise asyncio.CancelledError
        finally:
            self.taken.discard(job)

    def _claimed(self, job: str) -> Claim:
        """Claim a job whose turn has come."""
        claim = self._store.begin(job, self.slot)
        if claim is None:
            self._store.give_up(job, abandoned().document())
            raise _Lost
        return claim

    async def solve(self, task: Task, claim: Callable[[], Claim]) -> None:
        """Solve a job that is claimed when its turn has come, and record how it ends."""
        current = Current(self._store, task)

        def begun(process: SolveProcess) -> None:
            current.claim = claim()
            current.process, current.begun_at = process, time.time()
            if current.claim.attempt == 1:
                self._solves.metrics.waited(task.kind, time.time() - current.claim.since)
            with self._lock:
                self._current.add(current)

        try:
            outcome = await self._solves.solve(task, heard=current.heard, begun=begun, patient=True)
        except _Lost:
            return
        except Exception:
            outcome = Failed(traceback.format_exc())
        finally:
            with self._lock:
                self._current.discard(current)
        won = current.claim
        ending = None if won is None else self._ending(won, current, outcome)
        if won is not None and ending is not None and await self._surely(lambda: self._store.finish(won, ending)):
            self._trace(won, current, ending)

    def _trace(self, claim: Claim, current: Current, ending: Ending) -> None:
        """Tell what the job went through, where traces are asked for."""
        if self._traces is not None:
            moments = (claim.since, current.begun_at, time.time())
            kind = current.task.kind
            self._traces.job(Life(claim.job, kind, ending.state, claim.attempt, *moments, tuple(current.phases)))

    def _ending(self, claim: Claim, current: Current, outcome: Outcome) -> Ending | None:
        """Give what to record; None where the job goes on elsewhere or was cancelled."""
        if current.known is not None:
            self._solves.metrics.found_in_store("problem")
            return Ending("succeeded", current.known)
        if isinstance(outcome, Cancelled):
            return None
        if not isinstance(outcome, Answered):
            refusal = logged_refusal(outcome)
            self._solves.metrics.failed(refusal.kind.name)
            LOG.info("job %s failed: %s", claim.job, refusal.instance)
            return Ending("failed", failure=refusal.document())
        shared = not current.stop_asked and outcome.status in KEPT and current.key is not None
        key = current.key if shared else None
        return Ending(
            "succeeded",
            key or f"job:{claim.job}",
            Stored(outcome.status, outcome.body, outcome.problem, time.time()),
        )

    async def _surely(self, change: Callable[[], Result]) -> Result:
        """Do something with the store, again and again until it can be reached."""
        while True:
            try:
                return await asyncio.to_thread(change)
            except DatabaseAway as error:
                if self.closing:
                    raise
                LOG.error("the store cannot be reached, trying again: %s", error.orig)
                await asyncio.sleep(AGAIN_S)
