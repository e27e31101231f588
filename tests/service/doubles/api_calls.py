"""Requests to an application without a network."""

import asyncio
import uuid

import httpx

from partita.models.document import validate
from partita.service.problem_document import KINDS, ProblemDocument

JSON = {"Content-Type": "application/json", "Prefer": "wait=30"}


def call(app, method, path, content=None, headers=JSON):
    async def send():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, content=content, headers=headers)

    return asyncio.run(send())


def plan(app, body, query="", headers=JSON):
    return call(app, "POST", f"/v1/plans{query}", body, headers)


def document_in(response, status, name):
    """Check a problem document and give it."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    document = validate(ProblemDocument, response.json())
    assert document.type == f"/docs#{name}"
    assert document.status == status
    assert next(kind for kind in KINDS if kind.name == name).title == document.title
    assert uuid.UUID(document.instance.removeprefix("urn:uuid:"))
    return document


def pointers(document):
    return [place.pointer for place in document.errors]
