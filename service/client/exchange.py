"""One request and its answer: tried again where that makes sense, and checked."""

from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from partita import __version__
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.service.client.errors import ServiceError, explained
from partita.service.client.steps import Broken, Open, Patience, Reply, Result, Send, Steps
from partita.service.problem_document import MEDIA_TYPE, ProblemDocument

NO_ROOM = (429, 503)
"""Statuses after which the same request may succeed later."""

LONGEST_RETRY_S = 300.0
"""The longest time for which a server may ask to be left alone before it is asked again."""

ModelType = TypeVar("ModelType", bound=BaseModel)


def exchange(request: Send, patience: Patience) -> Steps[Reply]:
    """Send a request, which must do no harm when it arrives twice, until it is answered.

    Raises
    ------
    ServiceError
        When the server refuses it, or cannot be reached for too long.
    """
    while True:
        try:
            reply: Reply = yield replace(request, most_s=patience.left_s)
        except Broken as error:
            if patience.failures >= patience.retries:
                raise unreachable(error, patience) from None
            yield from patience.pause()
            continue
        if reply.status in NO_ROOM and patience.failures < patience.retries:
            yield from patience.pause(retry_after_s(reply))
            continue
        check(reply)
        patience.failures = 0
        return reply


def listened(path: str, read: Steps[Result], patience: Patience) -> Steps[tuple[Result | None, float]]:
    """Open a stream and read it; give what was read, and how long the server wants to be left alone.

    Nothing was read where the stream cannot be opened or breaks. Whether the server is there at all shows when it is
    asked for what the stream is about.

    Raises
    ------
    ServiceError
        When the server refuses the stream.
    """
    try:
        reply: Reply = yield Open(path, patience.left_s)
        if reply.status in NO_ROOM:
            return None, retry_after_s(reply)
        check(reply)
        return (yield from read), 0.0
    except Broken:
        return None, 0.0


def unreachable(error: Broken, patience: Patience) -> ServiceError:
    """Say that the server does not answer."""
    return ServiceError(f"the server cannot be reached: {error}", job=patience.job)


def retry_after_s(reply: Reply) -> float:
    """Give how long the server wants to be left alone, within reason."""
    text = reply.headers.get("retry-after", "")
    return min(float(text), LONGEST_RETRY_S) if text.isascii() and text.isdigit() else 0.0


def check(reply: Reply) -> None:
    """Raise the error that a reply tells.

    Raises
    ------
    ServiceError
        Where its status is none of success.
    """
    if 200 <= reply.status < 300:
        return
    if reply.headers.get("content-type", "").startswith(MEDIA_TYPE):
        raise explained(parsed(ProblemDocument, reply.body))
    if 300 <= reply.status < 400 and "location" in reply.headers:
        raise ServiceError(f"the server redirects to {reply.headers['location']!r}; give its address as it is there")
    text = reply.body[:200].decode(errors="replace").strip()
    raise ServiceError(f"the server answered with status {reply.status}, which is no answer of Partita: {text!r}")


def parsed(model: type[ModelType], body: bytes | str, last: ModelType | None = None) -> ModelType:
    """Read a document of the server; where there is a last one, it may tell only what has changed.

    Raises
    ------
    ServiceError
        When it is none that this version knows.
    """
    try:
        data = read_json(body.encode() if isinstance(body, str) else body)
        if last is not None and isinstance(data, dict):
            data = {**last.model_dump(mode="json"), **data}
        return validate(model, data)
    except InvalidInput as error:
        detail = f"this is version {__version__}; is the server of another one (GET /healthz tells)?"
        fault = str(error.faults[0])
        raise ServiceError(f"the server's {model.__name__} cannot be read: {fault}; {detail}") from None
