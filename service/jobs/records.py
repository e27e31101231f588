"""What the store knows of jobs, and what it is told."""

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from partita.service.jobs.tables import jobs
from partita.service.replies import State
from partita.service.solving.outcomes import Answered
from partita.service.solving.references import Content
from partita.service.solving.work import TaskKind

OPEN: tuple[State, ...] = ("queued", "running")
"""The states of jobs that have not ended."""

LOCAL = "local"
"""The owner of everything on a server that asks for no keys."""

FEW, MANY = 1, 10
"""Priorities in the queue: of a job of its own, and of one of a batch."""


class Conflict(Exception):
    """The idempotency key was used for another request."""


class QueueFull(Exception):
    """So many jobs wait that no more are taken; the text says how many may."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a job.

    Attributes
    ----------
    owner
        Who asks, and alone may see it.
    kind
        What is to be done with the body.
    body
        JSON as it came.
    include_problem
        Whether the answer repeats the problem.
    idempotency_key
        A name under which the request may be repeated; None for none.
    contents
        The stored documents that the body names.
    """

    owner: str
    kind: TaskKind
    body: bytes
    include_problem: bool = False
    idempotency_key: str | None = None
    contents: tuple[Content, ...] = ()

    @property
    def digest(self) -> str:
        """Fingerprint of what is asked, as it is written."""
        return digest_of(self.kind, self.body)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands; times in seconds since 1970, the others as in the table ``jobs``."""

    id: str
    owner: str
    batch: str | None
    position: int | None
    name: str | None
    kind: TaskKind
    state: State
    request: str
    include_problem: bool
    created_at: float
    started_at: float | None
    finished_at: float | None
    attempt: int
    stop_asked: bool
    phase: str | None
    incumbent: float | None
    bound: float | None
    relative_gap: float | None
    points: int | None
    improved_at: float | None
    alive_at: float | None
    answer: str | None
    failure: bytes | None

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.state not in OPEN


COLUMNS = tuple(jobs.c[name] for name in Job.__dataclass_fields__)
"""What of the table makes a job: all but what is large or the store's own."""


def job_of(row: sa.Row[Any]) -> Job:
    """Make a job of a row of ``COLUMNS``."""
    return Job(*tuple(row))


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer in the store: its status, itself without the problem, the problem, and since when it is there."""

    status: str
    body: bytes
    problem: bytes
    created_at: float

    @property
    def answered(self) -> Answered:
        """The same as its process gave it."""
        return Answered(self.body, self.status, self.problem)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ends.

    Attributes
    ----------
    state
        ``succeeded`` or ``failed``.
    answer
        Key of the answer in the store.
    stored
        The answer, where it is not in the store yet.
    failure
        A problem document, where there is no answer.
    """

    state: Literal["succeeded", "failed"]
    answer: str | None = None
    stored: Stored | None = None
    failure: bytes | None = None


def digest_of(*parts: str | bytes) -> str:
    """Give the fingerprint of parts in their order."""
    total = hashlib.sha256()
    for part in parts:
        text = part.encode() if isinstance(part, str) else part
        total.update(len(text).to_bytes(8) + text)
    return "sha256:" + total.hexdigest()


def pinned(contents: Iterable[Content]) -> str | None:
    """Give the fingerprint of what the references of a request mean; None where it has none."""
    parts = [part for each in contents for part in (each.kind, each.name, each.digest)]
    return digest_of(*parts) if parts else None


def packed(data: bytes) -> bytes:
    """Compress for the store, quickly."""
    return zlib.compress(data, 1)


def unpacked(data: bytes) -> bytes:
    """Undo ``packed``."""
    return zlib.decompress(data)
