"""The store of jobs and answers: every change is one transaction, and a job ends once."""

import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field

import sqlalchemy as sa

from partita import __version__
from partita.service.access.quotas import check_owner, quotas_of
from partita.service.jobs import turns
from partita.service.jobs.attachments import attach, attached
from partita.service.jobs.parts import in_parts
from partita.service.jobs.queue import Queue
from partita.service.jobs.records import (
    COLUMNS,
    FEW,
    MANY,
    OPEN,
    Asked,
    Conflict,
    Ending,
    Job,
    QueueFull,
    Stored,
    job_of,
    packed,
    pinned,
    unpacked,
)
from partita.service.jobs.tables import answers, batches, jobs
from partita.service.replies import State
from partita.service.solving.work import Task

PROGRESS = ("phase", "incumbent", "bound", "relative_gap", "points", "improved_at", "alive_at")
"""The columns that tell how far a job is."""

NOT_BEGUN = {"state": "queued", "direct": False, "executor": None, "attempt": 0, "started_at": None}
"""The columns of a job that was to begin at once and must wait after all."""

MOST_ATTEMPTS = 20
"""How often a job is begun anew because its worker was gone; after that it is thought to be the cause."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to solve a job, until another worker has it; the job was begun ``attempt`` times.

    It was taken at ``since``, in seconds since 1970.
    """

    job: str
    owner: str
    attempt: int
    since: float = field(default=0.0, compare=False)


