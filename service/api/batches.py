"""/v1/batches: many problems at once."""

from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from starlette.requests import ClientDisconnect

from partita.service.access.quotas import QuotaReached
from partita.service.api.answering import CLIENT_GONE, admitted
from partita.service.api.attaching import batch_with_contents
from partita.service.api.batch_documents import batch_document, result_line
from partita.service.api.guard import owner_of, while_valid
from partita.service.api.job_calls import answer_of, checked, refusal_to_take
from partita.service.api.job_routes import Before, Include, Limit
from partita.service.api.preferences import idempotency_key
from partita.service.api.request_body import media_type, read_body
from partita.service.jobs.batches import AskedBatch, Batch
from partita.service.jobs.jobs import Jobs
from partita.service.jobs.records import Conflict, QueueFull, digest_of
from partita.service.problem_document import NOT_FOUND, Refusal
from partita.service.refusals import logged_refusal
from partita.service.replies import BatchDocument, BatchList
from partita.service.settings import Settings
from partita.service.solving.variants import Split
from partita.service.solving.work import Task, TaskKind

router = APIRouter(prefix="/v1/batches", include_in_schema=False)

NDJSON = "application/x-ndjson"
KINDS: dict[str, TaskKind] = {"application/json": "batch", NDJSON: "ndjson"}
"""How a body is read, by its media type."""


@router.post("", operation_id="batch")
async def post_batch(request: Request, include: Include = None) -> Response:
    """Take many problems."""
    settings: Settings = request.app.state.settings
    jobs: Jobs = request.app.state.jobs
    key = idempotency_key(request)
    try:
        with admitted(request) as solves:
            body = await read_body(request, settings, tuple(KINDS))
            kind = KINDS[media_type(request)]
            outcome = await solves.read(Task(kind, body))
        if not isinstance(outcome, Split):
            raise logged_refusal(outcome)
        digest = digest_of(kind, body, str(include))
        asked = AskedBatch(owner_of(request), outcome, digest, include == "problem", key)
        batch = await jobs.submit_batch(await batch_with_contents(request, asked))
    except ClientDisconnect:
        return Response(status_code=CLIENT_GONE)
    except (Conflict, QueueFull, QuotaReached) as error:
        raise refusal_to_take(error) from None
    document = await _document(request, batch)
    headers = {"Location": f"/v1/batches/{batch.id}"}
    return Response(document.model_dump_json(), 202, headers, "application/json")


@router.get("", operation_id="list_batches")
async def listed(request: Request, limit: Limit = 100, before: Before = None) -> BatchList:
    """List batches, the newest first."""
    jobs: Jobs = request.app.state.jobs
    every = await jobs.batches(owner_of(request), limit, before)
    more = f"/v1/batches?limit={limit}&before={every[-1].created_at!r}" if len(every) == limit else None
    return BatchList(batches=tuple(batch_document(batch, None) for batch in every), next=more)


@router.get("/{batch}", operation_id="get_batch")
async def get_batch(request: Request, batch: str) -> BatchDocument:
    """Give a batch as it stands."""
    return await _document(request, await _batch_in(request, batch))


@router.get("/{batch}/results", operation_id="batch_results")
async def results(request: Request, batch: str) -> Response:
    """Give the results of a batch as they arrive."""
    found = await _batch_in(request, batch)
    jobs: Jobs = request.app.state.jobs
    lines = while_valid(request, _lines(jobs, found.id, owner_of(request)))
    return StreamingResponse(lines, headers={"Cache-Control": "no-store"}, media_type=NDJSON)


@router.delete("/{batch}", operation_id="cancel_batch")
async def cancel_batch(request: Request, batch: str) -> BatchDocument:
    """Cancel what has not ended of a batch."""
    jobs: Jobs = request.app.state.jobs
    await _batch_in(request, batch)
    return await _document(request, _found(await jobs.cancel_batch(checked(batch), owner_of(request))))


async def _batch_in(request: Request, name: str) -> Batch:
    """Give the batch that a path names."""
    jobs: Jobs = request.app.state.jobs
    return _found(await jobs.batch(checked(name), owner_of(request)))


def _found(batch: Batch | None) -> Batch:
    """Give a batch, unless there is none."""
    if batch is None:
        raise Refusal(NOT_FOUND, "there is no such batch, or no longer")
    return batch


async def _document(request: Request, batch: Batch) -> BatchDocument:
    """Describe a batch, with a forecast while it is under way."""
    jobs: Jobs = request.app.state.jobs
    return batch_document(batch, await jobs.flow(batch, owner_of(request)) if batch.open else None)


async def _lines(jobs: Jobs, batch: str, owner: str) -> AsyncIterator[bytes]:
    async for job in jobs.results(batch, owner):
        yield result_line(job, await answer_of(jobs, job))
