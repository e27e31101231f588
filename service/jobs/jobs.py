"""Jobs as the rest of the service sees them: submit, get, list, wait, stop, cancel; alone or in batches."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

import sqlalchemy as sa

from partita.service.access.key_store import KeyStore
from partita.service.documents.document_store import DocumentStore, Limits
from partita.service.jobs import batches
from partita.service.jobs.batches import AskedBatch, Batch, Flow
from partita.service.jobs.census import census
from partita.service.jobs.keeper import Keeper, hand_over
from partita.service.jobs.leases import Lease, alive
from partita.service.jobs.opening import open_store
from partita.service.jobs.records import Asked, Job, Stored
from partita.service.jobs.runner import Runner
from partita.service.jobs.store import Claim
from partita.service.metrics import Census
from partita.service.replies import State
from partita.service.settings import Settings
from partita.service.solving.solves import Solves
from partita.service.solving.work import Task
from partita.service.tracing import Traces

LOG = logging.getLogger("partita.service")

LOOK_S = 0.05
"""How often the store is asked for a job that is solved elsewhere while somebody waits for it."""

READY_S = 5.0
"""How long the store may take to answer before it counts as away."""

LISTEN_S = 0.25
"""How often those who wait look whether this process is about to end."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a request got: a job, and the answer where it was in the store already."""

    job: Job
    stored: Stored | None = None


