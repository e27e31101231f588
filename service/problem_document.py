"""Errors as the client sees them: problem documents of RFC 9457."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partita.models.base import Many, Model
from partita.models.errors import Fault
from partita.service.logs import REQUEST_ID

if TYPE_CHECKING:
    from fastapi.responses import Response

MEDIA_TYPE = "application/problem+json"


class Place(Model):
    """One thing that is wrong in a request.

    Attributes
    ----------
    pointer
        JSON pointer (RFC 6901) into the body; the empty text is the whole body.
    detail
        What is wrong and what would be right.
    code
        A stable name for the kind of fault.
    value
        What was found there, in at most 80 characters; null where nothing was.
    parameter
        The query parameter that is wrong, where it is not the body.
    """

    pointer: str
    detail: str
    code: str
    value: str | None = None
    parameter: str | None = None


class ProblemDocument(Model):
    """Why a request failed (RFC 9457).

    Attributes
    ----------
    type
        Reference to the kind of problem, relative to the server; it leads to a description.
    title
        The kind in words.
    status
        The status code.
    detail
        What happened this time.
    instance
        The name of this occurrence, for the server's log.
    request_id
        The request that this answers, as the header X-Request-ID has it; null in the record of a job.
    errors
        Everything that is wrong in the request, with its place.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str | None = None
    errors: Many[Place] = ()

    @property
    def kind(self) -> str:
        """The stable name of the kind of problem, such as ``queue-full``."""
        return self.type.rpartition("#")[2]

    @property
    def about_input(self) -> bool:
        """Whether what was given is to be corrected, rather than sent again or looked into."""
        return self.kind in ABOUT_INPUT


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: its name in ``type``, status code, title, and what it means for the client."""

    name: str
    status: int
    title: str
    meaning: str


NOT_JSON = Kind("not-json", 400, "The body is not JSON", "The body cannot be read as strict JSON in UTF-8.")
BODY_LATE = Kind("body-late", 408, "The body did not arrive in time", "Send the whole body without a pause.")
NOT_FOUND = Kind("not-found", 404, "There is nothing here", "The path is wrong; /docs lists those that exist.")
WRONG_METHOD = Kind("wrong-method", 405, "Not with this method", "The header Allow names the methods that work here.")
TOO_LARGE = Kind("body-too-large", 413, "The body is too large", "Send a smaller body; the limit is in the detail.")
WRONG_TYPE = Kind(
    "wrong-type",
    415,
    "The body has the wrong type",
    "Send JSON as Content-Type: application/json; only gzip may compress it.",
)
INVALID = Kind("invalid-input", 422, "The input is not valid", "Correct what the errors name; each has its place.")
UNSUPPORTED = Kind(
    "not-supported-yet", 422, "Not supported yet", "The input is valid but asks for what Partita cannot do yet."
)
OVER_LIMIT = Kind(
    "over-limit", 422, "More than this server allows", "The input is valid but above a limit of this server."
)
NO_MEMORY = Kind(
    "out-of-memory", 422, "Too large for the memory of a solve", "Send a smaller problem or ask for fewer workers."
)
NO_KEY = Kind("no-key", 401, "No valid API key", "Send a valid key with the header Authorization: Bearer.")
ROLE_TOO_LOW = Kind("role-too-low", 403, "The key may not do this", "Use a key with the role that the detail names.")
BAD_REQUEST = Kind("bad-request", 400, "The request cannot be understood", "Correct what the detail says.")
INTERNAL = Kind("internal-error", 500, "An error inside Partita", "Not the input's fault; the server's log has more.")
CRASHED = Kind("solve-crashed", 500, "The solve crashed", "The process of the solve died; the server itself goes on.")
ABANDONED = Kind(
    "solve-abandoned", 500, "The solve was given up", "Every worker that began it was gone; see the server's log."
)
KEY_REUSED = Kind(
    "key-reused", 409, "The idempotency key was used before", "Send the same request with it, or take another key."
)
NOT_DONE = Kind("not-done", 409, "The job has no answer yet", "Look again when its state is succeeded.")
NOT_EXPORTABLE = Kind(
    "not-exportable", 422, "The format cannot express this plan", "The errors say why; take another format or plan."
)
NOT_DRAWABLE = Kind("not-drawable", 422, "There is no such picture", "The errors say why; take another plan.")
REFERENCE_CHANGED = Kind(
    "reference-changed", 409, "A stored document has changed", "Name the digest of the content that is meant."
)
NOT_AS_EXPECTED = Kind(
    "not-as-expected", 412, "Something else is stored", "Get it again, and say with If-Match what is to be replaced."
)
CANCELLED = Kind("cancelled", 409, "The job was cancelled", "Ask again if the answer is wanted after all.")
QUEUE_FULL = Kind("queue-full", 429, "Too many jobs wait", "Try again after the seconds in the header Retry-After.")
QUOTA_REACHED = Kind(
    "quota-reached", 429, "A quota of the key is reached", "Try again after the seconds in the header Retry-After."
)
NOT_READY = Kind("not-ready", 503, "The service is not ready", "Try again after the seconds in the header Retry-After.")
BUSY = Kind("busy", 503, "The server is busy", "Try again after the seconds in the header Retry-After.")
OVERRAN = Kind(
    "solve-overran", 504, "The solve did not stop in time", "It was killed; ask for less, or for a longer time limit."
)

KINDS = (
    NOT_JSON,
    BAD_REQUEST,
    NO_KEY,
    ROLE_TOO_LOW,
    NOT_FOUND,
    WRONG_METHOD,
    BODY_LATE,
    TOO_LARGE,
    WRONG_TYPE,
    INVALID,
    UNSUPPORTED,
    OVER_LIMIT,
    NO_MEMORY,
    INTERNAL,
    CRASHED,
    ABANDONED,
    NOT_EXPORTABLE,
    NOT_DRAWABLE,
    KEY_REUSED,
    NOT_DONE,
    REFERENCE_CHANGED,
    NOT_AS_EXPECTED,
    CANCELLED,
    QUEUE_FULL,
    QUOTA_REACHED,
    NOT_READY,
    BUSY,
    OVERRAN,
)
"""All kinds of problem that the service reports."""

ABOUT_INPUT = frozenset(kind.name for kind in (NOT_JSON, TOO_LARGE, INVALID, UNSUPPORTED, OVER_LIMIT))
"""The names of those kinds that the input is the cause of."""


@dataclass(eq=False)
class Refusal(Exception):
    """Raised where a request ends with a problem document.

    Attributes
    ----------
    kind
        What went wrong.
    detail
        What happened this time, in words.
    errors
        The places in the request.
    headers
        Headers that belong to the answer.
    instance
        The name of this occurrence.
    """

    kind: Kind
    detail: str
    errors: tuple[Place, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    instance: str = field(default_factory=lambda: f"urn:uuid:{uuid.uuid4()}")

    def document(self, request_id: str | None = None) -> bytes:
        """Give the problem document as JSON, for a request or for the record of a job."""
        document = ProblemDocument(
            type=f"/docs#{self.kind.name}",
            title=self.kind.title,
            status=self.kind.status,
            detail=self.detail,
            instance=self.instance,
            request_id=request_id,
            errors=self.errors,
        )
        return document.model_dump_json().encode()

    def response(self) -> "Response":
        """Give the problem document as a response."""
        from fastapi.responses import Response  # here, so that clients read these documents without a web server

        return Response(
            self.document(REQUEST_ID.get()), self.kind.status, headers=dict(self.headers), media_type=MEDIA_TYPE
        )


def places(faults: Iterable[Fault]) -> tuple[Place, ...]:
    """Turn faults into the places of a problem document."""
    return tuple(
        Place(pointer=fault.pointer, detail=fault.detail, code=fault.code, value=fault.value) for fault in faults
    )
