"""How a solve in a process of its own can end."""

from dataclasses import dataclass
from typing import Literal

from partita.models.errors import Fault
from partita.service.solving.references import References
from partita.service.solving.variants import Split

RefusalKind = Literal["not_json", "invalid_input", "not_supported_yet", "over_limit", "reference_changed"]


_WITHOUT = b'"problem":null,"problem_digest":'


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer.

    Attributes
    ----------
    body
        The answer as JSON, without the problem.
    status
        The status in it.
    problem
        The problem as JSON.
    relative_gap
        The gap between the best plan and the bound; None where there is none.
    """

    body: bytes
    status: str = ""
    problem: bytes = b"null"
    relative_gap: float | None = None

    def with_problem(self) -> bytes:
        """Give the answer as JSON with the problem in its place."""
        # No text in JSON holds these bytes, whose quotes would be escaped there, and no part of an answer but the
        # answer itself has these two members next to each other.
        return self.body.replace(_WITHOUT, b'"problem":%b,"problem_digest":' % self.problem, 1)


@dataclass(frozen=True, slots=True)
class Refused:
    """The body was refused; ``kind`` says why, ``faults`` say where."""

    kind: RefusalKind
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The solve needed more memory than ``limit_bytes``; 0 where no limit was set."""

    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An error inside Partita; ``trace`` is for the log, never for a client."""

    trace: str


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process ended without a word; a negative ``exit_code`` is the signal that ended it."""

    exit_code: int


@dataclass(frozen=True, slots=True)
class Overran:
    """The process was killed because it took longer than ``allowed_s``, while ``reading`` or afterwards."""

    allowed_s: float
    reading: bool


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The process was killed because nobody waits for the answer."""


Outcome = Answered | Split | References | Refused | OutOfMemory | Failed | Crashed | Overran | Cancelled
