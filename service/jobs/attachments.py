"""What jobs and batches hold besides their bodies: the stored documents that these name, as they were when taken."""

from collections.abc import Iterable

import sqlalchemy as sa

from partita.service.jobs.records import packed, unpacked
from partita.service.jobs.tables import attachments, batches, jobs
from partita.service.solving.references import Content


def attach(connection: sa.Connection, carrier: str, contents: Iterable[Content]) -> None:
    """Keep contents with a job or a batch."""
    rows = [
        {"carrier": carrier, "kind": each.kind, "name": each.name, "digest": each.digest, "body": packed(each.body)}
        for each in contents
    ]
    if rows:
        connection.execute(attachments.insert(), rows)


def attached(connection: sa.Connection, job: str, batch: str | None, *texts: bytes | None) -> tuple[Content, ...]:
    """Give the contents that a job carries, and those of its batch that its texts name."""
    named = sa.select(attachments.c.carrier, attachments.c.kind, attachments.c.name)
    carriers = [job] if batch is None else [job, batch]
    found = []
    for row in connection.execute(named.where(attachments.c.carrier.in_(carriers))).all():
        if row.carrier == job or any(f'"{row.name}"'.encode() in text for text in texts if text is not None):
            which = (attachments.c.carrier == row.carrier, attachments.c.kind == row.kind)
            chosen = sa.select(attachments.c.digest, attachments.c.body).where(*which, attachments.c.name == row.name)
            digest, body = connection.execute(chosen).one()
            found.append(Content(row.kind, row.name, digest, unpacked(body)))
    return tuple(found)


def clear_attachments(connection: sa.Connection) -> None:
    """Remove what no job and no batch carries any more."""
    carried = (
        sa.select(jobs.c.id).where(jobs.c.id == attachments.c.carrier).exists(),
        sa.select(batches.c.id).where(batches.c.id == attachments.c.carrier).exists(),
    )
    connection.execute(attachments.delete().where(~sa.or_(*carried)))
