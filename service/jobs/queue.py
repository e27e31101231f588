"""The durable queue, on DBOS; nothing else in Partita knows its words.

An entry is the identity of a job. Entries are put there in the same transaction as the job, taken by the workers in the
order of their priority, and handed to another worker when the one that took them is gone. An entry may be worked on
twice, so what is done for it must be recorded only once.
"""

import logging
from collections.abc import Awaitable, Callable, Collection

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig
from dbos import error as errors

from partita.service.jobs.parts import in_parts

LOG = logging.getLogger("partita.service")

APPLICATION, QUEUE, ENTRY = "partita", "solves", "solve"

FORMAT = "partita-1"
"""Raised only when entries of earlier versions cannot be worked on any more; each version takes its own alone."""

POLL_S = 0.1
"""How often a worker looks for entries."""

Run = Callable[[str], Awaitable[None]]
"""Works on an entry until its job has ended; raises CancelledError where that is left to another worker."""


class _Passing(logging.Handler):
    """Hands what DBOS says to the log of the service; not that an entry was cancelled, which it takes for an error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on a record."""
        if not (record.exc_info and isinstance(record.exc_info[1], errors.DBOSAwaitedWorkflowCancelledError)):
            LOG.handle(record)


class Queue:
    """The queue in a database. ``put``, ``drop`` and ``free`` work in every process, the rest in workers.

    A process can be one worker at a time: DBOS keeps one instance.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._client = DBOSClient(system_database_engine=engine, application_name=APPLICATION, lazy=True)
        self._works = False

    def upgrade(self) -> None:
        """Bring the tables of the queue to this version."""
        log = logging.getLogger("dbos")
        log.setLevel(logging.ERROR)
        log.handlers, log.propagate = [_Passing()], False
        address = self._engine.url.render_as_string(hide_password=False)
        DBOS.migrate(address)

    def put(self, connection: sa.Connection, jobs: Collection[str], priority: int) -> None:
        """Put jobs into the queue, within the transaction of the connection; those that are there already stay so."""
        for job in jobs:
            self._client.enqueue_in_transaction(
                connection,
                {
                    "workflow_name": ENTRY,
                    "queue_name": QUEUE,
                    "workflow_id": job,
                    "app_version": FORMAT,
                    "priority": priority,
                },
                job,
            )

    def drop(self, jobs: Collection[str]) -> None:
        """Take jobs out of the queue."""
        for part in in_parts(jobs):
            self._client.cancel_workflows(part)

    def forget(self, jobs: Collection[str]) -> None:
        """Remove all traces of jobs that have ended."""
        for part in in_parts(jobs):
            self._client.delete_workflows(part)

    def taken(self, slot: str) -> list[str]:
        """Give the jobs that a slot took and has not worked off."""
        entries = self._client.list_workflows(
            status="PENDING", executor_id=[slot], queue_name=QUEUE, load_input=False, load_output=False
        )
        return [entry.workflow_id for entry in entries]

    def give_back(self, jobs: Collection[str]) -> None:
        """Let jobs that nobody works on any more be taken again; who works on them is not looked at."""
        for part in in_parts(jobs):
            self._client.resume_workflows(part, queue_name=QUEUE)

    def lost(self, jobs: Collection[str]) -> list[str]:
        """Give those of some jobs that no worker will ever take."""
        kept: set[str] = set()
        for part in in_parts(jobs):
            entries = self._client.list_workflows(workflow_ids=part, load_input=False, load_output=False)
            kept.update(entry.workflow_id for entry in entries if entry.status in ("ENQUEUED", "PENDING"))
        return [job for job in jobs if job not in kept]

    def work(self, slot: str, at_once: int, run: Run) -> None:
        """Begin to take entries, also those that an earlier process took for this slot."""
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_engine": self._engine,
            "application_version": FORMAT,
            "executor_id": slot,
            "log_level": "ERROR",
            "enable_otlp": False,
            "use_listen_notify": False,
        }
        DBOS(config=config)

        @DBOS.step(name=ENTRY, preemptible=True)
        async def step(job: str) -> None:
            await run(job)

        @DBOS.workflow(name=ENTRY)
        async def entry(job: str) -> None:
            await step(job)

        DBOS.listen_queues([QUEUE])
        DBOS.launch()
        DBOS.register_queue(QUEUE, worker_concurrency=at_once, polling_interval_sec=POLL_S, on_conflict="always_update")
        self._works = True

    def rest(self) -> None:
        """Take no more entries, and cancel the work on those that were taken."""
        if self._works:
            self._works = False
            DBOS.destroy(destroy_registry=True)

    def close(self) -> None:
        """End the use of the database."""
        self.rest()
        self._client.destroy()
