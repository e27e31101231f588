"""From a request to its response: read the body, solve in a process, and say how it ended."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from fastapi import Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from partita.service.api.attaching import contents_of
from partita.service.api.request_body import read_body
from partita.service.problem_document import BUSY, Refusal
from partita.service.refusals import logged_refusal
from partita.service.settings import Settings
from partita.service.solving.outcomes import Answered, Outcome
from partita.service.solving.reporting import report_body
from partita.service.solving.solves import Busy, Solves
from partita.service.solving.work import Task

CLIENT_GONE = 499
"""Status of a response that nobody reads; for the access log."""

Result = TypeVar("Result")


@contextmanager
def admitted(request: Request) -> Iterator[Solves]:
    """Count a request while it is under way, and give what solves for it.

    Raises
    ------
    Refusal
        When there is no room for it, or none comes while it waits.
    """
    solves: Solves = request.app.state.solves
    try:
        with solves.admission():
            yield solves
    except Busy as error:
        raise Refusal(BUSY, str(error), headers={"Retry-After": str(error.retry_after_s)}) from None


async def evaluation_of(request: Request, include: Literal["problem", "report"] | None) -> Response:
    """Answer a request whose body holds a problem and a plan; ``include`` says what the answer has beside it.

    Raises
    ------
    Refusal
        When there is no answer.
    """
    settings: Settings = request.app.state.settings
    try:
        with admitted(request) as solves:
            body = await read_body(request, settings)
            task = Task("evaluation", body, contents=await contents_of(request, body))
            outcome = await unless_client_leaves(request, solves.solve(task))
            if include == "report" and isinstance(outcome, Answered):
                telling = solves.read(Task("report", report_body("answer", outcome.with_problem())))
                outcome = _both(outcome, await unless_client_leaves(request, telling))
    except ClientDisconnect:
        return Response(status_code=CLIENT_GONE)
    if not isinstance(outcome, Answered):
        return logged_refusal(outcome).response()
    return Response(outcome.with_problem() if include == "problem" else outcome.body, media_type="application/json")


def _both(answer: Answered, report: Outcome) -> Outcome:
    """Put an answer and its words into one document."""
    if not isinstance(report, Answered):
        return report
    return Answered(b'{"answer":%b,"report":%b}' % (answer.body, report.body))


async def unless_client_leaves(request: Request, doing: Coroutine[Any, Any, Result]) -> Result:
    """Do something while the client waits for it, and cancel it when the client leaves.

    Raises
    ------
    ClientDisconnect
        When the client has gone.
    """
    working = asyncio.create_task(doing)
    leaving = asyncio.create_task(_client_leaves(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _client_leaves(request: Request) -> None:
    """Wait until the client has gone; its body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
