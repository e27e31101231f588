"""Which jobs may be in the queue.

Of an owner with quotas as many jobs are in the queue or running as may run at once; its others are held until one of
those ends. So the quota holds on all workers together, and a batch of thousands is never before the jobs of others.
"""

from collections.abc import Collection

import sqlalchemy as sa

from partita.service.access.quotas import QuotaReached, quotas_of
from partita.service.jobs.parts import in_parts
from partita.service.jobs.queue import Queue
from partita.service.jobs.records import FEW, OPEN
from partita.service.jobs.tables import jobs


def check_quota(connection: sa.Connection, owner: str) -> None:
    """Refuse what was just put in the table where more jobs of an owner wait than may.

    Raises
    ------
    QuotaReached
        When there are more.
    """
    quotas = quotas_of(connection, owner)
    if quotas is not None and _count(connection, jobs.c.owner == owner, jobs.c.state == "queued") > quotas.max_queued:
        raise QuotaReached(f"max_queued is {quotas.max_queued}: so many jobs of this key may wait")


def has_turn(connection: sa.Connection, owner: str) -> bool:
    """Tell whether an owner has no more jobs in the queue and running than may run at once."""
    quotas = quotas_of(connection, owner)
    return quotas is None or _active(connection, owner) <= quotas.max_running


def wait(connection: sa.Connection, queue: Queue, owner: str, waiting: Collection[str], priority: int) -> None:
    """Let jobs wait: in the queue, or for their turn to be there."""
    if quotas_of(connection, owner) is None:
        queue.put(connection, waiting, priority)
        return
    for part in in_parts(waiting):
        connection.execute(jobs.update().where(jobs.c.id.in_(part)).values(held=True))
    advance(connection, queue, owner)


def advance(connection: sa.Connection, queue: Queue, owner: str) -> None:
    """Put those held jobs of an owner into the queue whose turn has come: single ones first, then the oldest.

    All get the same priority there: between owners their order is that in which their turns came.
    """
    quotas = quotas_of(connection, owner)
    held = (jobs.c.owner == owner, jobs.c.state == "queued", jobs.c.held)
    chosen = sa.select(jobs.c.id).where(*held).order_by(jobs.c.batch.is_not(None), jobs.c.created_at, jobs.c.position)
    if quotas is not None:
        room = quotas.max_running - _active(connection, owner)
        if room <= 0:
            return
        chosen = chosen.limit(room)
    for part in in_parts(connection.execute(chosen).scalars()):
        connection.execute(jobs.update().where(jobs.c.id.in_(part)).values(held=False))
        queue.put(connection, part, FEW)


def owners_who_wait(connection: sa.Connection) -> list[str]:
    """Give the owners that have held jobs."""
    chosen = sa.select(jobs.c.owner).distinct().where(jobs.c.state == "queued", jobs.c.held)
    return list(connection.execute(chosen).scalars())


def _active(connection: sa.Connection, owner: str) -> int:
    """Count the jobs of an owner in the queue and running; those that wait for an equal one are neither."""
    return _count(
        connection, jobs.c.owner == owner, jobs.c.state.in_(OPEN), jobs.c.held.is_(False), jobs.c.leader.is_(None)
    )


def _count(connection: sa.Connection, *which: sa.ColumnElement[bool]) -> int:
    """Count jobs."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(jobs).where(*which)).scalar_one())
