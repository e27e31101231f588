"""Batches: many jobs that are taken together, in one transaction."""

import time
import uuid
from dataclasses import dataclass

import sqlalchemy as sa

from partita.models.queueing import drain_s
from partita.service.access.quotas import check_owner
from partita.service.jobs import turns
from partita.service.jobs.attachments import attach
from partita.service.jobs.records import COLUMNS, MANY, OPEN, Conflict, Job, digest_of, job_of, packed, pinned
from partita.service.jobs.store import Store
from partita.service.jobs.tables import batches, jobs
from partita.service.solving.references import Content
from partita.service.solving.variants import Split

WINDOW_S = 120.0
"""For how long back the rates are measured from which the end of a batch is forecast."""

OVERLAP_S = 10.0
"""By how much the clocks of the workers may differ without a result being left out."""


@dataclass(frozen=True, slots=True)
class AskedBatch:
    """A request for a batch.

    ``digest`` tells it from others under the same idempotency key; ``contents`` are the stored documents that it names.
    """

    owner: str
    split: Split
    digest: str
    include_problem: bool = False
    idempotency_key: str | None = None
    contents: tuple[Content, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it stands: how many of its jobs are in each state."""

    id: str
    created_at: float
    total: int
    states: dict[str, int]

    @property
    def open(self) -> int:
        """How many jobs have not ended."""
        return sum(self.states.get(state, 0) for state in OPEN)


@dataclass(frozen=True, slots=True)
class Flow:
    """What is measured of the queue before the end of a batch, of one owner's jobs alone; rates in jobs per second.

    Attributes
    ----------
    backlog
        Jobs that must be solved until then; of equal ones, one.
    arrival_per_s
        How many arrive that come before those of the batch.
    service_per_s
        How many are solved.
    """

    backlog: int
    arrival_per_s: float
    service_per_s: float

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the end, as a fluid queue has it; None where no end is in sight."""
        return drain_s(self.backlog, self.arrival_per_s, self.service_per_s)


def submit(store: Store, asked: AskedBatch) -> str:
    """Take a batch and give its name; where its idempotency key was used for the same batch, that one's.

    Of equal problems one is solved: the others have its end.

    Raises
    ------
    Conflict
        When the idempotency key was used for another request.
    QueueFull, QuotaReached
        When there is no room for so many jobs.
    OwnerGone
        When the last key of the owner was revoked meanwhile.
    """
    earlier = under_key(store, asked)
    if earlier is not None:
        return earlier
    batch, now, split = str(uuid.uuid4()), time.time(), asked.split
    rows = list(_rows(batch, now, asked))
    try:
        with store.engine.begin() as connection:
            connection.execute(
                batches.insert().values(
                    id=batch,
                    owner=asked.owner,
                    base=None if split.base is None else packed(split.base),
                    total=len(rows),
                    request=asked.digest,
                    idempotency_key=asked.idempotency_key,
                    created_at=now,
                )
            )
            check_owner(connection, asked.owner)
            attach(connection, batch, asked.contents)
            connection.execute(jobs.insert(), rows)
            store.check_room(connection, asked.owner)
            leaders = [str(row["id"]) for row in rows if row["leader"] is None]
            turns.wait(connection, store.queue, asked.owner, leaders, MANY)
    except sa.exc.IntegrityError:
        earlier = under_key(store, asked)
        if earlier is None:
            raise
        return earlier
    return batch


def _rows(batch: str, now: float, asked: AskedBatch) -> list[dict[str, object]]:
    """Make the jobs of a batch."""
    rows: list[dict[str, object]] = []
    leaders: dict[str, str] = {}
    meant = pinned(asked.contents)
    for position, variant in enumerate(asked.split.variants):
        job = str(uuid.uuid4())
        parts = () if asked.split.base is None else (asked.split.base,)
        request = digest_of("plan", *parts, variant.body)
        leader = leaders.setdefault(request, job)
        rows.append(
            {
                "id": job,
                "owner": asked.owner,
                "batch": batch,
                "position": position,
                "name": variant.name,
                "kind": "plan",
                "state": "queued",
                "direct": False,
                "leader": None if leader == job else leader,
                "body": packed(variant.body),
                "request": request,
                "pinned": meant,
                "include_problem": asked.include_problem,
                "created_at": now,
                "attempt": 0,
                "stop_asked": False,
            }
        )
    return rows


def under_key(store: Store, asked: AskedBatch) -> str | None:
    """Give the batch that was asked for under the same key; raises Conflict as ``submit`` does."""
    if asked.idempotency_key is None:
        return None
    where = (batches.c.owner == asked.owner, batches.c.idempotency_key == asked.idempotency_key)
    with store.engine.connect() as connection:
        row = connection.execute(sa.select(batches.c.id, batches.c.request).where(*where)).one_or_none()
    if row is None:
        return None
    if row.request != asked.digest:
        raise Conflict
    return str(row.id)


def find(store: Store, batch: str, owner: str) -> Batch | None:
    """Give a batch of an owner as it stands; None where there is none."""
    with store.engine.connect() as connection:
        row = connection.execute(
            sa.select(batches.c.created_at, batches.c.total).where(batches.c.id == batch, batches.c.owner == owner)
        ).one_or_none()
        if row is None:
            return None
        counted = sa.select(jobs.c.state, sa.func.count()).where(jobs.c.batch == batch).group_by(jobs.c.state)
        states = {str(state): int(count) for state, count in connection.execute(counted)}
    return Batch(batch, row.created_at, row.total, states)


def listed(store: Store, owner: str, limit: int, before: float | None) -> list[Batch]:
    """Give the newest batches of an owner, before a time, as they stand."""
    chosen = sa.select(batches.c.id, batches.c.created_at, batches.c.total).where(batches.c.owner == owner)
    if before is not None:
        chosen = chosen.where(batches.c.created_at < before)
    with store.engine.connect() as connection:
        rows = connection.execute(chosen.order_by(batches.c.created_at.desc(), batches.c.id).limit(limit)).all()
        states: dict[str, dict[str, int]] = {row.id: {} for row in rows}
        counted = sa.select(jobs.c.batch, jobs.c.state, sa.func.count()).where(jobs.c.batch.in_(states))
        for batch, state, count in connection.execute(counted.group_by(jobs.c.batch, jobs.c.state)):
            states[batch][state] = count
    return [Batch(row.id, row.created_at, row.total, states[row.id]) for row in rows]


def flow(store: Store, batch: Batch, owner: str) -> Flow:
    """Measure how fast the queue of an owner before the end of a batch shrinks."""
    now = time.time()
    window = max(1.0, min(WINDOW_S, now - batch.created_at))
    alone, mine = jobs.c.leader.is_(None), jobs.c.batch == batch.id
    before = sa.or_(mine, jobs.c.batch.is_(None), jobs.c.created_at < batch.created_at)
    arrived = sa.and_(jobs.c.batch.is_(None), jobs.c.created_at > now - window)
    served = sa.and_(jobs.c.state.in_(("succeeded", "failed")), jobs.c.finished_at > now - window)
    with store.engine.connect() as connection:

        def count(*which: sa.ColumnElement[bool]) -> int:
            chosen = sa.select(sa.func.count()).select_from(jobs).where(jobs.c.owner == owner, alone, *which)
            return int(connection.execute(chosen).scalar_one())

        return Flow(count(before, jobs.c.state.in_(OPEN)), count(arrived) / window, count(served) / window)


def ended(store: Store, batch: str, since: float) -> list[Job]:
    """Give the jobs of a batch that ended after a time, or shortly before, in that order."""
    chosen = sa.select(*COLUMNS).where(jobs.c.batch == batch, jobs.c.finished_at > since - OVERLAP_S)
    with store.engine.connect() as connection:
        rows = connection.execute(chosen.order_by(jobs.c.finished_at, jobs.c.position))
        return [job_of(row) for row in rows]
