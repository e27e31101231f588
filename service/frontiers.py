"""/v1/frontiers: find the front of two metrics."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from partita.service import job_calls
from partita.service.job_documents import JobList
from partita.service.jobs.records import State
from partita.service.plans import Before, Include, Limit

router = APIRouter(prefix="/v1/frontiers", include_in_schema=False)


@router.post("", operation_id="frontier")
async def frontier(request: Request, include: Include = None) -> Response:
    """Find the Pareto front of two metrics within the problem's own time limit."""
    return await job_calls.ask(request, "frontier", include == "problem")


@router.get("", operation_id="list_frontiers")
async def list_frontiers(
    request: Request, state: State | None = None, limit: Limit = 100, before: Before = None
) -> JobList:
    """List jobs, the newest first."""
    return await job_calls.listed(request, "frontier", state, limit, before)


@router.get("/{job}", operation_id="get_frontier")
async def get_frontier(request: Request, job: str) -> Response:
    """Give a job and its answer."""
    return await job_calls.look(request, "frontier", job)


@router.get("/{job}/events", operation_id="follow_frontier")
async def follow_frontier(request: Request, job: str) -> Response:
    """Follow a job."""
    return await job_calls.follow(request, "frontier", job)


@router.post("/{job}/stop", operation_id="stop_frontier")
async def stop_frontier(request: Request, job: str) -> Response:
    """Let a search end with the points so far."""
    return await job_calls.stop(request, "frontier", job)


@router.delete("/{job}", operation_id="cancel_frontier")
async def cancel_frontier(request: Request, job: str) -> Response:
    """Cancel a job."""
    return await job_calls.cancel(request, "frontier", job)
