"""Reads the body of a request without ever holding more of it than is allowed."""

import asyncio
import zlib
from email.message import Message

from fastapi import Request

from partita.service.problem_document import BODY_LATE, TOO_LARGE, WRONG_TYPE, Place, Refusal
from partita.service.settings import Settings

_GZIP = 16 + zlib.MAX_WBITS
_AT_ONCE = 2**16
_NO_GZIP = "the body is not whole gzip data, as its Content-Encoding says; send it again, or not compressed"


JSON = ("application/json",)
"""The media types of most bodies."""


async def read_body(request: Request, settings: Settings, types: tuple[str, ...] = JSON) -> bytes:
    """Give the body, once it is whole; ``types`` are the media types that it may have.

    Raises
    ------
    Refusal
        When it is not declared as JSON, compressed otherwise than by gzip, too large (as declared, as it arrives or as
        it unpacks) or late.
    ClientDisconnect
        When the client has gone.
    """
    _check_type(request, types)
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > settings.max_body_bytes:
        raise _too_large(settings.max_body_bytes)
    body = _Unpacking(settings.max_body_bytes) if _encoding(request) == "gzip" else _Body(settings.max_body_bytes)
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            async for part in request.stream():
                body.add(part)
    except TimeoutError:
        detail = f"the body did not arrive whole within {settings.body_timeout_s:g} s"
        raise Refusal(BODY_LATE, detail, headers={"Connection": "close"}) from None
    return body.whole()


class _Body:
    """A body on its way, of which no more is held than is allowed."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        """Take a part."""
        self._size += len(part)
        if self._size > self._limit:
            raise _too_large(self._limit)
        self._parts.append(part)

    def whole(self) -> bytes:
        """Give the body, once all parts are there."""
        return b"".join(self._parts)


class _Unpacking(_Body):
    """A body that comes compressed by gzip; what it unpacks to is bounded, not only what comes."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._unpack = zlib.decompressobj(_GZIP)

    def add(self, part: bytes) -> None:
        """Unpack a part, a little at a time."""
        try:
            while part:
                super().add(self._unpack.decompress(part, _AT_ONCE))
                part = self._unpack.unconsumed_tail
        except zlib.error:
            raise Refusal(WRONG_TYPE, _NO_GZIP) from None
        if self._unpack.unused_data:
            raise Refusal(WRONG_TYPE, "bytes follow the end of the gzip data; send one gzip member only")

    def whole(self) -> bytes:
        """Give the unpacked body."""
        if not self._unpack.eof:
            raise Refusal(WRONG_TYPE, _NO_GZIP)
        return super().whole()


def _encoding(request: Request) -> str:
    """Give how the body is encoded."""
    return str(request.headers.get("content-encoding", "")).strip().lower()


def _too_large(limit: int) -> Refusal:
    """Make the refusal that states the limit."""
    detail = f"the body is larger than {limit} bytes, the most that this server takes"
    return Refusal(TOO_LARGE, detail, (Place(pointer="", detail=detail, code="too_large"),))


def media_type(request: Request) -> str:
    """Give the media type of the body, without its parameters."""
    return _content_type(request).get_content_type()


def _content_type(request: Request) -> Message:
    """Read the header Content-Type."""
    header = Message()
    header["Content-Type"] = request.headers.get("content-type", "missing/missing")
    return header


def _check_type(request: Request, types: tuple[str, ...]) -> None:
    """Refuse anything that is not declared as JSON in UTF-8."""
    header = _content_type(request)
    charset = header.get_param("charset", "utf-8")
    if header.get_content_type() not in types:
        detail = f"send the body with the header Content-Type: {' or '.join(types)}"
    elif not isinstance(charset, str) or charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        detail = "send the body as UTF-8 and leave the charset out of the header Content-Type"
    elif _encoding(request) not in ("", "identity", "gzip"):
        detail = "send the body without a Content-Encoding, or with gzip"
    else:
        return
    raise Refusal(WRONG_TYPE, detail, headers={"Accept": ", ".join(types)})
