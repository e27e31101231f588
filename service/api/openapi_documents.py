"""The description of stored profiles and clusters, and of problems that name them."""

from copy import deepcopy
from typing import Any

from partita.service.api import examples
from partita.service.api.openapi_parts import Document, failures, json_response, reference
from partita.service.names import NAME
from partita.service.settings import Settings
from partita.service.solving.references import PLACES

_NAME: Document = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The name: letters, digits, '.', '_' and '-'.",
    "schema": {"type": "string", "pattern": NAME},
    "example": "chain",
}


def _header(name: str, text: str, example: str) -> Document:
    """Describe a header of a request."""
    schema = {"type": "string"}
    return {"name": name, "in": "header", "required": False, "description": text, "schema": schema, "example": example}


_MATCH = _header("If-Match", "Only what has this ETag is changed; * for anything that is there. Else: 412.", "*")
_NEW = _header("If-None-Match", "With * only a new name is stored. Else: 412.", "*")
_HAS = _header("If-None-Match", "The ETag of what the client has: it is not sent again (304).", '"sha256:0"')


def about_documents(kind: str, settings: Settings, schema: Document) -> Document:
    """Describe the calls about one kind of document, by their paths; ``schema`` is that of its content."""
    what = {"profile": "the profile of a model", "cluster": "a cluster"}[kind]
    shown = {"chain": {"summary": f"That of the chain of six layers, {what}", "value": examples.DOCUMENTS[kind]}}
    stored = json_response("What is stored.", reference("StoredDocument"), ETag="The digest.", Location="Where.")
    content = json_response("The content, as canonical JSON.", schema, ETag="Its digest.")
    put = {
        "operationId": f"put_{kind}",
        "summary": f"Store {what}",
        "description": f"It is checked, and then named in problems by the reference in the answer. A server keeps "
        f"{settings.max_documents} profiles and clusters of {settings.max_document_bytes} bytes in all for one owner.",
        "parameters": [_NAME, _MATCH, _NEW],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "examples": shown}}},
        "responses": {
            "200": stored,
            "201": stored,
            **failures((400, 408, 412, 413, 415, 422, 500, 503, 504)),
        },
    }
    get = {
        "operationId": f"get_{kind}",
        "summary": f"Give {what} that is stored",
        "description": "Its digest is the SHA-256 of these bytes.",
        "parameters": [_NAME, _HAS],
        "responses": {
            "200": content,
            "304": {"description": "The client has it."},
            **failures((404, 500, 503)),
        },
    }
    delete = {
        "operationId": f"delete_{kind}",
        "summary": f"Remove {what}",
        "description": "Jobs that were taken before keep what they name.",
        "parameters": [_NAME, _MATCH],
        "responses": {"204": {"description": "It is gone."}, **failures((404, 412, 500, 503))},
    }
    listed = {
        "operationId": f"list_{kind}s",
        "summary": f"List the {kind}s that are stored",
        "description": "By name, without their contents.",
        "responses": {"200": json_response("They.", reference("DocumentList")), **failures((500, 503))},
    }
    return {f"/v1/{kind}s": {"get": listed}, f"/v1/{kind}s/{{name}}": {"get": get, "put": put, "delete": delete}}


def with_references(schemas: dict[str, Any], problem: Document) -> dict[str, Any]:
    """Let references stand for the model and the cluster of problems in requests, and of those alone.

    Parameters
    ----------
    schemas
        All schemas by name; not changed.
    problem
        The reference to the schema of a problem in a request.
    """
    name = problem["$ref"].rsplit("/", 1)[1]
    asked = deepcopy(schemas[name])
    for member in PLACES:
        part = asked["properties"][member]
        text = f"{part.get('description', '')} Or a reference to one that is stored.".strip()
        asked["properties"][member] = {"anyOf": [part, reference("Reference")], "description": text}
    return {**schemas, name: asked}
