"""From a request to its response: read the body, solve in a process, and say how it ended."""

import asyncio

from fastapi import Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from partita.service.api.attaching import contents_of
from partita.service.api.request_body import read_body
from partita.service.problem_document import BUSY, Refusal
from partita.service.refusals import logged_refusal
from partita.service.settings import Settings
from partita.service.solving.outcomes import Answered, Outcome
from partita.service.solving.solves import Busy, Solves
from partita.service.solving.work import Task, TaskKind

CLIENT_GONE = 499
"""Status of a response that nobody reads; for the access log."""


async def answer_to(request: Request, kind: TaskKind, include_problem: bool) -> Response:
    """Answer a request whose body is to be solved or evaluated.

    Raises
    ------
    Refusal
        When there is no answer.
    """
    settings: Settings = request.app.state.settings
    solves: Solves = request.app.state.solves
    try:
        with solves.admission():
            body = await read_body(request, settings)
            task = Task(kind, body, contents=await contents_of(request, body))
            outcome = await _unlessclient_leaves(request, solves, task)
    except Busy as error:
        raise Refusal(BUSY, str(error), headers={"Retry-After": str(error.retry_after_s)}) from None
    except ClientDisconnect:
        return Response(status_code=CLIENT_GONE)
    return _response(outcome, include_problem)


async def _unlessclient_leaves(request: Request, solves: Solves, task: Task) -> Outcome:
    """Solve while the client waits; kill the solve when it leaves."""
    solving = asyncio.create_task(solves.solve(task))
    leaving = asyncio.create_task(client_leaves(request))
    try:
        await asyncio.wait((solving, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not solving.done():
            raise ClientDisconnect
        return solving.result()
    finally:
        solving.cancel()
        leaving.cancel()
        await asyncio.gather(solving, leaving, return_exceptions=True)


async def client_leaves(request: Request) -> None:
    """Wait until the client has gone; its body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _response(outcome: Outcome, include_problem: bool) -> Response:
    """Turn an outcome into a response, or into the refusal that explains it."""
    if isinstance(outcome, Answered):
        body = outcome.with_problem() if include_problem else outcome.body
        return Response(body, media_type="application/json")
    return logged_refusal(outcome).response()
