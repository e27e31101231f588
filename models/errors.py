"""What is wrong with an input: where, what value, and what would be right."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar, Self

VALUE_WIDTH = 80
"""Longest text of a value that a fault quotes, in characters."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input.

    Attributes
    ----------
    pointer
        JSON pointer (RFC 6901) to the place; the empty text is the whole document.
    detail
        What is wrong and what would be right, in words.
    value
        The value found there, in short; None where there is none (a missing field).
    code
        A stable name for the kind of fault, such as ``missing`` or ``unknown_name``.
    """

    pointer: str
    detail: str
    value: str | None = None
    code: str = "invalid"

    def __str__(self) -> str:
        """Give the fault as one line: place, what is wrong, value."""
        got = "" if self.value is None else f" (got {self.value})"
        place = self.pointer if self.pointer.isprintable() else repr(self.pointer)[1:-1]
        return f"{place or 'document'}: {self.detail}{got}"


class InvalidInput(ValueError):
    """An input that was refused, with every fault found in it."""

    default_code: ClassVar[str] = "invalid"

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__(self.faults)

    @classmethod
    def at(cls, pointer: str, detail: str, value: str | None = None, code: str | None = None) -> Self:
        """Make the refusal for a single fault; ``value`` is already in short form."""
        return cls([Fault(pointer, detail, value, code or cls.default_code)])

    def __str__(self) -> str:
        """Give one line per fault."""
        return "\n".join(str(fault) for fault in self.faults)


class NotSupportedYet(InvalidInput):
    """A valid input that asks for something Partita cannot do yet."""

    default_code: ClassVar[str] = "not_supported_yet"


def join_pointer(parts: Iterable[str | int]) -> str:
    """Join the steps of a path into a JSON pointer, escaping ``~`` and ``/``."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def short_value(value: object) -> str:
    """Show a value in at most 80 characters, without walking through a large one."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = repr(value[:VALUE_WIDTH])
        return text if len(value) <= VALUE_WIDTH and len(text) <= VALUE_WIDTH else text[: VALUE_WIDTH - 2] + "…'"
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of about {value.bit_length() * 30103 // 100000 + 1} digits"
    if isinstance(value, float) and not isfinite(value):
        return {inf: "Infinity", -inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return f"an object with {len(value)} member{'' if len(value) == 1 else 's'}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)} item{'' if len(value) == 1 else 's'}"
    return f"a {type(value).__name__}"
