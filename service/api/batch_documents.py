"""Batches as clients see them."""

import time

from partita.models.answer import Answer
from partita.models.base import Model
from partita.service.api.job_documents import moment
from partita.service.jobs.batches import Batch, Flow
from partita.service.jobs.records import Job, State
from partita.service.problem_document import ProblemDocument

METHOD = (
    "a fluid queue with constant rates: the backlog divided by the measured rate of service less that of arrival of "
    "jobs that come first"
)


class Forecast(Model):
    """When a batch will have ended, if nothing changes.

    Attributes
    ----------
    method
        What the forecast rests on.
    backlog
        Your jobs that are solved until then, those that come first too; of equal ones, one.
    arrival_per_s, service_per_s
        Measured rates of the last two minutes, or since the batch was taken: of your jobs that arrive and come first,
        and of your jobs that are solved.
    remaining_s, finished_at
        Seconds left, and the moment in UTC; null where nothing was solved yet or no end is in sight.
    """

    method: str
    backlog: int
    arrival_per_s: float
    service_per_s: float
    remaining_s: float | None
    finished_at: str | None


class BatchDocument(Model):
    """A batch.

    Attributes
    ----------
    id, created_at
        Its name, and when it was taken, in UTC.
    total
        How many problems it holds.
    queued, running, succeeded, failed, cancelled
        How many of them are in each state. An equal problem waits until the one that is solved in its place ends.
    forecast
        When it will have ended; null once it has.
    """

    id: str
    created_at: str
    total: int
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    forecast: Forecast | None


class BatchResult(Model):
    """The end of one problem of a batch.

    Attributes
    ----------
    index, name
        Its place in the batch, from 0, and its name there.
    job
        The job.
    status
        ``succeeded``, ``failed`` or ``cancelled``.
    failure
        Why it failed.
    answer
        The answer.
    """

    index: int
    name: str | None
    job: str
    status: State
    failure: ProblemDocument | None
    answer: Answer | None


def batch_document(batch: Batch, flow: Flow | None) -> BatchDocument:
    """Describe a batch; ``flow`` is that of the queue before its end, None where it has ended."""
    state = batch.states.get
    return BatchDocument(
        id=batch.id,
        created_at=moment(batch.created_at),
        total=batch.total,
        queued=state("queued", 0),
        running=state("running", 0),
        succeeded=state("succeeded", 0),
        failed=state("failed", 0),
        cancelled=state("cancelled", 0),
        forecast=None if flow is None else _forecast(flow),
    )


def _forecast(flow: Flow) -> Forecast:
    """Forecast the end of a batch."""
    remaining_s = flow.remaining_s
    return Forecast(
        method=METHOD,
        backlog=flow.backlog,
        arrival_per_s=flow.arrival_per_s,
        service_per_s=flow.service_per_s,
        remaining_s=remaining_s,
        finished_at=None if remaining_s is None else moment(time.time() + remaining_s),
    )


def result_line(job: Job, answer: bytes | None) -> bytes:
    """Write the end of one problem as a line of NDJSON, with the JSON of its answer in it."""
    result = BatchResult(
        index=job.position or 0,
        name=job.name,
        job=job.id,
        status=job.state,
        failure=None if job.failure is None else ProblemDocument.model_validate_json(job.failure),
        answer=None,
    )
    text = result.model_dump_json(exclude={"answer"}).encode()
    return text[:-1] + b',"answer":' + (answer or b"null") + b"}\n"
