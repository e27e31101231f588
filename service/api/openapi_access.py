"""The description of who may send which request, added to every call so that none is forgotten."""

from partita.service.api.guard import OPEN, role_for
from partita.service.api.openapi_parts import Document, failures
from partita.service.settings import Settings

SCHEME: Document = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, which partita keys create makes. A key with the role read may look, solve may also "
        "ask, change and cancel, admin may also watch the whole service. A key sees its own jobs alone.",
    }
}
"""The kind of key."""


REQUEST: Document = {
    "name": "X-Request-ID",
    "in": "header",
    "required": False,
    "description": "Your name for the request, which the answer and the log repeat; one that is missing or no name is "
    "replaced.",
    "schema": {"type": "string"},
    "example": "launch-17.attempt-2",
}
"""What names a request."""

_REPEATED: Document = {"X-Request-ID": {"description": "The name of the request.", "schema": {"type": "string"}}}


def guarded(paths: Document, settings: Settings) -> Document:
    """Add to calls the key that they need and how they are refused without it; keys may be optional."""
    wanted: list[Document] = [{"key": []}]
    if not settings.require_keys:
        wanted.append({})
    return {
        path: {method: _guarded(path, method, call, wanted) for method, call in methods.items()}
        for path, methods in paths.items()
    }


def _guarded(path: str, method: str, call: Document, wanted: list[Document]) -> Document:
    """Describe the key that one call needs."""
    call = {
        **call,
        "parameters": [*call.get("parameters", []), REQUEST],
        "responses": {status: _named(response) for status, response in call["responses"].items()},
    }
    if path in OPEN:
        return {**call, "security": []}
    role = role_for(method.upper(), path)
    refused = failures((401, 429) if role == "read" else (401, 403, 429))
    return {
        **call,
        "description": f"{call['description']} Role: {role}.",
        "security": wanted,
        "responses": {**call["responses"], **{status: _named(response) for status, response in refused.items()}},
    }


def _named(response: Document) -> Document:
    """Add the header that repeats the name of the request."""
    return {**response, "headers": {**response.get("headers", {}), **_REPEATED}}
