"""/v1/plans: find plans for a problem."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from partita.service import job_calls
from partita.service.job_documents import JobList
from partita.service.jobs.records import State

router = APIRouter(prefix="/v1/plans", include_in_schema=False)

Include = Literal["problem"] | None
"""What the answer holds besides the plans."""

Limit = Annotated[int, Query(ge=1, le=1000)]
Before = Annotated[float | None, Query(ge=0, allow_inf_nan=False)]


@router.post("", operation_id="plan")
async def plan(request: Request, include: Include = None) -> Response:
    """Find ranked plans for a problem within its own time limit."""
    return await job_calls.ask(request, "plan", include == "problem")


@router.get("", operation_id="list_plans")
async def list_plans(
    request: Request, state: State | None = None, limit: Limit = 100, before: Before = None
) -> JobList:
    """List jobs, the newest first."""
    return await job_calls.listed(request, "plan", state, limit, before)


@router.get("/{job}", operation_id="get_plan")
async def get_plan(request: Request, job: str) -> Response:
    """Give a job and its answer."""
    return await job_calls.look(request, "plan", job)


@router.get("/{job}/events", operation_id="follow_plan")
async def follow_plan(request: Request, job: str) -> Response:
    """Follow a job."""
    return await job_calls.follow(request, "plan", job)


@router.post("/{job}/stop", operation_id="stop_plan")
async def stop_plan(request: Request, job: str) -> Response:
    """Let a search end with the best plan so far."""
    return await job_calls.stop(request, "plan", job)


@router.delete("/{job}", operation_id="cancel_plan")
async def cancel_plan(request: Request, job: str) -> Response:
    """Cancel a job."""
    return await job_calls.cancel(request, "plan", job)
