"""Why a solve has no answer, as the client is told."""

import logging
import signal

from partita.service.problem_document import (
    ABANDONED,
    CRASHED,
    INTERNAL,
    INVALID,
    NO_MEMORY,
    NOT_JSON,
    NOT_READY,
    OVER_LIMIT,
    OVERRAN,
    REFERENCE_CHANGED,
    UNSUPPORTED,
    Kind,
    Place,
    Refusal,
    places,
)
from partita.service.solving.outcomes import Crashed, Failed, Outcome, OutOfMemory, Overran, RefusalKind, Refused

LOG = logging.getLogger("partita.service")

RETRY_S = 5
"""When to try again what failed because the service was not ready."""

REFUSALS: dict[RefusalKind, Kind] = {
    "not_json": NOT_JSON,
    "invalid_input": INVALID,
    "not_supported_yet": UNSUPPORTED,
    "over_limit": OVER_LIMIT,
    "reference_changed": REFERENCE_CHANGED,
}


def abandoned() -> Refusal:
    """Explain why a job is not begun again."""
    return Refusal(
        ABANDONED, "its worker was gone each of the many times that it was begun; it is thought to be the cause"
    )


def store_away(error: Exception) -> Refusal:
    """Explain that the store cannot be reached; why is for the log alone."""
    refusal = Refusal(NOT_READY, "the store cannot be reached", headers={"Retry-After": str(RETRY_S)})
    LOG.error("%s: %s", refusal.instance, error)
    return refusal


def refusal_of(outcome: Outcome) -> Refusal:
    """Explain why there is no answer."""
    match outcome:
        case Refused(kind, faults):
            count = "one thing" if len(faults) == 1 else f"{len(faults)} things"
            return Refusal(REFUSALS[kind], f"{count} to correct in the body; see errors", places(faults))
        case OutOfMemory(limit):
            detail = f"the solve needed more memory than the {limit} bytes that this server gives to one"
            return Refusal(NO_MEMORY, detail, (Place(pointer="", detail=detail, code="out_of_memory"),))
        case Overran(allowed, True):
            detail = f"reading the body took longer than {allowed:g} s and was given up; send a smaller problem"
            return Refusal(OVERRAN, detail)
        case Overran(allowed, False):
            detail = (
                f"the solve was still running after {allowed:g} s, its time limit and some grace, and was killed; "
                "send a smaller problem or a longer search.time_limit_s"
            )
            return Refusal(OVERRAN, detail)
        case Crashed(exit_code):
            return Refusal(CRASHED, f"the process of the solve ended without an answer: {_how_ended(exit_code)}")
        case Failed():
            return Refusal(INTERNAL, "an error inside Partita; the server's log has it under the name in instance")
        case _:
            return Refusal(INTERNAL, "the solve was cancelled by the server")


def logged_refusal(outcome: Outcome) -> Refusal:
    """Give the refusal that explains an outcome; what its client must not see goes to the log."""
    refusal = refusal_of(outcome)
    if refusal.kind.status == INTERNAL.status:
        LOG.error("%s: %s\n%s", refusal.instance, refusal.detail, getattr(outcome, "trace", outcome))
    return refusal


def _how_ended(exit_code: int) -> str:
    """Say how a process ended."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"
