"""Stored profiles and clusters in the database, each of one owner."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import sqlalchemy as sa

from partita.service.access.quotas import check_owner, quotas_of
from partita.service.jobs.records import packed, unpacked
from partita.service.jobs.tables import documents
from partita.service.solving.documents import content_digest
from partita.service.solving.references import Content, DocumentKind


class PreconditionFailed(Exception):
    """What is stored is not what the request expects."""


class NoRoom(Exception):
    """The owner has as many or as large documents as it may; the text says how many."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many documents one owner may have, and how large they may be together."""

    count: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document as it is listed; times in seconds since 1970."""

    kind: DocumentKind
    name: str
    digest: str
    size: int
    created_at: float
    updated_at: float


COLUMNS = tuple(documents.c[name] for name in DocumentRecord.__dataclass_fields__)

Expects = Callable[[str | None], bool]
"""Whether a request may be done, by the digest of what is stored; None where nothing is."""


class DocumentStore:
    """The documents of all owners.

    Parameters
    ----------
    engine
        The database.
    limits
        What one owner may have.
    """

    def __init__(self, engine: sa.Engine, limits: Limits) -> None:
        self._engine, self._limits = engine, limits

    def put(
        self, owner: str, kind: DocumentKind, name: str, text: bytes, expects: Expects
    ) -> tuple[DocumentRecord, bool]:
        """Store canonical JSON under a name, and tell whether the name is new.

        Raises
        ------
        PreconditionFailed
            When something else is stored there than the request expects.
        NoRoom
            When the owner has no room for it.
        OwnerGone
            When its last key was revoked meanwhile.
        """
        values = {"digest": content_digest(text), "size": len(text), "body": packed(text)}
        while True:
            now, before = time.time(), self.find(owner, kind, name)
            self._check(before, expects)
            if before is not None and before.digest == values["digest"]:
                return before, False
            try:
                with self._engine.begin() as connection:
                    quotas_of(connection, owner)  # locked until the end, so that no two requests take the last room
                    if before is None:
                        row = {"owner": owner, "kind": kind, "name": name, "created_at": now, "updated_at": now}
                        connection.execute(documents.insert().values(**row, **values))
                        done = True
                    else:
                        change = documents.update().where(*_named(owner, kind, name, before.digest))
                        done = connection.execute(change.values(**values, updated_at=now)).rowcount == 1
                    if done:
                        self._check_room(connection, owner, new=before is None)
                    check_owner(connection, owner)
            except sa.exc.IntegrityError:
                done = False
            found = self.find(owner, kind, name)
            if done and found is not None:  # else another request was faster: what it stored is looked at again
                return found, before is None

    def delete(self, owner: str, kind: DocumentKind, name: str, expects: Expects) -> bool:
        """Remove a document; False where there is none.

        Raises
        ------
        PreconditionFailed
            When something else is stored there than the request expects.
        """
        while True:
            before = self.find(owner, kind, name)
            self._check(before, expects)
            if before is None:
                return False
            with self._engine.begin() as connection:
                gone = connection.execute(documents.delete().where(*_named(owner, kind, name, before.digest)))
            if gone.rowcount:
                return True

    def delete_all(self, owner: str) -> None:
        """Remove all that an owner has."""
        with self._engine.begin() as connection:
            connection.execute(documents.delete().where(documents.c.owner == owner))

    def find(self, owner: str, kind: DocumentKind, name: str) -> DocumentRecord | None:
        """Give a document without its content; None where there is none."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(*COLUMNS).where(*_named(owner, kind, name))).one_or_none()
        return None if row is None else DocumentRecord(*row)

    def listed(self, owner: str, kind: DocumentKind) -> list[DocumentRecord]:
        """Give the documents of an owner and a kind, by name, without their contents."""
        chosen = sa.select(*COLUMNS).where(documents.c.owner == owner, documents.c.kind == kind)
        with self._engine.connect() as connection:
            return [DocumentRecord(*row) for row in connection.execute(chosen.order_by(documents.c.name))]

    def contents(self, owner: str, names: Collection[tuple[DocumentKind, str]]) -> tuple[Content, ...]:
        """Give what is stored under those of some names that there are."""
        found = []
        with self._engine.connect() as connection:
            for kind, name in sorted(set(names)):
                chosen = sa.select(documents.c.digest, documents.c.body).where(*_named(owner, kind, name))
                row = connection.execute(chosen).one_or_none()
                if row is not None:
                    found.append(Content(kind, name, row.digest, unpacked(row.body)))
        return tuple(found)

    def _check(self, before: DocumentRecord | None, expects: Expects) -> None:
        """Refuse what expects something else."""
        if not expects(None if before is None else before.digest):
            raise PreconditionFailed

    def _check_room(self, connection: sa.Connection, owner: str, *, new: bool) -> None:
        """Refuse what was just put in the table where it is more than the owner may have."""
        chosen = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(documents.c.size), 0))
        count, total = map(int, connection.execute(chosen.where(documents.c.owner == owner)).one())
        if new and count > self._limits.count:
            raise NoRoom(f"{self._limits.count} profiles and clusters are stored, the most that one owner may have")
        if total > self._limits.total_bytes:
            most = self._limits.total_bytes
            raise NoRoom(f"the stored profiles and clusters would hold {total} bytes; one owner may have {most}")


def _named(owner: str, kind: DocumentKind, name: str, digest: str | None = None) -> tuple[sa.ColumnElement[bool], ...]:
    """Say which row a document is in, while it has a content."""
    which = (documents.c.owner == owner, documents.c.kind == kind, documents.c.name == name)
    return which if digest is None else (*which, documents.c.digest == digest)
