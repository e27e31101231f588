"""GET /v1/plans/{job}/export/{format}, and the same of fronts: a plan of a job as a text for another program."""

from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response

from partita.service.api.answering import admitted
from partita.service.api.job_calls import CandidateNumber, stored_answer
from partita.service.problem_document import NOT_EXPORTABLE, NOT_FOUND, Refusal, places
from partita.service.refusals import logged_refusal
from partita.service.reports.formats import FORMATS
from partita.service.solving.exporting import export_body
from partita.service.solving.outcomes import Answered, Refused
from partita.service.solving.work import Task


def routes_of(kind: Literal["plan", "frontier"]) -> APIRouter:
    """Make the route of one kind of job."""
    router = APIRouter(include_in_schema=False)

    @router.get(f"/v1/{kind}s/{{job}}/export/{{format}}", operation_id=f"export_{kind}")
    async def export(request: Request, job: str, format: str, candidate: CandidateNumber = 1) -> Response:
        """Write a plan of an answer, or of a point of a front, for another program."""
        chosen = FORMATS.get(format)
        if chosen is None:
            raise Refusal(NOT_FOUND, f"there is no format {format[:40]!r}; the formats are {', '.join(FORMATS)}")
        stored = await stored_answer(request, kind, job, "export its plan")
        if isinstance(stored, Response):
            return stored
        member: Literal["answer", "front"] = "answer" if kind == "plan" else "front"
        body = export_body(member, stored.answered.with_problem(), format, candidate)
        with admitted(request) as solves:
            outcome = await solves.read(Task("export", body))
        if isinstance(outcome, Refused):
            reasons = "; ".join(fault.detail for fault in outcome.faults[:1])
            raise Refusal(NOT_EXPORTABLE, f"no {format} of this plan: {reasons}", places(outcome.faults))
        if not isinstance(outcome, Answered):
            raise logged_refusal(outcome)
        return Response(outcome.body, media_type=chosen.media_type)

    return router
