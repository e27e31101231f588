"""GET /v1/key: whose key a request has."""

from fastapi import APIRouter, Request

from partita.service.api.guard import caller_of
from partita.service.replies import KeyDocument

router = APIRouter(include_in_schema=False)


@router.get("/v1/key", operation_id="get_key")
async def key(request: Request) -> KeyDocument:
    """Tell whose key the request has, and what it may do."""
    caller = caller_of(request)
    return KeyDocument(name=caller.key, role=caller.role)
