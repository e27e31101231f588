"""The web application."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from partita import __version__
from partita.service.access.quotas import OwnerGone
from partita.service.access.rates import Rates
from partita.service.api import (
    batches,
    charts,
    docs_page,
    documents,
    evaluations,
    exports,
    health,
    keys,
    metrics,
    pages,
    reports,
)
from partita.service.api.guard import Guard, not_valid
from partita.service.api.job_routes import routes_of
from partita.service.api.journal import HEADER, Journal
from partita.service.api.metrics import CountRequests
from partita.service.api.openapi import openapi_document
from partita.service.api.tracing import TraceRequests
from partita.service.jobs.database import DatabaseAway
from partita.service.jobs.jobs import Jobs
from partita.service.logs import REQUEST_ID
from partita.service.problem_document import (
    BAD_REQUEST,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    WRONG_METHOD,
    Place,
    Refusal,
)
from partita.service.refusals import store_away
from partita.service.settings import Settings
from partita.service.solving.process import Work
from partita.service.solving.solves import Solves
from partita.service.solving.work import perform
from partita.service.tracing import traces_from

LOG = logging.getLogger("partita.service")

ROUTERS = (
    *(routes_of("plan"), reports.router, batches.router, evaluations.router),
    *(exports.routes_of("plan"), exports.routes_of("frontier")),
    *(charts.routes_of("plan"), charts.routes_of("frontier")),
    *(routes_of("frontier"), documents.routes_of("profile"), documents.routes_of("cluster")),
    *(keys.router, health.router, metrics.router),
    *(docs_page.router, pages.router),
)
"""All calls."""


def create_app(settings: Settings | None = None, *, work: Work = perform) -> FastAPI:
    """Make the application.

    Parameters
    ----------
    settings
        The limits of the server; by default those of ``Settings()``.
    work
        What the process of a solve does.
    """
    chosen = settings or Settings()
    app = FastAPI(
        title="Partita", version=__version__, lifespan=_lifespan, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.settings = chosen
    app.state.solves = Solves(chosen, work)
    traces = traces_from(os.environ)
    app.state.jobs = Jobs(chosen, app.state.solves, traces)
    app.state.rates = Rates()
    app.state.openapi = openapi_document(chosen)
    app.openapi = lambda: app.state.openapi  # type: ignore[method-assign]
    for router in ROUTERS:
        app.include_router(router)
    app.add_middleware(Guard)
    app.add_middleware(CountRequests, metrics=app.state.solves.metrics)
    if traces is not None:
        app.add_middleware(TraceRequests, traces=traces)
    app.add_middleware(Journal)  # the last one added comes first
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(RequestValidationError, _wrong_parameters)
    app.add_exception_handler(HTTPException, _wrong_place)
    app.add_exception_handler(DatabaseAway, _no_store)
    app.add_exception_handler(OwnerGone, _no_key_left)
    app.add_exception_handler(Exception, _broken)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the solver before it is needed, work while the server runs, and leave no solve behind."""
    solves: Solves = app.state.solves
    jobs: Jobs = app.state.jobs
    solves.warm_up()
    await asyncio.to_thread(jobs.open)
    await asyncio.to_thread(jobs.work)
    yield
    await asyncio.to_thread(jobs.close)


async def _refused(_: Request, error: Exception) -> Response:
    """Answer with the problem document that was raised."""
    assert isinstance(error, Refusal)
    return error.response()


async def _wrong_parameters(_: Request, error: Exception) -> Response:
    """Explain wrong query parameters; bodies are checked elsewhere."""
    assert isinstance(error, RequestValidationError)
    errors = tuple(
        Place(pointer="", detail=line["msg"], code=line["type"], parameter=str(line["loc"][-1]))
        for line in error.errors()
    )
    return Refusal(INVALID, "the query parameters are not valid; see errors", errors).response()


async def _wrong_place(request: Request, error: Exception) -> Response:
    """Answer for paths and methods that do not exist."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == NOT_FOUND.status:
        return Refusal(NOT_FOUND, "there is nothing under this path", headers=headers).response()
    if error.status_code == WRONG_METHOD.status:
        known = set(headers.get("Allow", "").split(", ")) - {""}  # the framework names those of one route only
        headers["Allow"] = ", ".join(sorted(known | _methods(request)))
        detail = f"this path does not take {request.method}; see the header Allow"
        return Refusal(WRONG_METHOD, detail, headers=headers).response()
    return Refusal(BAD_REQUEST, str(error.detail), headers=headers).response()


def _methods(request: Request) -> set[str]:
    """Give the methods that the path of a request takes, whichever route does."""
    every = [route for router in ROUTERS for route in router.routes]
    routes = [route for route in every if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in routes for method in getattr(route, "methods", None) or ()}


async def _no_store(_: Request, error: Exception) -> Response:
    """Answer while the store cannot be reached."""
    return store_away(error).response()


async def _no_key_left(_: Request, error: Exception) -> Response:
    """Answer where a key was revoked while its request was read."""
    return not_valid().response()


async def _broken(_: Request, error: Exception) -> Response:
    """Answer for an error in the service itself; the traceback goes to the log, not to the client."""
    headers = {HEADER: REQUEST_ID.get() or ""}  # this is outside of the journal, which knows the error alone
    refusal = Refusal(
        INTERNAL, "an error inside Partita; the server's log has it under the name in instance", headers=headers
    )
    LOG.error("%s: %r", refusal.instance, error)
    return refusal.response()
