"""Who may send which request: every call asks for a key, but for those that tell of nobody's jobs."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from partita.service.access.addresses import names_loopback
from partita.service.access.key_store import KeyStore
from partita.service.access.keys import ANYONE, Caller, Role
from partita.service.access.quotas import QuotaReached
from partita.service.api.pages import ASSETS
from partita.service.jobs.database import DatabaseAway
from partita.service.problem_document import NO_KEY, QUOTA_REACHED, ROLE_TOO_LOW, Refusal
from partita.service.refusals import store_away

PAGES = frozenset(("/", "/docs", "/openapi.json", *(f"/page/{name}" for name in ASSETS)))
"""The pages and what they load: they hold nobody's jobs, and ask for them as every client does."""

OPEN = PAGES | {"/healthz", "/readyz"}
"""The paths for which nobody needs a key."""

ADMIN = frozenset(("/metrics",))
"""The paths that tell of the jobs of all keys together."""

NOT_THIS_MACHINE = (
    "the header Host names no loopback address, and a server that asks for no keys answers those on its own machine "
    "alone; make a key with partita keys create"
)
"""Said where a page of the web may have given a name of its own to this machine, to reach it from a browser."""

LOOKING = ("GET", "HEAD", "OPTIONS")
"""The methods that change nothing."""


class Guard:
    """Lets a request through to the application with its caller in ``request.state.caller``, or refuses it.

    It comes before the routes, so that a new call is guarded without a word about it.

    Parameters
    ----------
    app
        The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and scope["path"] not in OPEN:
            try:
                await asyncio.to_thread(_admit, scope)
            except Refusal as refusal:
                await refusal.response()(scope, receive, send)
                return
            except DatabaseAway as error:
                await store_away(error).response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _admit(scope: Scope) -> None:
    """Note who sends a request, and see whether that may be.

    Raises
    ------
    Refusal
        When a key is asked for and there is none that is valid, its role is too low, or it asks too often.
    """
    state = scope["app"].state
    keys: KeyStore = state.jobs.keys
    text = _bearer(Headers(scope=scope))
    caller = None if text is None else keys.caller(text)
    if caller is None:
        if state.settings.require_keys or keys.any_ever():
            raise _no_key(text)
        if not names_loopback(Headers(scope=scope).get("host", "")):
            raise Refusal(NO_KEY, NOT_THIS_MACHINE, headers=_challenge())
        caller = ANYONE
    scope.setdefault("state", {})["caller"] = caller
    wait_s = state.rates.wait_s(caller)  # first, so that what is refused counts too
    if wait_s and caller.quotas is not None:
        reached = QuotaReached(f"requests_per_minute is {caller.quotas.requests_per_minute}")
        raise quota_reached(reached, wait_s)
    needed = role_for(scope["method"], scope["path"])
    if not caller.may(needed):
        detail = f"this call needs a key with the role {needed}; that of {caller.key} is {caller.role}"
        raise Refusal(ROLE_TOO_LOW, detail)


def quota_reached(error: QuotaReached, retry_s: int) -> Refusal:
    """Explain that a quota is reached, and when to try again, in seconds."""
    return Refusal(QUOTA_REACHED, f"a quota of the key is reached: {error}", headers={"Retry-After": str(retry_s)})


def role_for(method: str, path: str) -> Role:
    """Give the least role that a call needs."""
    if path in ADMIN:
        return "admin"
    return "read" if method in LOOKING else "solve"


def _bearer(headers: Headers) -> str | None:
    """Give the key of a request; None where it has none."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.strip() else None


def _no_key(text: str | None) -> Refusal:
    """Explain that a key is missing or not valid, without a word about which keys there are."""
    if text is None:
        return Refusal(NO_KEY, "send an API key with the header Authorization: Bearer", headers=_challenge())
    return not_valid()


def not_valid() -> Refusal:
    """Explain that a key is not valid, or no longer."""
    detail = "the key is not valid: it is mistyped, revoked, or was replaced when its key was rotated"
    return Refusal(NO_KEY, detail, headers=_challenge(', error="invalid_token"'))


def _challenge(more: str = "") -> dict[str, str]:
    """Name the kind of key that is asked for (RFC 6750)."""
    return {"WWW-Authenticate": f'Bearer realm="partita"{more}'}


def caller_of(request: Request) -> Caller:
    """Give who sends a request that the guard let through."""
    caller: Caller = request.state.caller
    return caller


def owner_of(request: Request) -> str:
    """Give whose jobs a request is about."""
    return caller_of(request).owner


async def while_valid(request: Request, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass on the parts of a stream, until its caller's key is revoked or has run out."""
    keys: KeyStore = request.app.state.jobs.keys
    async for part in parts:
        if not await asyncio.to_thread(keys.still_valid, caller_of(request)):
            return
        yield part
