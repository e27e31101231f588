"""What the headers of a request ask for besides its body."""

import re
from dataclasses import dataclass

from fastapi import Request

from partita.service.problem_document import INVALID, Place, Refusal
from partita.service.settings import Settings

WAIT_S = 1.0
"""How long a request waits for its answer that does not say otherwise."""

LONGEST_KEY = 255


@dataclass(frozen=True, slots=True)
class Preferences:
    """How a request wants its answer.

    Attributes
    ----------
    wait_s
        How long it waits (``Prefer: wait=5``, or ``respond-async`` for not at all; RFC 7240).
    fresh
        Whether an answer in the store will not do (``Cache-Control: no-cache``).
    key
        Its idempotency key; None for none.
    """

    wait_s: float
    fresh: bool
    key: str | None

    @property
    def applied(self) -> dict[str, str]:
        """The header that says how long the request waited at most."""
        return {"Preference-Applied": f"wait={self.wait_s:g}"}


def preferences(request: Request, settings: Settings) -> Preferences:
    """Read the preferences; those that are not known are ignored, as RFC 7240 has it.

    Raises
    ------
    Refusal
        When the idempotency key is no name.
    """
    wait_s, asked = WAIT_S, ",".join(request.headers.getlist("prefer")).lower()
    for preference in asked.split(","):
        name, _, value = (part.strip() for part in preference.split(";")[0].partition("="))
        number = value.strip('"')
        if name == "wait" and re.fullmatch(r"\d{1,9}", number, re.ASCII):
            wait_s = min(float(number), settings.max_wait_s)
            break
        if name == "respond-async":
            wait_s = 0.0
    fresh = "no-cache" in request.headers.get("cache-control", "").lower()
    return Preferences(wait_s, fresh, idempotency_key(request))


def idempotency_key(request: Request) -> str | None:
    """Give the header Idempotency-Key; None where it is missing.

    Raises
    ------
    Refusal
        When it is empty, too long or not made of visible characters.
    """
    key = request.headers.get("idempotency-key")
    if key is None or re.fullmatch(rf"[\x21-\x7e]{{1,{LONGEST_KEY}}}", key):
        return key
    detail = f"the header Idempotency-Key must be 1 to {LONGEST_KEY} visible ASCII characters, such as a UUID"
    place = Place(pointer="", detail=detail, code="idempotency_key", parameter="Idempotency-Key")
    raise Refusal(INVALID, detail, (place,))
