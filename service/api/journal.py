"""A name for every request and a line for each in the log; those of changes are the audit trail."""

import logging
import re
import time
import uuid
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita.service.access.keys import Caller
from partita.service.api.guard import LOOKING
from partita.service.logs import REQUEST_ID

ACCESS, AUDIT = logging.getLogger("partita.access"), logging.getLogger("partita.audit")
"""Where requests are logged that only look, and those that change something or try to."""

HEADER = "X-Request-ID"
WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,128}")
NOBODY, LOCAL = "nobody", "local"
"""Who asks without a valid key: where one is needed, and where none is."""


class Journal:
    """Names requests and logs them: who, what, about which job, with what result; never bodies, queries or keys.

    Parameters
    ----------
    app
        The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if WELL_FORMED.fullmatch(given) else str(uuid.uuid4())
        REQUEST_ID.set(name)
        begin, status, location = time.perf_counter(), 500, None

        async def sending(message: Message) -> None:
            nonlocal status, location
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers[HEADER] = name
                status, location = message["status"], headers.get("location")
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            _log(scope, name, status, location, time.perf_counter() - begin)


def _log(scope: Scope, name: str, status: int, location: str | None, took_s: float) -> None:
    """Write the line of a request."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    who = NOBODY if caller is None else caller.key or LOCAL
    path = quote(scope["path"])
    fields = {
        "request_id": name,
        "key": who,
        "method": scope["method"],
        "path": path,
        "status": status,
        "location": location,
        "took_s": round(took_s, 4),
        "client": (scope.get("client") or (None,))[0],
    }
    led = "" if location is None else f" -> {location}"
    line = ("%s %s %s%s: %d after %.3f s", who, scope["method"], path, led, status, took_s)
    (ACCESS if scope["method"] in LOOKING else AUDIT).info(*line, extra={"fields": fields})
