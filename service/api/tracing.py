"""Spans of requests, where traces are asked for."""

import re
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita.service.metrics import METHODS, OTHER
from partita.service.tracing import Traces

_JOB = re.compile(r"/v1/(?:plans|frontiers)/([0-9a-f-]{36})$")


class TraceRequests:
    """Writes a span for every request, once its response has ended."""

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self._app, self._traces = app, traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and trace it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, location = time.time(), 500, ""

        async def told(message: Message) -> None:
            nonlocal status, location
            if message["type"] == "http.response.start":
                status, location = message["status"], Headers(raw=message["headers"]).get("location", "")
            await send(message)

        try:
            await self._app(scope, receive, told)
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            method = scope["method"] if scope["method"] in METHODS else OTHER
            job = _JOB.search(location)
            headers = dict(Headers(scope=scope))
            self._traces.request(method, route, status, began, time.time(), headers, job and job[1])
