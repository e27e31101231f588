"""Parts of the description of the service that many calls share."""

from collections.abc import Iterable
from typing import Any

from partita.service.api.preferences import LONGEST_KEY, WAIT_S
from partita.service.problem_document import KINDS, MEDIA_TYPE
from partita.service.settings import Settings

Document = dict[str, Any]

INCLUDE: Document = {
    "name": "include",
    "in": "query",
    "required": False,
    "description": "With 'problem' the answer also holds the problem.",
    "schema": {"type": "string", "enum": ["problem"]},
}

KEY: Document = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name under which the request may be sent again: it is done once. For another request: 409.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": r"^[\x21-\x7e]+$"},
    "example": "8c0f7a52-6f3e-4f0c-9a39-1c2f1d3b6a11",
}

JOB: Document = {
    "name": "job",
    "in": "path",
    "required": True,
    "description": "The job, as its document and the header Location name it.",
    "schema": {"type": "string", "format": "uuid"},
    "example": "6b9b7a5e-0c3f-4f57-9d5f-0f1e2d3c4b5a",
}

BATCH: Document = {
    "name": "batch",
    "in": "path",
    "required": True,
    "description": "The batch, as its document and the header Location name it.",
    "schema": {"type": "string", "format": "uuid"},
    "example": "0b7f2a9c-58d4-4a57-8f43-6a5e4d3c2b1a",
}

PAGE: tuple[Document, ...] = (
    {
        "name": "limit",
        "in": "query",
        "required": False,
        "description": "The most to give.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
    {
        "name": "before",
        "in": "query",
        "required": False,
        "description": "Only what is older than this, in seconds since 1970; 'next' has it.",
        "schema": {"type": "number", "minimum": 0},
    },
)

LIST: tuple[Document, ...] = (
    {
        "name": "state",
        "in": "query",
        "required": False,
        "description": "Only jobs in this state.",
        "schema": {"type": "string", "enum": ["queued", "running", "succeeded", "failed", "cancelled"]},
    },
    *PAGE,
)


def prefer(settings: Settings) -> Document:
    """Describe how long a request waits."""
    return {
        "name": "Prefer",
        "in": "header",
        "required": False,
        "description": f"wait=N waits up to N seconds for the answer, {WAIT_S:g} by default and "
        f"{settings.max_wait_s:g} at most; respond-async does not wait (RFC 7240).",
        "schema": {"type": "string"},
        "example": "wait=10",
    }


def reference(model: str) -> Document:
    """Refer to a schema by the name of its model."""
    return {"$ref": f"#/components/schemas/{model}"}


def json_response(description: str, schema: Document, **headers: str) -> Document:
    """Describe a response in JSON; ``headers`` are described by their names, with underscores for hyphens."""
    response: Document = {"description": description, "content": {"application/json": {"schema": schema}}}
    if headers:
        response["headers"] = {
            name.replace("_", "-"): {"description": text, "schema": {"type": "string"}}
            for name, text in headers.items()
        }
    return response


def failures(statuses: Iterable[int]) -> Document:
    """Describe responses that are problem documents."""
    responses: Document = {}
    for status in statuses:
        kinds = [kind for kind in KINDS if kind.status == status]
        responses[str(status)] = {
            "description": " ".join(f"{kind.title} ({kind.name}): {kind.meaning}" for kind in kinds),
            "content": {MEDIA_TYPE: {"schema": reference("ProblemDocument")}},
        }
        if status in (429, 503):
            responses[str(status)]["headers"] = {
                "Retry-After": {"description": "Seconds to wait.", "required": True, "schema": {"type": "integer"}}
            }
    return responses
