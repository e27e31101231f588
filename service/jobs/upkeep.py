"""What the keeper does with the store: progress in, orders out, and the end of what is old."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from partita.service.jobs import turns
from partita.service.jobs.attachments import clear_attachments
from partita.service.jobs.parts import AT_ONCE
from partita.service.jobs.records import FEW, MANY
from partita.service.jobs.store import Claim, Store
from partita.service.jobs.tables import answers, batches, jobs


def note(store: Store, news: Mapping[Claim, Mapping[str, object] | None]) -> None:
    """Write how far running jobs are, in one transaction."""
    written = {claim: values for claim, values in news.items() if values is not None}
    if not written:
        return
    with store.engine.begin() as connection:
        for claim, values in written.items():
            connection.execute(jobs.update().where(*_held(claim)).values(**values))


def orders(store: Store, claims: Collection[Claim]) -> dict[Claim, bool]:
    """Give which of some claims still hold, and for each whether the search should stop with what it has found."""
    by_job = {claim.job: claim for claim in claims}
    with store.engine.connect() as connection:
        rows = connection.execute(
            sa.select(jobs.c.id, jobs.c.attempt, jobs.c.stop_asked).where(
                jobs.c.id.in_(list(by_job)), jobs.c.state == "running"
            )
        ).all()
    return {by_job[row.id]: row.stop_asked for row in rows if by_job[row.id].attempt == row.attempt}


def mend(store: Store, before: float) -> None:
    """Put those jobs into the queue again that have waited since a time but are not there, whatever the reason."""
    with store.engine.connect() as connection:
        oldest = sa.select(jobs.c.id, jobs.c.batch).where(
            jobs.c.state == "queued", jobs.c.leader.is_(None), jobs.c.held.is_(False), jobs.c.created_at < before
        )
        rows = connection.execute(oldest.order_by(jobs.c.created_at).limit(AT_ONCE)).all()
    batch_of = {row.id: row.batch for row in rows}
    lost = store.queue.lost(list(batch_of))
    if lost:
        store.queue.forget(lost)
        with store.engine.begin() as connection:
            for job in lost:
                store.queue.put(connection, [job], FEW if batch_of[job] is None else MANY)
    with store.engine.connect() as connection:
        waiting = turns.owners_who_wait(connection)
    for owner in waiting:  # whose quotas were raised, or whose last job ended in a way that nobody thought of
        with store.engine.begin() as connection:
            turns.advance(connection, store.queue, owner)


def clear(store: Store, before: float) -> None:
    """Remove jobs that ended before a time, batches of which none is left, and answers that no job has any more."""
    while True:
        with store.engine.begin() as connection:
            old = sa.select(jobs.c.id).where(jobs.c.finished_at < before).limit(AT_ONCE)
            ended = list(connection.execute(old).scalars())
            connection.execute(jobs.delete().where(jobs.c.id.in_(ended)))
        store.queue.forget(ended)
        if len(ended) < AT_ONCE:
            break
    with store.engine.begin() as connection:
        used = sa.select(jobs.c.id).where(jobs.c.answer == answers.c.key).exists()
        connection.execute(answers.delete().where(answers.c.created_at < before, ~used))
        filled = sa.select(jobs.c.id).where(jobs.c.batch == batches.c.id).exists()
        connection.execute(batches.delete().where(batches.c.created_at < before, ~filled))
        clear_attachments(connection)


def _held(claim: Claim) -> tuple[sa.ColumnElement[bool], ...]:
    """Say which row a claim is for, while it holds."""
    return jobs.c.id == claim.job, jobs.c.state == "running", jobs.c.attempt == claim.attempt