class Store:
    """Jobs and answers in a database.

    Parameters
    ----------
    engine
        The database.
    queue
        Where jobs wait for a worker.
    max_queued
        The most jobs that may wait.
    """

    def __init__(self, engine: sa.Engine, queue: Queue, max_queued: int) -> None:
        self.engine, self.queue, self._max_queued = engine, queue, max_queued

    def submit(self, asked: Asked, executor: str | None = None, answer: str | None = None) -> tuple[Job, bool]:
        """Take a job, and tell whether it is a new one.

        Parameters
        ----------
        asked
            What is to be done. Where its idempotency key was used before, that job is given.
        executor
            The slot that begins at once, past the queue, unless the quotas of the owner do not allow that; None to
            wait in the queue.
        answer
            Key of the answer, where it is in the store already: the job then ends at once.

        Raises
        ------
        Conflict
            When the idempotency key was used for another request.
        QueueFull
            When too many jobs wait.
        QuotaReached
            When too many jobs of this owner wait.
        OwnerGone
            When its last key was revoked meanwhile.
        """
        job, waits = str(uuid.uuid4()), executor is None and answer is None
        values = _new_row(job, asked, executor, answer)
        try:
            with self.engine.begin() as connection:
                connection.execute(jobs.insert().values(values))
                check_owner(connection, asked.owner)
                attach(connection, job, asked.contents)
                if executor is not None and not turns.has_turn(connection, asked.owner):
                    connection.execute(jobs.update().where(jobs.c.id == job).values(NOT_BEGUN))
                    waits = True
                if waits:
                    self.check_room(connection, asked.owner)
                    turns.wait(connection, self.queue, asked.owner, [job], FEW)
        except sa.exc.IntegrityError:
            earlier = self.under_key(asked)
            if earlier is None:
                raise
            return earlier, False
        found = self.find(job, asked.owner)
        assert found is not None
        return found, True

    def under_key(self, asked: Asked) -> Job | None:
        """Give the job that was asked for under the same idempotency key.

        Raises
        ------
        Conflict
            When that was another request.
        """
        if asked.idempotency_key is None:
            return None
        where = (jobs.c.owner == asked.owner, jobs.c.idempotency_key == asked.idempotency_key)
        with self.engine.connect() as connection:
            row = connection.execute(sa.select(*COLUMNS).where(*where)).one_or_none()
        if row is None:
            return None
        job = job_of(row)
        if (job.request, job.include_problem) != (asked.digest, asked.include_problem):
            raise Conflict
        return job

    def check_room(self, connection: sa.Connection, owner: str) -> None:
        """Refuse jobs of an owner that were just put in the table where more wait than may.

        Raises
        ------
        QueueFull
            When there are too many of all owners together.
        QuotaReached
            When there are too many of this one.
        """
        turns.check_quota(connection, owner)
        waiting = connection.execute(sa.select(sa.func.count()).where(jobs.c.state == "queued")).scalar_one()
        if waiting > self._max_queued:
            raise QueueFull(f"there is no room among the {self._max_queued} jobs that may wait")

    def find(self, job: str, owner: str) -> Job | None:
        """Give a job of an owner; None where there is none."""
        with self.engine.connect() as connection:
            row = connection.execute(sa.select(*COLUMNS).where(jobs.c.id == job, jobs.c.owner == owner)).one_or_none()
        return None if row is None else job_of(row)

    def known(self, asked: Asked) -> tuple[Job, Stored] | None:
        """Give the latest job that has answered the same request, with its answer; None where that must be found."""
        with self.engine.connect() as connection:
            row = connection.execute(
                sa.select(*COLUMNS)
                .join(answers, answers.c.key == jobs.c.answer)
                .where(
                    jobs.c.owner == asked.owner,
                    jobs.c.request == asked.digest,
                    jobs.c.pinned.is_not_distinct_from(pinned(asked.contents)),
                    jobs.c.state == "succeeded",
                    answers.c.key.startswith("sha256:"),
                    answers.c.version == __version__,
                )
                .order_by(jobs.c.finished_at.desc())
                .limit(1)
            ).one_or_none()
        if row is None:
            return None
        job = job_of(row)
        stored = self.answer(str(job.answer))
        return None if stored is None else (job, stored)

    def answer(self, key: str) -> Stored | None:
        """Give an answer; None where it is not there."""
        with self.engine.connect() as connection:
            row = connection.execute(sa.select(answers).where(answers.c.key == key)).one_or_none()
        return None if row is None else Stored(row.status, unpacked(row.body), unpacked(row.problem), row.created_at)

    def holds(self, key: str) -> bool:
        """Tell whether an answer is there."""
        with self.engine.connect() as connection:
            return connection.execute(sa.select(answers.c.key).where(answers.c.key == key)).first() is not None

    def task(self, job: str) -> Task | None:
        """Give what a job asks for; None where it has ended."""
        with self.engine.connect() as connection:
            row = connection.execute(
                sa.select(jobs.c.kind, jobs.c.body, jobs.c.batch, batches.c.base)
                .outerjoin(batches, batches.c.id == jobs.c.batch)
                .where(jobs.c.id == job, jobs.c.state.in_(OPEN))
            ).one_or_none()
            if row is None:
                return None
            body, base = unpacked(row.body), None if row.base is None else unpacked(row.base)
            return Task(row.kind, body, base, attached(connection, job, row.batch, body, base))

    def begin(self, job: str, slot: str) -> Claim | None:
        """Claim a job that waits; None where it waits no more, or was begun too often."""
        with self.engine.begin() as connection:
            row = connection.execute(
                jobs.update()
                .where(jobs.c.id == job, jobs.c.state == "queued", jobs.c.attempt < MOST_ATTEMPTS)
                .values(
                    state="running",
                    executor=slot,
                    attempt=jobs.c.attempt + 1,
                    started_at=time.time(),
                    **dict.fromkeys(PROGRESS),
                )
                .returning(jobs.c.owner, jobs.c.attempt, jobs.c.created_at)
            ).one_or_none()
        return None if row is None else Claim(job, row.owner, row.attempt, row.created_at)

    def finish(self, claim: Claim, ending: Ending) -> bool:
        """Record how a job ended; False where it had ended before, or another worker has it."""
        now = time.time()
        with self.engine.begin() as connection:
            quotas_of(connection, claim.owner)  # locked first by all who change jobs of an owner: no deadlock
            changed = connection.execute(
                jobs.update()
                .where(jobs.c.id == claim.job, jobs.c.state == "running", jobs.c.attempt == claim.attempt)
                .values(state=ending.state, finished_at=now, answer=ending.answer, failure=ending.failure)
            )
            if changed.rowcount == 0:
                return False
            if ending.stored is not None and ending.answer is not None:
                self._keep(connection, ending.answer, ending.stored)
            _follow(connection, claim.job, ending, now)
            turns.advance(connection, self.queue, claim.owner)
        return True

    def give_up(self, job: str, failure: bytes) -> None:
        """End a job that was begun too often."""
        ending, now = Ending("failed", failure=failure), time.time()
        with self.engine.begin() as connection:
            owner = connection.execute(sa.select(jobs.c.owner).where(jobs.c.id == job)).scalar_one()
            quotas_of(connection, owner)
            changed = connection.execute(
                jobs.update()
                .where(jobs.c.id == job, jobs.c.state == "queued", jobs.c.attempt >= MOST_ATTEMPTS)
                .values(state=ending.state, finished_at=now, failure=failure)
            )
            if changed.rowcount:
                _follow(connection, job, ending, now)
                turns.advance(connection, self.queue, owner)

    def _keep(self, connection: sa.Connection, key: str, stored: Stored) -> None:
        """Put an answer into the store, unless one is there."""
        if connection.execute(sa.select(answers.c.key).where(answers.c.key == key)).first() is None:
            connection.execute(
                answers.insert().values(
                    key=key,
                    version=__version__,
                    status=stored.status,
                    body=packed(stored.body),
                    problem=packed(stored.problem),
                    created_at=stored.created_at,
                )
            )

    def cancel(self, job: str, owner: str) -> Job | None:
        """Cancel a job of an owner, unless it has ended; give it as it stands then."""
        self._end(owner, jobs.c.id == job)
        return self.find(job, owner)

    def cancel_batch(self, batch: str, owner: str) -> None:
        """Cancel those jobs of a batch that have not ended."""
        self._end(owner, jobs.c.batch == batch)

    def cancel_owner(self, owner: str) -> None:
        """Cancel those jobs of an owner that have not ended."""
        self._end(owner)

    def _end(self, owner: str, *which: sa.ColumnElement[bool]) -> None:
        """Cancel jobs of an owner; those that waited for the end of a cancelled one wait for a worker from now on."""
        with self.engine.begin() as connection:
            quotas_of(connection, owner)
            ended = connection.execute(
                jobs.update()
                .where(jobs.c.owner == owner, *which, jobs.c.state.in_(OPEN))
                .values(state="cancelled", finished_at=time.time())
                .returning(jobs.c.id)
            ).scalars()
            ids = list(ended)
            orphans: list[str] = []
            for part in in_parts(ids):
                orphans += connection.execute(
                    jobs.update()
                    .where(jobs.c.leader.in_(part), jobs.c.state == "queued")
                    .values(leader=None)
                    .returning(jobs.c.id)
                ).scalars()
            turns.wait(connection, self.queue, owner, orphans, MANY)
        self.queue.drop(ids)

    def ask_stop(self, job: str, owner: str) -> Job | None:
        """Ask for the end of a search with what it has found; give the job."""
        with self.engine.begin() as connection:
            connection.execute(
                jobs.update()
                .where(jobs.c.id == job, jobs.c.owner == owner, jobs.c.state.in_(OPEN))
                .values(stop_asked=True)
            )
        return self.find(job, owner)

    def release(self, slot: str) -> None:
        """Let all that a slot was solving wait again, as it is solved no more."""
        mine = (jobs.c.executor == slot, jobs.c.state == "running")
        with self.engine.begin() as connection:
            direct = connection.execute(
                jobs.update()
                .where(*mine, jobs.c.direct)
                .values(state="queued", executor=None, direct=False)
                .returning(jobs.c.id)
            ).scalars()
            self.queue.put(connection, list(direct), FEW)
            connection.execute(jobs.update().where(*mine).values(state="queued", executor=None))

    def waiting(self, ids: Collection[str]) -> list[str]:
        """Give those of some jobs that wait."""
        found: list[str] = []
        with self.engine.connect() as connection:
            for part in in_parts(ids):
                found += connection.execute(
                    sa.select(jobs.c.id).where(jobs.c.id.in_(part), jobs.c.state == "queued")
                ).scalars()
        return found

    def ahead(self, job: Job) -> int:
        """Give how many jobs of the same owner wait before one that waits; those of others are not told of."""
        earlier = jobs.c.created_at < job.created_at
        if job.batch is None:
            before = sa.and_(earlier, jobs.c.batch.is_(None))
        else:
            same = sa.and_(jobs.c.batch == job.batch, jobs.c.position < job.position)
            before = sa.or_(earlier, jobs.c.batch.is_(None), same)
        with self.engine.connect() as connection:
            return connection.execute(
                sa.select(sa.func.count()).where(
                    jobs.c.owner == job.owner, jobs.c.state == "queued", jobs.c.id != job.id, before
                )
            ).scalar_one()

    def listed(self, owner: str, kind: str, state: State | None, limit: int, before: float | None) -> list[Job]:
        """Give the newest jobs of an owner outside batches, of a state, before a time."""
        chosen = sa.select(*COLUMNS).where(jobs.c.owner == owner, jobs.c.kind == kind, jobs.c.batch.is_(None))
        if state is not None:
            chosen = chosen.where(jobs.c.state == state)
        if before is not None:
            chosen = chosen.where(jobs.c.created_at < before)
        with self.engine.connect() as connection:
            rows = connection.execute(chosen.order_by(jobs.c.created_at.desc(), jobs.c.id).limit(limit))
            return [job_of(row) for row in rows]


def _new_row(job: str, asked: Asked, executor: str | None, answer: str | None) -> dict[str, object]:
    """Make the row of a job that waits, is begun by an executor, or has its answer."""
    now, waits = time.time(), executor is None and answer is None
    state: State = "queued" if waits else ("running" if answer is None else "succeeded")
    return {
        "id": job,
        "owner": asked.owner,
        "kind": asked.kind,
        "state": state,
        "direct": executor is not None,
        "body": packed(asked.body),
        "request": asked.digest,
        "pinned": pinned(asked.contents),
        "include_problem": asked.include_problem,
        "idempotency_key": asked.idempotency_key,
        "created_at": now,
        "started_at": None if waits else now,
        "finished_at": None if answer is None else now,
        "executor": executor,
        "attempt": 0 if executor is None else 1,
        "stop_asked": False,
        "answer": answer,
    }


def _follow(connection: sa.Connection, leader: str, ending: Ending, now: float) -> None:
    """End the jobs that ask for the same as one that has ended."""
    connection.execute(
        jobs.update()
        .where(jobs.c.leader == leader, jobs.c.state == "queued")
        .values(state=ending.state, finished_at=now, answer=ending.answer, failure=ending.failure)
    )
