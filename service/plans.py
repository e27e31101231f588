"""POST /v1/plans: find plans for a problem."""

from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response

from partita.service.answering import answer_to

router = APIRouter()

Include = Literal["problem"] | None
"""What the answer holds besides the plans."""


@router.post("/v1/plans", operation_id="plan", include_in_schema=False)
async def plan(request: Request, include: Include = None) -> Response:
    """Find ranked plans for a problem within its own time limit."""
    return await answer_to(request, "plan", include == "problem")
