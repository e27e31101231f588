"""Jobs as clients see them."""

import time
from datetime import UTC, datetime
from typing import Literal

from partita.models.answer import Answer
from partita.models.base import Many, Model
from partita.models.front import Front
from partita.service.jobs.records import Job, State, Stored
from partita.service.problem_document import ProblemDocument

IMPROVING_S, SILENT_S = 10.0, 10.0
"""For how long after an improvement a search counts as improving, and without a sign of life as not yet silent."""

Activity = Literal["improving", "searching", "silent"]


class JobProgress(Model):
    """How far a running job is.

    Attributes
    ----------
    phase
        What the search does.
    incumbent, best_bound, relative_gap
        The objective's value of the best plan so far, the proven bound and the gap between them; null where unknown.
    points
        How many points of a front are found; null for a plan.
    activity
        ``improving``: something better was found or proven lately. ``searching``: the process works, but found nothing
        better lately. ``silent``: it shows no sign of life; at its time limit it is killed.
    improved_at, alive_at
        When something better was found or proven, and when the last sign of life came.
    """

    phase: str
    incumbent: float | None
    best_bound: float | None
    relative_gap: float | None
    points: int | None
    activity: Activity
    improved_at: str | None
    alive_at: str


class JobDocument(Model):
    """A job.

    Attributes
    ----------
    id, kind
        Its name, and what is done: ``plan`` or ``frontier``.
    state
        ``queued``, ``running``, ``succeeded`` (there is an answer, maybe that there is no plan), ``failed`` or
        ``cancelled``.
    batch, name
        The batch that it belongs to, and its name there.
    created_at, started_at, finished_at
        Moments in UTC.
    ahead
        How many of your jobs are solved before this one, while it waits.
    progress
        How far it is, while it runs.
    answer
        The answer, once it succeeded; a list of jobs leaves it out.
    failure
        Why it failed.
    """

    id: str
    kind: Literal["plan", "frontier"]
    state: State
    batch: str | None
    name: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    ahead: int | None = None
    progress: JobProgress | None = None
    failure: ProblemDocument | None = None
    answer: Answer | Front | None = None


class JobList(Model):
    """Jobs, the newest first; ``next`` leads to older ones, null where there are none."""

    jobs: Many[JobDocument]
    next: str | None


def document_of(job: Job, ahead: int | None = None) -> JobDocument:
    """Describe a job, without its answer."""
    return JobDocument(
        id=job.id,
        kind="frontier" if job.kind == "frontier" else "plan",
        state=job.state,
        batch=job.batch,
        name=job.name,
        created_at=moment(job.created_at),
        started_at=None if job.started_at is None else moment(job.started_at),
        finished_at=None if job.finished_at is None else moment(job.finished_at),
        ahead=ahead,
        progress=_progress(job),
        failure=None if job.failure is None else ProblemDocument.model_validate_json(job.failure),
    )


def with_answer(document: JobDocument, answer: bytes | None) -> bytes:
    """Write a job as JSON, with the JSON of its answer in it."""
    text = document.model_dump_json(exclude={"answer"}).encode()
    return text[:-1] + b',"answer":' + (answer or b"null") + b"}"


def answer_text(stored: Stored, include_problem: bool) -> bytes:
    """Give the JSON of an answer."""
    return stored.answered.with_problem() if include_problem else stored.body


def moment(seconds: float) -> str:
    """Write a moment, given in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _progress(job: Job) -> JobProgress | None:
    """Tell how far a running job is."""
    if job.state != "running" or job.alive_at is None:
        return None
    now = time.time()
    improved_at = job.improved_at or job.alive_at
    activity: Activity = "improving" if now - improved_at < IMPROVING_S else "searching"
    return JobProgress(
        phase=job.phase or "search",
        incumbent=job.incumbent,
        best_bound=job.bound,
        relative_gap=job.relative_gap,
        points=job.points,
        activity="silent" if now - job.alive_at > SILENT_S else activity,
        improved_at=moment(improved_at),
        alive_at=moment(job.alive_at),
    )


def event(name: str, data: bytes) -> bytes:
    """Write a server-sent event; JSON has no line breaks of its own."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
