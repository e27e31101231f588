"""The calls that plans and fronts have in common: ask, look, follow, stop, cancel."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.requests import ClientDisconnect

from partita.service.access.quotas import QuotaReached
from partita.service.api.answering import CLIENT_GONE, admitted, unless_client_leaves
from partita.service.api.attaching import with_contents
from partita.service.api.guard import owner_of, quota_reached, while_valid
from partita.service.api.job_documents import answer_text, document_of, event, with_answer
from partita.service.api.preferences import Preferences, preferences
from partita.service.api.request_body import read_body
from partita.service.jobs.jobs import Given, Jobs
from partita.service.jobs.records import Asked, Conflict, Job, QueueFull, Stored
from partita.service.logs import REQUEST_ID
from partita.service.problem_document import (
    CANCELLED,
    KEY_REUSED,
    MEDIA_TYPE,
    NOT_DONE,
    NOT_FOUND,
    QUEUE_FULL,
    ProblemDocument,
    Refusal,
)
from partita.service.replies import JobDocument, JobList, State
from partita.service.settings import Settings
from partita.service.solving.work import TaskKind

LOOK_S = 0.2
"""How often a stream of events looks for news."""

BEAT_S = 5.0
"""How often a stream shows that it lives when there are none."""

RETRY_S = 1
"""When to look again for a job that is not done."""

FULL_S = 30
"""When to try again while the queue is full."""

PATHS: dict[str, str] = {"plan": "/v1/plans", "frontier": "/v1/frontiers"}

CandidateNumber = Annotated[int, Query(ge=1, le=1_000_000)]
"""Which candidate of an answer, or point of a front, a call is about, from 1."""


async def ask(request: Request, kind: TaskKind, include_problem: bool) -> Response:
    """Take a problem, and answer it now or with a job.

    Raises
    ------
    Refusal
        When it is not taken, or failed within the time that the request waits.
    """
    settings: Settings = request.app.state.settings
    jobs: Jobs = request.app.state.jobs
    wanted = preferences(request, settings)
    try:
        with admitted(request):
            body = await read_body(request, settings)
            asked = Asked(owner_of(request), kind, body, include_problem, wanted.key)
            asked = await with_contents(request, asked)
        given = await jobs.submit(asked, at_once=wanted.wait_s > 0, fresh=wanted.fresh)
    except ClientDisconnect:
        return Response(status_code=CLIENT_GONE)
    except (Conflict, QueueFull, QuotaReached) as error:
        raise refusal_to_take(error) from None
    try:
        job = await unless_client_leaves(request, jobs.wait(given.job, wanted.wait_s))
    except ClientDisconnect:
        if wanted.key is None:  # the client does not know the job, and cannot ask for it again
            await jobs.cancel(given.job.id, asked.owner)
        return Response(status_code=CLIENT_GONE)
    return await _response(jobs, Given(job, given.stored), wanted, include_problem)


def refusal_to_take(error: Conflict | QueueFull | QuotaReached) -> Refusal:
    """Explain why nothing is put into the queue."""
    if isinstance(error, Conflict):
        return Refusal(KEY_REUSED, "the Idempotency-Key of this request was used for another one")
    if isinstance(error, QuotaReached):
        return quota_reached(error, FULL_S)
    return Refusal(QUEUE_FULL, f"{error}; try again later", headers={"Retry-After": str(FULL_S)})


async def _response(jobs: Jobs, given: Given, wanted: Preferences, include_problem: bool) -> Response:
    """Give the answer, the failure, or the job."""
    job = given.job
    headers = {"Location": f"{PATHS[job.kind]}/{job.id}", **wanted.applied}
    if job.state == "failed":
        return failure_response(job)
    if job.state == "cancelled":
        raise Refusal(CANCELLED, "the job was cancelled before it was done")
    stored = given.stored or await jobs.answer(job)
    if stored is None:
        body = with_answer(document_of(job, await jobs.ahead(job)), None)
        return Response(body, 202, {**headers, "Retry-After": str(RETRY_S)}, "application/json")
    if given.stored is not None:
        headers["Age"] = str(max(0, int(time.time() - stored.created_at)))
    return Response(answer_text(stored, include_problem), headers=headers, media_type="application/json")


def failure_response(job: Job) -> Response:
    """Give the problem document of a job that failed."""
    assert job.failure is not None
    recorded = ProblemDocument.model_validate_json(job.failure)
    document = recorded.model_copy(update={"request_id": REQUEST_ID.get()})
    return Response(document.model_dump_json(), document.status, media_type=MEDIA_TYPE)


async def job_in(request: Request, kind: TaskKind, name: str) -> Job:
    """Give the job that a path names.

    Raises
    ------
    Refusal
        When there is none of this kind and owner.
    """
    jobs: Jobs = request.app.state.jobs
    return found(await jobs.get(checked(name), owner_of(request)), kind)


async def stored_answer(request: Request, kind: TaskKind, name: str, purpose: str) -> Stored | Response:
    """Give the answer of the job that a path names, or the failure that it has instead.

    Raises
    ------
    Refusal
        When there is no such job, or it has no answer; ``purpose`` is what it was asked for.
    """
    jobs: Jobs = request.app.state.jobs
    job = await job_in(request, kind, name)
    if job.state == "failed":
        return failure_response(job)
    if job.state == "cancelled":
        raise Refusal(CANCELLED, "the job was cancelled before it was done")
    stored = await jobs.answer(job)
    if stored is None:
        raise Refusal(NOT_DONE, f"the job is {job.state}; {purpose} when it has succeeded")
    return stored


def checked(name: str) -> str:
    """Give an identity from a path, unless it can be none."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        raise Refusal(NOT_FOUND, "there is nothing under this path") from None


