"""GET /v1/plans/{job}/report, and the same of fronts: what an answer says, in words."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from partita.service.api.answering import admitted
from partita.service.api.job_calls import CandidateNumber, stored_answer
from partita.service.refusals import logged_refusal
from partita.service.solving.outcomes import Answered
from partita.service.solving.reporting import report_body
from partita.service.solving.work import Task

router = APIRouter(include_in_schema=False)


@router.get("/v1/plans/{job}/report", operation_id="report_plan")
async def report(request: Request, job: str, candidate: CandidateNumber = 1) -> Response:
    """Tell what the answer of a job says."""
    stored = await stored_answer(request, "plan", job, "ask for it")
    if isinstance(stored, Response):
        return stored
    return await _told(request, report_body("answer", stored.answered.with_problem(), candidate))


@router.get("/v1/frontiers/{job}/report", operation_id="report_frontier")
async def report_front(request: Request, job: str) -> Response:
    """Tell what the front of a job says."""
    stored = await stored_answer(request, "frontier", job, "ask for it")
    if isinstance(stored, Response):
        return stored
    return await _told(request, report_body("front", stored.answered.with_problem()))


async def _told(request: Request, body: bytes) -> Response:
    """Have something told in words."""
    with admitted(request) as solves:
        outcome = await solves.read(Task("report", body))
    if not isinstance(outcome, Answered):
        raise logged_refusal(outcome)
    return Response(outcome.body, media_type="application/json")
