"""POST /v1/evaluations: price a plan that the client brings."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from partita.service.api.answering import answer_to
from partita.service.api.job_routes import Include

router = APIRouter()


@router.post("/v1/evaluations", operation_id="evaluate", include_in_schema=False)
async def evaluate(request: Request, include: Include = None) -> Response:
    """Price a given plan for a problem."""
    return await answer_to(request, "evaluation", include == "problem")
