"""/v1/profiles and /v1/clusters: what is stored once and named in many problems."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from partita.models.base import Many, Model
from partita.service.api.answering import CLIENT_GONE, admitted
from partita.service.api.guard import owner_of
from partita.service.api.request_body import read_body
from partita.service.documents.document_store import DocumentRecord, DocumentStore, Expects, NoRoom, PreconditionFailed
from partita.service.jobs.jobs import Jobs
from partita.service.moments import moment
from partita.service.names import NAME_RULE, is_name
from partita.service.problem_document import INVALID, NOT_AS_EXPECTED, NOT_FOUND, OVER_LIMIT, Place, Refusal
from partita.service.refusals import logged_refusal
from partita.service.solving.outcomes import Answered
from partita.service.solving.references import DocumentKind, Reference
from partita.service.solving.work import Task


class StoredDocument(Model):
    """A stored profile or cluster.

    Attributes
    ----------
    kind, name
        What it is, and under which name.
    digest
        That of its content, which is also its ETag.
    bytes
        How long the content is, as canonical JSON.
    created_at, updated_at
        Moments in UTC: when the name was first used, and when this content was stored.
    reference
        What a problem holds in place of the content.
    """

    kind: DocumentKind
    name: str
    digest: str
    bytes: int
    created_at: str
    updated_at: str
    reference: Reference


class DocumentList(Model):
    """Stored profiles or clusters, by name, without their contents."""

    documents: Many[StoredDocument]


def routes_of(kind: Literal["profile", "cluster"]) -> APIRouter:
    """Make the routes of one kind of document, under ``/v1`` and its name in the plural."""
    router = APIRouter(prefix=f"/v1/{kind}s", include_in_schema=False)

    @router.get("", operation_id=f"list_{kind}s")
    async def listed(request: Request) -> DocumentList:
        """List what is stored."""
        every = await asyncio.to_thread(_store(request).listed, owner_of(request), kind)
        return DocumentList(documents=tuple(map(_described, every)))

    @router.put("/{name}", operation_id=f"put_{kind}")
    async def put(request: Request, name: str) -> Response:
        """Check a document and store it."""
        return await _put(request, kind, name)

    @router.get("/{name}", operation_id=f"get_{kind}")
    async def get(request: Request, name: str) -> Response:
        """Give the content of a document."""
        return await _get(request, kind, name)

    @router.delete("/{name}", operation_id=f"delete_{kind}")
    async def delete(request: Request, name: str) -> Response:
        """Remove a document; jobs that were taken before keep what they name."""
        owner = owner_of(request)
        try:
            gone = is_name(name) and await asyncio.to_thread(
                _store(request).delete, owner, kind, name, _expects(request)
            )
        except PreconditionFailed:
            raise _unlike(kind, name) from None
        if not gone:
            raise _missing(kind)
        return Response(status_code=204)

    return router


async def _put(request: Request, kind: DocumentKind, name: str) -> Response:
    """Check a document and store it under a name."""
    if not is_name(name):
        detail = f"a name is {NAME_RULE}"
        place = Place(pointer="", detail=detail, code="name", value=name[:80], parameter="name")
        raise Refusal(INVALID, detail, (place,))
    try:
        with admitted(request) as solves:
            body = await read_body(request, request.app.state.settings)
            outcome = await solves.read(Task(kind, body))
    except ClientDisconnect:
        return Response(status_code=CLIENT_GONE)
    if not isinstance(outcome, Answered):
        raise logged_refusal(outcome)
    try:
        stored, new = await asyncio.to_thread(
            _store(request).put, owner_of(request), kind, name, outcome.body, _expects(request)
        )
    except PreconditionFailed:
        raise _unlike(kind, name) from None
    except NoRoom as error:
        detail = f"{error}; delete some that no problem needs any more"
        raise Refusal(OVER_LIMIT, detail, (Place(pointer="", detail=detail, code="too_many_documents"),)) from None
    headers = {"ETag": _tag(stored.digest), "Location": f"/v1/{kind}s/{name}"}
    return Response(_described(stored).model_dump_json(), 201 if new else 200, headers, "application/json")


async def _get(request: Request, kind: DocumentKind, name: str) -> Response:
    """Give the content that is stored under a name, unless the client has it."""
    names = [(kind, name)] if is_name(name) else []
    found = await asyncio.to_thread(_store(request).contents, owner_of(request), names)
    if not found:
        raise _missing(kind)
    headers = {"ETag": _tag(found[0].digest), "Cache-Control": "no-cache"}
    if _names(request.headers.get("if-none-match"), found[0].digest, weakly=True):
        return Response(status_code=304, headers=headers)
    return Response(found[0].body, headers=headers, media_type="application/json")


def _expects(request: Request) -> Expects:
    """Give what a change expects to be stored (RFC 9110): If-Match this, If-None-Match not this."""
    match, none_match = request.headers.get("if-match"), request.headers.get("if-none-match")

    def expected(digest: str | None) -> bool:
        right = match is None or _names(match, digest, weakly=False)
        return right and (none_match is None or not _names(none_match, digest, weakly=True))

    return expected


def _names(tags: str | None, digest: str | None, *, weakly: bool) -> bool:
    """Tell whether a list of entity tags names a content; ``*`` names any that is there."""
    if tags is None or digest is None:
        return False
    if tags.strip() == "*":
        return True
    every = [tag.strip() for tag in tags.split(",")]
    return _tag(digest) in ([tag.removeprefix("W/") for tag in every] if weakly else every)


def _tag(digest: str) -> str:
    """Write a digest as an entity tag."""
    return f'"{digest}"'


def _store(request: Request) -> DocumentStore:
    """Give the store of documents."""
    jobs: Jobs = request.app.state.jobs
    return jobs.documents


def _described(stored: DocumentRecord) -> StoredDocument:
    """Describe a document."""
    return StoredDocument(
        kind=stored.kind,
        name=stored.name,
        digest=stored.digest,
        bytes=stored.size,
        created_at=moment(stored.created_at),
        updated_at=moment(stored.updated_at),
        reference=Reference(ref=stored.name, digest=stored.digest),
    )


def _missing(kind: DocumentKind) -> Refusal:
    """Explain that nothing is stored under a name."""
    return Refusal(NOT_FOUND, f"no {kind} is stored under this name")


def _unlike(kind: DocumentKind, name: str) -> Refusal:
    """Explain that a precondition does not hold."""
    return Refusal(NOT_AS_EXPECTED, f"what is stored as the {kind} {name} is not what If-Match or If-None-Match says")
