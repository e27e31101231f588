"""GET /metrics, and the count of requests."""

import time

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita.service.jobs.jobs import Jobs
from partita.service.metrics import Metrics
from partita.service.solving.solves import Solves

router = APIRouter()


@router.get("/metrics", operation_id="metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Give the figures of this process, and those of the queue."""
    jobs: Jobs = request.app.state.jobs
    solves: Solves = request.app.state.solves
    return Response(solves.metrics.text(await jobs.census()), media_type=CONTENT_TYPE_LATEST)


class CountRequests:
    """Counts requests by the pattern of their path, so that paths which somebody makes up are one label."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it when its response begins."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", None)
                self._metrics.requested(scope["method"], route, message["status"], time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, told)
