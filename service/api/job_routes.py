"""The calls that every kind of job has: ask, list, look, follow, stop, cancel."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from partita.service.api import job_calls
from partita.service.replies import JobList, State

Include = Literal["problem"] | None
"""What the answer holds besides the plans."""

Limit = Annotated[int, Query(ge=1, le=1000)]
Before = Annotated[float | None, Query(ge=0, allow_inf_nan=False)]


def routes_of(kind: Literal["plan", "frontier"]) -> APIRouter:
    """Make the routes of one kind of job, under ``/v1`` and its name in the plural."""
    router = APIRouter(prefix=f"/v1/{kind}s", include_in_schema=False)

    @router.post("", operation_id=kind)
    async def ask(request: Request, include: Include = None) -> Response:
        """Solve a problem within its own time limit."""
        return await job_calls.ask(request, kind, include == "problem")

    @router.get("", operation_id=f"list_{kind}s")
    async def listed(
        request: Request, state: State | None = None, limit: Limit = 100, before: Before = None
    ) -> JobList:
        """List jobs, the newest first."""
        return await job_calls.listed(request, kind, state, limit, before)

    @router.get("/{job}", operation_id=f"get_{kind}")
    async def look(request: Request, job: str, include: Include = None) -> Response:
        """Give a job and its answer."""
        return await job_calls.look(request, kind, job, include == "problem")

    @router.get("/{job}/events", operation_id=f"follow_{kind}")
    async def follow(request: Request, job: str) -> Response:
        """Follow a job."""
        return await job_calls.follow(request, kind, job)

    @router.post("/{job}/stop", operation_id=f"stop_{kind}")
    async def stop(request: Request, job: str) -> Response:
        """Let a search end with what it has found."""
        return await job_calls.stop(request, kind, job)

    @router.delete("/{job}", operation_id=f"cancel_{kind}")
    async def cancel(request: Request, job: str) -> Response:
        """Cancel a job."""
        return await job_calls.cancel(request, kind, job)

    return router
