"""GET /healthz: whether the server is alive."""

from fastapi import APIRouter

from partita import __version__
from partita.models.base import Model

router = APIRouter()


class Health(Model):
    """The server is alive; ``version`` is that of Partita."""

    status: str
    version: str


@router.get("/healthz", operation_id="health", include_in_schema=False)
async def health() -> Health:
    """Tell that the server is alive; it takes no slot of a solve."""
    return Health(status="ok", version=__version__)
