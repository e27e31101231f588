"""GET /healthz and /readyz: whether the server is alive, and whether jobs can be taken and solved."""

from fastapi import APIRouter, Request

from partita import __version__
from partita.service.jobs.jobs import Jobs
from partita.service.problem_document import NOT_READY, Refusal
from partita.service.refusals import RETRY_S
from partita.service.replies import Health

router = APIRouter()


@router.get("/healthz", operation_id="health", include_in_schema=False)
async def health() -> Health:
    """Tell that the server is alive; it takes no slot of a solve."""
    return Health(status="ok", version=__version__)


@router.get("/readyz", operation_id="ready", include_in_schema=False)
async def ready(request: Request) -> Health:
    """Tell whether the store can be reached and a worker is alive."""
    jobs: Jobs = request.app.state.jobs
    reason = await jobs.ready()
    if reason is not None:
        raise Refusal(NOT_READY, reason, headers={"Retry-After": str(RETRY_S)})
    return Health(status="ok", version=__version__)
