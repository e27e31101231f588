"""Jobs as clients see them."""

import time

from partita.service.jobs.records import Job, Stored
from partita.service.moments import moment
from partita.service.problem_document import ProblemDocument
from partita.service.replies import Activity, JobDocument, JobProgress

IMPROVING_S, SILENT_S = 10.0, 10.0
"""For how long after an improvement a search counts as improving, and without a sign of life as not yet silent."""


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