def found(job: Job | None, kind: TaskKind) -> Job:
    """Give a job, unless there is none of this kind."""
    if job is None or job.kind != kind:
        raise Refusal(NOT_FOUND, "there is no such job, or no longer")
    return job


async def look(request: Request, kind: TaskKind, name: str, include_problem: bool) -> Response:
    """Give a job as it stands, with its answer."""
    job = await job_in(request, kind, name)
    return Response(await job_text(request.app.state.jobs, job, include_problem), media_type="application/json")


async def job_text(jobs: Jobs, job: Job, include_problem: bool = False) -> bytes:
    """Write a job as JSON, with its answer."""
    return with_answer(document_of(job, await jobs.ahead(job)), await answer_of(jobs, job, include_problem))


async def answer_of(jobs: Jobs, job: Job, include_problem: bool = False) -> bytes | None:
    """Give the JSON of the answer of a job, with its problem where now or then asked for; None where it has none."""
    stored = await jobs.answer(job)
    return None if stored is None else answer_text(stored, include_problem or job.include_problem)


async def follow(request: Request, kind: TaskKind, name: str) -> Response:
    """Give a job as events: ``progress`` at every change, ``heartbeat`` between, ``end`` with the answer."""
    job = await job_in(request, kind, name)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    events = while_valid(request, _events(request.app.state.jobs, job))
    return StreamingResponse(events, headers=headers, media_type="text/event-stream")


async def _events(jobs: Jobs, job: Job) -> AsyncIterator[bytes]:
    told, at = None, 0.0
    while not job.ended and not jobs.closing:
        ahead = await jobs.ahead(job)
        state = document_of(job, ahead)
        if _told(state) != told:
            told, at = _told(state), time.monotonic()
            yield event("progress", state.model_dump_json(exclude={"answer"}).encode())
        elif time.monotonic() - at >= BEAT_S:
            at = time.monotonic()
            yield event("heartbeat", state.model_dump_json(include={"id", "state", "progress"}).encode())
        await asyncio.sleep(LOOK_S)
        job = await jobs.get(job.id, job.owner) or job
    if job.ended:
        yield event("end", await job_text(jobs, job))


def _told(state: JobDocument) -> JobDocument:
    """Give what makes news of a state: all but the signs of life."""
    if state.progress is None:
        return state
    return state.model_copy(update={"progress": state.progress.model_copy(update={"alive_at": ""})})


async def stop(request: Request, kind: TaskKind, name: str) -> Response:
    """Let a job end with what it has found; give it as it stands."""
    jobs: Jobs = request.app.state.jobs
    await job_in(request, kind, name)
    job = found(await jobs.stop(checked(name), owner_of(request)), kind)
    return Response(await job_text(jobs, job), 200 if job.ended else 202, media_type="application/json")


async def cancel(request: Request, kind: TaskKind, name: str) -> Response:
    """Cancel a job; give it as it stands, with its answer where it had ended before."""
    jobs: Jobs = request.app.state.jobs
    await job_in(request, kind, name)
    job = found(await jobs.cancel(checked(name), owner_of(request)), kind)
    return Response(await job_text(jobs, job), media_type="application/json")


async def listed(request: Request, kind: TaskKind, state: State | None, limit: int, before: float | None) -> JobList:
    """List the newest jobs outside batches."""
    jobs: Jobs = request.app.state.jobs
    every = await jobs.list(owner_of(request), kind, state, limit, before)
    more = f"{PATHS[kind]}?limit={limit}&before={every[-1].created_at!r}" if len(every) == limit else None
    if more is not None and state is not None:
        more += f"&state={state}"
    return JobList(jobs=tuple(document_of(job) for job in every), next=more)
