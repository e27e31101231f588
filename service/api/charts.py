"""GET /v1/plans/{job}/charts/{name}, and the same of fronts: a picture as a Vega-Lite specification."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from partita.service.api.answering import admitted
from partita.service.api.job_calls import CandidateNumber, stored_answer
from partita.service.charts.names import CHARTS, Themes, charts_of
from partita.service.problem_document import NOT_DRAWABLE, NOT_FOUND, Refusal, places
from partita.service.refusals import logged_refusal
from partita.service.solving.drawing import chart_body
from partita.service.solving.outcomes import Answered, Refused
from partita.service.solving.work import Task

Scenario = Annotated[str | None, Query(max_length=1000)]


def routes_of(kind: Literal["plan", "frontier"]) -> APIRouter:
    """Make the route of one kind of job."""
    router = APIRouter(include_in_schema=False)

    @router.get(f"/v1/{kind}s/{{job}}/charts/{{name}}", operation_id=f"draw_{kind}")
    async def chart(
        request: Request,
        job: str,
        name: str,
        candidate: CandidateNumber = 1,
        scenario: Scenario = None,
        theme: Themes = "light",
    ) -> Response:
        """Draw a plan, all plans of an answer, or a front."""
        known = charts_of(kind)
        if name not in known:
            raise Refusal(NOT_FOUND, f"there is no chart {name[:40]!r} of a {kind}; the charts are {', '.join(known)}")
        stored = await stored_answer(request, kind, job, "draw it")
        if isinstance(stored, Response):
            return stored
        member = "answer" if kind == "plan" else "front"
        answer = stored.answered.with_problem()
        body = chart_body(member, answer, name=name, candidate=candidate, scenario=scenario, theme=theme)
        with admitted(request) as solves:
            outcome = await solves.read(Task("chart", body))
        if isinstance(outcome, Refused):
            reasons = "; ".join(fault.detail for fault in outcome.faults[:1])
            title = CHARTS[name].title.lower()
            raise Refusal(NOT_DRAWABLE, f"no picture of {title}: {reasons}", places(outcome.faults))
        if not isinstance(outcome, Answered):
            raise logged_refusal(outcome)
        return Response(outcome.body, media_type="application/json")

    return router
