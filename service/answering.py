"""From a request to its response: read the body, solve in a process, and say how it ended."""

import asyncio
import logging
import signal

from fastapi import Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from partita.service.outcomes import Answered, Crashed, Failed, Outcome, OutOfMemory, Overran, RefusalKind, Refused
from partita.service.problem_document import (
    BUSY,
    CRASHED,
    INTERNAL,
    INVALID,
    NO_MEMORY,
    NOT_JSON,
    OVER_LIMIT,
    OVERRAN,
    UNSUPPORTED,
    Kind,
    Place,
    Refusal,
    places,
)
from partita.service.request_body import read_body
from partita.service.settings import Settings
from partita.service.solves import Busy, Solves
from partita.service.work import Task, TaskKind

LOG = logging.getLogger("partita.service")

REFUSALS: dict[RefusalKind, Kind] = {
    "not_json": NOT_JSON,
    "invalid_input": INVALID,
    "not_supported_yet": UNSUPPORTED,
    "over_limit": OVER_LIMIT,
}

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
            outcome = await _unless_client_leaves(request, solves, Task(kind, body))
    except Busy as error:
        raise Refusal(BUSY, str(error), headers={"Retry-After": str(error.retry_after_s)}) from None
    except ClientDisconnect:
        return Response(status_code=CLIENT_GONE)
    return _response(outcome, include_problem)


async def _unless_client_leaves(request: Request, solves: Solves, task: Task) -> Outcome:
    """Solve while the client waits; kill the solve when it leaves."""
    solving = asyncio.create_task(solves.solve(task))
    leaving = asyncio.create_task(_client_leaves(request))
    try:
        await asyncio.wait((solving, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not solving.done():
            raise ClientDisconnect
        return solving.result()
    finally:
        solving.cancel()
        leaving.cancel()
        await asyncio.gather(solving, leaving, return_exceptions=True)


async def _client_leaves(request: Request) -> None:
    """Wait until the client has gone; the body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _response(outcome: Outcome, include_problem: bool) -> Response:
    """Turn an outcome into a response, or into the refusal that explains it."""
    if isinstance(outcome, Answered):
        body = outcome.with_problem() if include_problem else outcome.body
        return Response(body, media_type="application/json")
    refusal = _refusal(outcome)
    if refusal.kind.status == INTERNAL.status:
        LOG.error("%s: %s\n%s", refusal.instance, refusal.detail, getattr(outcome, "trace", outcome))
    return refusal.response()


def _refusal(outcome: Outcome) -> Refusal:
    """Explain why there is no answer."""
    match outcome:
        case Refused(kind, faults):
            count = "one thing" if len(faults) == 1 else f"{len(faults)} things"
            return Refusal(REFUSALS[kind], f"{count} to correct in the body; see errors", places(faults))
        case OutOfMemory(limit):
            detail = f"the solve needed more memory than the {limit} bytes that this server gives to one"
            return Refusal(NO_MEMORY, detail, (Place(pointer="", detail=detail, code="out_of_memory"),))
        case Overran(allowed, True):
            detail = f"reading the body took longer than {allowed:g} s and was given up; send a smaller problem"
            return Refusal(OVERRAN, detail)
        case Overran(allowed, False):
            detail = (
                f"the solve was still running after {allowed:g} s, its time limit and some grace, and was killed; "
                "send a smaller problem or a longer search.time_limit_s"
            )
            return Refusal(OVERRAN, detail)
        case Crashed(exit_code):
            return Refusal(CRASHED, f"the process of the solve ended without an answer: {_how_ended(exit_code)}")
        case Failed():
            return Refusal(INTERNAL, "an error inside Partita; the server's log has it under the name in instance")
        case _:
            return Refusal(INTERNAL, "the solve was cancelled by the server")


def _how_ended(exit_code: int) -> str:
    """Say how a process ended."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"
