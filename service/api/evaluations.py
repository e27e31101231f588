"""POST /v1/evaluations: price a plan that the client brings."""

from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response

from partita.service.access.quotas import QuotaReached
from partita.service.access.rates import Rates
from partita.service.api.answering import evaluation_of
from partita.service.api.guard import caller_of, quota_reached

router = APIRouter()

RETRY_S = 5
"""When to try again while as many evaluations are under way as may be."""


@router.post("/v1/evaluations", operation_id="evaluate", include_in_schema=False)
async def evaluate(request: Request, include: Literal["problem", "report"] | None = None) -> Response:
    """Price a given plan for a problem."""
    rates: Rates = request.app.state.rates
    try:
        with rates.evaluation(caller_of(request)):
            return await evaluation_of(request, include)
    except QuotaReached as error:
        raise quota_reached(error, RETRY_S) from None
