"""POST /v1/frontiers: find the front of two metrics."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from partita.service.answering import answer_to
from partita.service.plans import Include

router = APIRouter()


@router.post("/v1/frontiers", operation_id="frontier", include_in_schema=False)
async def frontier(request: Request, include: Include = None) -> Response:
    """Find the Pareto front of two metrics within the problem's own time limit."""
    return await answer_to(request, "frontier", include == "problem")
