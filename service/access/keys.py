"""API keys: what they are made of, and what their holders may do.

A key is written ``partita_ID_SECRET``. The identity finds its row; of the secret only the SHA-256 is stored. A slow
hash, as for passwords, would add nothing: 256 random bits cannot be guessed, however fast each guess is.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Literal, get_args

from partita.service.jobs.records import LOCAL

Role = Literal["read", "solve", "admin"]

ROLES: tuple[Role, ...] = get_args(Role)
"""The roles; each may do what those before it may. ``read`` looks, ``solve`` asks and changes, ``admin`` watches the
whole service."""

PREFIX = "partita"
_ID_BYTES, _SECRET_BYTES = 8, 32
_NOBODY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Quotas:
    """How much one owner may use.

    Attributes
    ----------
    max_queued
        Jobs that may wait.
    max_running
        Jobs that may run at once on all workers together, and evaluations at once on one server.
    requests_per_minute
        Requests that one server takes.
    """

    max_queued: int = 10_000
    max_running: int = 8
    requests_per_minute: int = 600


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request.

    Attributes
    ----------
    owner
        Whose jobs it is about.
    role
        What it may do.
    key
        The name of its key; None without keys.
    quotas
        How much it may use; None for as much as there is.
    secret
        The identity of the secret that it shows; None without keys.
    """

    owner: str
    role: Role
    key: str | None
    quotas: Quotas | None = None
    secret: str | None = None

    def may(self, needed: Role) -> bool:
        """Tell whether what needs a role is allowed."""
        return ROLES.index(self.role) >= ROLES.index(needed)


ANYONE = Caller(LOCAL, "admin", None)
"""Whoever reaches a server that asks for no keys."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A new secret; ``text`` is shown once and never stored."""

    id: str = field(default_factory=lambda: secrets.token_hex(_ID_BYTES))
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(_SECRET_BYTES), repr=False)

    @property
    def text(self) -> str:
        """The key as its holder sends it."""
        return f"{PREFIX}_{self.id}_{self.secret}"

    @property
    def hash(self) -> str:
        """What is stored of the secret."""
        return hash_of(self.secret)


def hash_of(secret: str) -> str:
    """Give the SHA-256 of a secret, in hexadecimal digits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def parts_of(text: str) -> tuple[str, str] | None:
    """Give the identity and the secret of a key; None where the text is no key."""
    prefix, _, rest = text.partition("_")
    identity, _, secret = rest.partition("_")
    if prefix != PREFIX or len(identity) != 2 * _ID_BYTES or not secret or not text.isascii():
        return None
    return identity, secret


def fits(secret: str, stored: str | None) -> bool:
    """Tell whether a secret is the stored one, in the same time whether or not one is stored and how much is right."""
    same = hmac.compare_digest(hash_of(secret), stored or _NOBODY)
    return same and stored is not None
