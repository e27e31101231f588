"""How a solve in a process of its own can end."""

from dataclasses import dataclass
from typing import Literal

from partita.models.errors import Fault

RefusalKind = Literal["not_json", "invalid_input", "not_supported_yet", "over_limit"]


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer as JSON."""

    body: bytes


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


Outcome = Answered | Refused | OutOfMemory | Failed | Crashed | Overran | Cancelled