class Jobs:
    """All jobs, and the worker that this process is.

    ``open`` comes first; ``work`` begins with the queue; ``close`` ends both, and lets what was begun wait for the next
    worker.

    Parameters
    ----------
    settings
        Where the store is, and the bounds.
    solves
        The slots of this process.
    traces
        Told of jobs that have ended; None for nobody.
    """

    def __init__(self, settings: Settings, solves: Solves, traces: Traces | None = None) -> None:
        self._settings, self._solves, self._traces = settings, solves, traces
        self._direct: dict[str, asyncio.Task[None]] = {}
        self._engine: sa.Engine | None = None

    def open(self) -> None:
        """Connect to the store, bring it to this version and take a slot.

        Raises
        ------
        DatabaseUnusable
            When that cannot be done.
        """
        if self._engine is not None:
            return
        settings = self._settings
        self.store = open_store(settings)
        engine = self.store.engine
        self.keys = KeyStore(engine)
        self.documents = DocumentStore(engine, Limits(settings.max_documents, settings.max_document_bytes))
        self._lease = Lease(engine, settings.solves, settings.lease_s)
        self._runner = Runner(self.store, self._solves, self._traces)
        self._keeper = Keeper(self.store, self._runner, self._lease, settings.lease_s, settings.keep_s)
        self._runner.slot = self._lease.acquire()
        self._engine = engine

    def work(self) -> None:
        """Begin with the jobs that wait, also those that were begun before by a process that held this slot."""
        self.store.release(self._runner.slot)
        self.store.queue.work(self._runner.slot, self._settings.solves, self._runner.run)
        self._keeper.start()

    @property
    def slot(self) -> str:
        """The name under which this process works."""
        return self._runner.slot

    @property
    def closing(self) -> bool:
        """Whether this process is about to end."""
        return self._runner.closing

    def begin_to_close(self) -> None:
        """Let whoever waits for a job know that this process is about to end."""
        self._runner.closing = True

    def close(self) -> None:
        """End; every job that is not finished waits again."""
        if self._engine is None:
            return
        self._runner.closing = True
        self._solves.close()
        self._keeper.close()
        self.store.queue.rest()
        try:
            if self._lease.beat():  # else others have done so
                hand_over(self.store, self._runner.slot)
                self._lease.remove(self._runner.slot)
        except sa.exc.SQLAlchemyError as error:
            LOG.error("the store cannot be reached; others will take over when this worker shows no life: %s", error)
        self.store.queue.close()
        self._engine.dispose()
        self._engine = None
        if self._traces is not None:
            self._traces.close()

    async def submit(self, asked: Asked, *, at_once: bool, fresh: bool = False) -> Given:
        """Take a request.

        Parameters
        ----------
        asked
            What is to be done.
        at_once
            Whether to begin here and now where there is room, past the queue.
        fresh
            Whether to solve even what was answered before.

        Raises
        ------
        Conflict
            When the idempotency key was used for another request.
        QueueFull
            When too many jobs wait.
        QuotaReached
            When too many jobs of this owner wait.
        """
        earlier = await asyncio.to_thread(self.store.under_key, asked)
        if earlier is not None:
            return Given(earlier)
        known = None if fresh else await asyncio.to_thread(self.store.known, asked)
        if known is not None:
            self._solves.metrics.found_in_store("request")
        if known is not None and asked.idempotency_key is None:
            return Given(*known)
        if known is not None:
            job, new = await asyncio.to_thread(self.store.submit, asked, None, known[0].answer)
            return Given(job, known[1] if new else None)
        slot = self._runner.slot if at_once and self._solves.free else None
        job, new = await asyncio.to_thread(self.store.submit, asked, slot)
        if new and slot is not None and job.state == "running":
            claim = Claim(job.id, job.owner, job.attempt, job.created_at)
            solving = asyncio.create_task(
                self._runner.solve(Task(asked.kind, asked.body, contents=asked.contents), lambda: claim)
            )
            self._direct[job.id] = solving
            solving.add_done_callback(lambda _: self._direct.pop(job.id))
        return Given(job)

    async def repeated(self, asked: Asked | AskedBatch) -> bool:
        """Tell whether a request was taken before under its idempotency key; raises Conflict where another one was."""
        if isinstance(asked, Asked):
            return await asyncio.to_thread(self.store.under_key, asked) is not None
        return await asyncio.to_thread(batches.under_key, self.store, asked) is not None

    async def wait(self, job: Job, wait_s: float) -> Job:
        """Give a job when it has ended, or how it stands after some time."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + wait_s
        while not (job.ended or self.closing) and loop.time() < ends:
            solving = self._direct.get(job.id)
            if solving is not None:
                await asyncio.wait((solving,), timeout=min(LISTEN_S, ends - loop.time()))
            else:
                await asyncio.sleep(LOOK_S)
            job = await self.get(job.id, job.owner) or job
        return job

    async def get(self, job: str, owner: str) -> Job | None:
        """Give a job of an owner; None where there is none."""
        return await asyncio.to_thread(self.store.find, job, owner)

    async def answer(self, job: Job) -> Stored | None:
        """Give the answer of a job; None where it has none."""
        return None if job.answer is None else await asyncio.to_thread(self.store.answer, job.answer)

    async def ahead(self, job: Job) -> int | None:
        """Give how many jobs come before one that waits; None where it does not wait."""
        return await asyncio.to_thread(self.store.ahead, job) if job.state == "queued" else None

    async def list(self, owner: str, kind: str, state: State | None, limit: int, before: float | None) -> list[Job]:
        """Give the newest jobs of an owner, of a kind and a state, that are older than a time."""
        return await asyncio.to_thread(self.store.listed, owner, kind, state, limit, before)

    async def cancel(self, job: str, owner: str) -> Job | None:
        """Cancel a job unless it has ended, and give how it stands; its process ends within a second."""
        found = await asyncio.to_thread(self.store.cancel, job, owner)
        if found is not None and found.state == "cancelled":
            self._runner.kill(job)  # where it runs elsewhere, the keeper there does so
        return found

    async def stop(self, job: str, owner: str) -> Job | None:
        """Let a job end with the best that it has found, and give how it stands."""
        return await asyncio.to_thread(self.store.ask_stop, job, owner)

    async def submit_batch(self, asked: AskedBatch) -> Batch:
        """Take many jobs together; raises as ``submit`` does."""
        name = await asyncio.to_thread(batches.submit, self.store, asked)
        batch = await self.batch(name, asked.owner)
        assert batch is not None
        return batch

    async def batch(self, batch: str, owner: str) -> Batch | None:
        """Give a batch of an owner; None where there is none."""
        return await asyncio.to_thread(batches.find, self.store, batch, owner)

    async def batches(self, owner: str, limit: int, before: float | None) -> tuple[Batch, ...]:
        """Give the newest batches of an owner that are older than a time."""
        return tuple(await asyncio.to_thread(batches.listed, self.store, owner, limit, before))

    async def flow(self, batch: Batch, owner: str) -> Flow:
        """Measure how fast the queue of an owner before the end of a batch shrinks."""
        return await asyncio.to_thread(batches.flow, self.store, batch, owner)

    async def results(self, batch: str, owner: str) -> AsyncIterator[Job]:
        """Give the jobs of a batch as they end, each once, until all have ended or this process is about to."""
        told: set[str] = set()
        since = 0.0
        while True:
            found = await self.batch(batch, owner)
            fresh = await asyncio.to_thread(batches.ended, self.store, batch, since)
            for job in fresh:
                if job.id not in told:
                    told.add(job.id)
                    since = job.finished_at or since
                    yield job
            if found is None or not found.open or self.closing:
                return
            await asyncio.sleep(LISTEN_S)

    async def cancel_batch(self, batch: str, owner: str) -> Batch | None:
        """Cancel those jobs of a batch that have not ended, and give it as it stands."""
        await asyncio.to_thread(self.store.cancel_batch, batch, owner)
        return await self.batch(batch, owner)

    async def census(self) -> Census | None:
        """Count jobs and workers of the whole service; None where the store does not answer."""
        try:
            counted = asyncio.to_thread(census, self.store.engine, self._settings.lease_s)
            return await asyncio.wait_for(counted, READY_S)
        except (sa.exc.SQLAlchemyError, TimeoutError):
            return None

    async def ready(self) -> str | None:
        """Tell why no job can be taken and solved now; None where all is well."""
        try:
            workers = await asyncio.wait_for(
                asyncio.to_thread(alive, self.store.engine, self._settings.lease_s), READY_S
            )
        except (sa.exc.SQLAlchemyError, TimeoutError):
            return "the store cannot be reached"
        if not self._keeper.works:
            return "this worker does not work"
        return None if workers else "no worker is alive"
