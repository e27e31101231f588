"""Reads the body of a request without ever holding more of it than is allowed."""

import asyncio
from email.message import Message

from fastapi import Request

from partita.service.problem_document import BODY_LATE, TOO_LARGE, WRONG_TYPE, Place, Refusal
from partita.service.settings import Settings


async def read_body(request: Request, settings: Settings) -> bytes:
    """Give the body, once it is whole.

    Raises
    ------
    Refusal
        When it is not declared as JSON, is compressed, too large (as declared or as it arrives) or late.
    ClientDisconnect
        When the client has gone.
    """
    _check_type(request)
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > settings.max_body_bytes:
        raise _too_large(settings.max_body_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            async for part in request.stream():
                size += len(part)
                if size > settings.max_body_bytes:
                    raise _too_large(settings.max_body_bytes)
                parts.append(part)
    except TimeoutError:
        detail = f"the body did not arrive whole within {settings.body_timeout_s:g} s"
        raise Refusal(BODY_LATE, detail, headers={"Connection": "close"}) from None
    return b"".join(parts)


def _too_large(limit: int) -> Refusal:
    """Make the refusal that states the limit."""
    detail = f"the body is larger than {limit} bytes, the most that this server takes"
    return Refusal(TOO_LARGE, detail, (Place(pointer="", detail=detail, code="too_large"),))


def _check_type(request: Request) -> None:
    """Refuse anything that is not declared as plain JSON in UTF-8."""
    header = Message()
    header["Content-Type"] = request.headers.get("content-type", "missing/missing")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    charset = header.get_param("charset", "utf-8")
    if header.get_content_type() != "application/json":
        detail = "send the body with the header Content-Type: application/json"
    elif not isinstance(charset, str) or charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        detail = "send the body as UTF-8 and leave the charset out of the header Content-Type"
    elif encoding not in ("", "identity"):
        detail = "send the body without a Content-Encoding"
    else:
        return
    raise Refusal(WRONG_TYPE, detail, headers={"Accept": "application/json"})
