"""Batches as clients see them."""

import time

from partita.service.jobs.batches import Batch, Flow
from partita.service.jobs.records import Job
from partita.service.moments import moment
from partita.service.problem_document import ProblemDocument
from partita.service.replies import BatchDocument, BatchResult, Forecast

METHOD = (
    "a fluid queue with constant rates: the backlog divided by the measured rate of service less that of arrival of "
    "jobs that come first"
)


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
