"""What the process of a solve and the server tell each other while the solve runs."""

from dataclasses import dataclass, field
from threading import Event


@dataclass(frozen=True, slots=True)
class Accepted:
    """The input is accepted and the search begins.

    Attributes
    ----------
    limit_s
        Its time limit.
    digest
        That of what is asked; None where it is not kept.
    schedule, layers
        What kind of problem it is: its schedule, ``several`` where it compares them, and how many layers it has.
    """

    limit_s: float
    digest: str | None
    schedule: str = ""
    layers: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """How far the search is.

    Attributes
    ----------
    phase
        What it does.
    incumbent, bound, relative_gap
        The best value so far, the proven bound, both in the unit of the objective, and the gap between them; None where
        unknown.
    points
        How many points of a front are found; None for a plan.
    """

    phase: str
    incumbent: float | None = None
    bound: float | None = None
    relative_gap: float | None = None
    points: int | None = None


@dataclass(frozen=True, slots=True)
class Beat:
    """The process lives, and its threads run."""


@dataclass(frozen=True, slots=True)
class Stop:
    """From the server: end the search with what is found."""


Message = Accepted | Step | Beat
"""What a process tells before its outcome."""


@dataclass(slots=True)
class Talk:
    """One solve's side of the conversation; this one tells nobody.

    Attributes
    ----------
    stop
        Set once the search should end with what it has found.
    """

    stop: Event = field(default_factory=Event)

    def tell(self, message: Message) -> None:
        """Tell the server something."""
