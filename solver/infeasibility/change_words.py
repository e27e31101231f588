"""What a change asks for, in words; a number that is rounded is rounded to the side that works."""

from collections.abc import Sequence
from typing import Any

from partita.models.infeasibility import NamedLimit
from partita.models.naming import quoted
from partita.solver.reasons import at_least, at_most


def other_limit(limit: NamedLimit, value: float) -> str:
    """Ask for another limit on a metric."""
    before: Any = limit.value
    verb, rounded = ("raise", at_least) if value > before else ("lower", at_most)
    unit = " bytes" if limit.name.endswith("_bytes") else ""
    return f"{verb} {limit.name} from {_short(before)}{unit} to {rounded(value)}{unit}"


def more_memory(kind: str, limit: NamedLimit, needed: int) -> str:
    """Ask for larger devices of a kind."""
    return f"take devices {quoted(kind)} with memory_bytes of at least {needed} bytes instead of {limit.value} bytes"


def instead(what: str, number: int, before: Sequence[int]) -> str:
    """Ask for another number of stages or microbatches."""
    plural = "es" if what.endswith("ch") else "s"
    return f"take {number} {what}{'' if number == 1 else plural} instead of {' or '.join(map(str, before))}"


def left_out(limit: NamedLimit) -> str:
    """Ask to do without a constraint."""
    return f"leave out {limit.name} ({limit.words})"


def other_recompute(kind: str) -> str:
    """Ask for another kind of recompute."""
    return f"set constraints.recompute to {quoted(kind)}"


def _short(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.10g}"
