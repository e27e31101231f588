"""What a call does, apart from how bytes travel: generators that ask for one step at a time.

The synchronous and the asynchronous client both carry out these steps, so that what a call means is written once.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from random import uniform
from time import monotonic
from typing import Any, TypeVar

from partita.service.client.errors import ServiceError


class Broken(Exception):
    """The connection failed or was silent for too long; thrown into the generator in place of an answer."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request, and give its ``Reply``.

    Attributes
    ----------
    method, path, body, headers
        The request; the path is relative to the server's address.
    wait_s
        How long the server may take before it begins to answer, besides what the network takes.
    most_s
        How long all may take at most; None for no other limit.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    most_s: float | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """Open a stream with GET, and give its ``Reply``, with a body only where it failed; an earlier stream is closed.

    Nothing is read from it for longer than ``most_s``, where that is given.
    """

    path: str
    most_s: float | None = None


@dataclass(frozen=True, slots=True)
class Next:
    """Give the next line of the open stream; None at its end."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Emit:
    """Give something to whoever called."""

    value: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


Step = Send | Open | Next | Sleep | Emit
Result = TypeVar("Result")
Steps = Generator[Step, Any, Result]


@dataclass(frozen=True, slots=True)
class Done:
    """The last step was taken."""

    result: Any


def advance(steps: Steps[Any], answer: object, error: Broken | None) -> Step | Done:
    """Go on with the answer to the last step, or with what went wrong with it; give the next step."""
    try:
        return steps.send(answer) if error is None else steps.throw(error)
    except StopIteration as end:
        return Done(end.value)


class Lines:
    """Cuts a stream into lines at line feeds alone: names in JSON may hold characters that other readers cut at."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def add(self, part: bytes) -> list[str]:
        """Give the lines that end in the next part of the stream."""
        first, *others = part.split(b"\n")
        self._begun.append(first)
        if not others:
            return []
        whole = [b"".join(self._begun), *others[:-1]]
        self._begun = [others[-1]]
        return [line.decode(errors="replace") for line in whole]


FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0

SHORTEST_S = 0.001
"""The shortest time that is left for a step: none would mean for ever to some."""


@dataclass(slots=True)
class Patience:
    """How long a call goes on trying.

    Attributes
    ----------
    retries
        How often in a row it tries again where the server cannot be reached or has no room.
    ends
        When it gives up in any case, on the clock ``time.monotonic``; None for never.
    failures
        How often in a row it failed.
    job
        What it waits for.
    """

    retries: int
    ends: float | None = None
    failures: int = 0
    job: str | None = None

    def pause(self, least_s: float = 0.0) -> Steps[None]:
        """Wait before the next attempt, longer every time; by chance, so that many clients do not come at once."""
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.failures, 10))
        self.failures += 1
        pause_s = max(least_s, uniform(pause_s / 2, pause_s))
        yield Sleep(pause_s if self.left_s is None else min(pause_s, self.left_s))
        self.check()

    @property
    def left_s(self) -> float | None:
        """How long it may still take; None for as long as it takes."""
        return None if self.ends is None else max(SHORTEST_S, self.ends - monotonic())

    def check(self) -> None:
        """Give up where the time is over.

        Raises
        ------
        ServiceError
            With the job, which goes on.
        """
        if self.ends is not None and monotonic() >= self.ends:
            rest = "" if self.job is None else f"; job {self.job} goes on, and can be waited for again"
            raise ServiceError(f"not done within the time that the caller gave{rest}", job=self.job)
