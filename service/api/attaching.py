"""From the references in a request to the stored documents that they mean when it is taken."""

import asyncio
from collections.abc import Collection
from dataclasses import replace

from fastapi import Request

from partita.models.errors import InvalidInput
from partita.service.api.guard import owner_of
from partita.service.documents.document_store import DocumentStore
from partita.service.jobs.batches import AskedBatch
from partita.service.jobs.jobs import Jobs
from partita.service.jobs.records import Asked
from partita.service.refusals import logged_refusal
from partita.service.solving.outcomes import Refused
from partita.service.solving.references import MARK, Content, Found, References, check
from partita.service.solving.solves import Solves
from partita.service.solving.work import Task, refusal_kind


async def contents_of(request: Request, body: bytes) -> tuple[Content, ...]:
    """Give the stored documents that a body names.

    Raises
    ------
    Refusal
        Where a reference leads nowhere, or to another content than it says.
    """
    if MARK not in body:
        return ()
    solves: Solves = request.app.state.solves
    outcome = await solves.read(Task("references", body))
    if not isinstance(outcome, References):
        raise logged_refusal(outcome)
    return await _checked(request, outcome.found, ())


async def with_contents(request: Request, asked: Asked) -> Asked:
    """Give a request with the documents that it names, unless it is one that was taken before; raises the same."""
    jobs: Jobs = request.app.state.jobs
    if MARK not in asked.body or await jobs.repeated(asked):
        return asked
    return replace(asked, contents=await contents_of(request, asked.body))


async def batch_with_contents(request: Request, asked: AskedBatch) -> AskedBatch:
    """Do the same for a batch; what its variants name is checked when they are solved, so that each fails alone."""
    jobs: Jobs = request.app.state.jobs
    split = asked.split
    if not (split.of_base or split.of_variants) or await jobs.repeated(asked):
        return asked
    return replace(asked, contents=await _checked(request, split.of_base, split.of_variants))


async def _checked(request: Request, found: Collection[Found], more: Collection[Found]) -> tuple[Content, ...]:
    """Give what references lead to; those of ``more`` may lead nowhere."""
    store: DocumentStore = request.app.state.jobs.documents
    names = [(each.kind, each.name) for each in (*found, *more)]
    contents = await asyncio.to_thread(store.contents, owner_of(request), names)
    try:
        check(found, contents)
    except InvalidInput as error:
        raise logged_refusal(Refused(refusal_kind(error), error.faults)) from None
    return contents
