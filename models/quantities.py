"""Names, bytes, seconds and counts: the values that every model is made of."""

import re
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from partita.models.base import Many, at_most, fault, unique

MAX_BYTES = 2**60
MIN_SECONDS = 1e-15
"""The shortest time that is not 0: far below what can be measured, far above where quotients of times overflow."""
MAX_SECONDS = 1e9
MAX_NAME = 256

UNITS: dict[str, int] = {
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T", "P"), start=1)},
    "KB": 1000,
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T", "P"), start=1)},
}
"""Bytes per unit, for sizes written as text."""

_SIZE = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?) ?([A-Za-z]{0,8})")


def parse_size(text: str) -> int:
    """Read a size such as ``80GiB`` or ``1.5 GB``, to the nearest byte.

    Raises
    ------
    PydanticCustomError
        When the text is not a number and one of the units, or is not a whole number of bytes written in ``B``.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise fault("bytes_text", f"a size is a number and a unit, such as '80GiB'; the units are {', '.join(UNITS)}")
    number, unit = match.groups()
    if not unit:
        raise fault("bytes_text", f"a size in quotes needs a unit: write {number} without quotes, or '{number}B'")
    if unit not in UNITS:
        raise fault("bytes_text", f"unknown unit {unit!r}{_unit_hint(unit)}; the units are {', '.join(UNITS)}")
    size = Fraction(number) * UNITS[unit]
    if unit == "B" and size.denominator != 1:
        raise fault("bytes_text", "bytes are whole numbers")
    return round(size)


def _unit_hint(unit: str) -> str:
    """Say which unit was probably meant, where that can be told."""
    if re.fullmatch(r"[kKMGTP]i?b", unit):
        return f" ({unit} means bits: divide by 8 and write {unit[:-1]}B)"
    meant = next((known for known in UNITS if unit.lower() in (known.lower(), known[:-1].lower())), None)
    return f" (write {meant})" if meant else ""


def _parse_bytes(value: object) -> object:
    """Turn the accepted ways of writing bytes into an integer; leave anything else to the type check."""
    if isinstance(value, str):
        return parse_size(value)
    if isinstance(value, float):
        if value.is_integer():
            return int(value)
        if abs(value) < MAX_BYTES:
            raise fault("bytes_fraction", f"bytes are whole numbers: write {round(value)}")
    return value


Bytes = Annotated[
    int,
    Field(ge=0, le=MAX_BYTES),
    BeforeValidator(_parse_bytes, json_schema_input_type=int | float | str),
]
"""A number of bytes, 0 to 2**60: an integer, a float with an integral value, or text with a unit."""

PositiveBytes = Annotated[
    int,
    Field(ge=1, le=MAX_BYTES),
    BeforeValidator(_parse_bytes, json_schema_input_type=int | float | str),
]
"""A number of bytes, 1 to 2**60."""


def _none_or_long_enough(seconds: float) -> float:
    """Refuse a time that is shorter than any real one, but not 0."""
    if 0 < seconds < MIN_SECONDS:
        raise fault("too_short_time", f"a time is 0 or {_LONG_ENOUGH}")
    return seconds


def _long_enough(seconds: float) -> float:
    """Refuse a time that is shorter than any real one."""
    if seconds < MIN_SECONDS:
        raise fault("too_short_time", f"must be {_LONG_ENOUGH}")
    return seconds


_LONG_ENOUGH = f"at least {MIN_SECONDS:g} s (a femtosecond); check the unit: times are given in seconds"


def at_least(least: float, remedy: str) -> AfterValidator:
    """Make a validator that refuses smaller numbers and says what to do."""

    def check(number: float) -> float:
        if number < least:
            raise fault("greater_than_equal", f"must be at least {least:g}; {remedy}")
        return number

    return AfterValidator(check)


Seconds = Annotated[
    float,
    Field(ge=0, le=MAX_SECONDS),
    AfterValidator(_none_or_long_enough),
    WithJsonSchema(
        {"type": "number", "anyOf": [{"const": 0}, {"minimum": MIN_SECONDS}], "minimum": 0, "maximum": MAX_SECONDS}
    ),
]
"""A time in seconds: 0, or 1e-15 to 1e9."""

PositiveSeconds = Annotated[
    float,
    Field(gt=0, le=MAX_SECONDS),
    AfterValidator(_long_enough),
    WithJsonSchema({"type": "number", "minimum": MIN_SECONDS, "maximum": MAX_SECONDS}),
]
"""A time in seconds, 1e-15 to 1e9."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""A name: 1 to 256 characters, none of them a control character."""

Count = Annotated[int, Field(ge=1, le=2**40)]
"""A whole number, at least 1."""

Position = Annotated[int, Field(ge=0, le=2**40)]
"""A whole number counted from 0."""


def is_list(value: object) -> str:
    """Give the tag of the branch of ``Choice`` that a value belongs to."""
    return "(list)" if isinstance(value, list | tuple) else "(number)"


Choice = Annotated[
    Annotated[Count, Tag("(number)")]
    | Annotated[Many[Count], Field(min_length=1), unique("the number"), at_most(4096, "choices"), Tag("(list)")],
    Discriminator(is_list),
]
"""A whole number, at least 1, or a list of different ones to choose from."""


def as_choices(choice: int | tuple[int, ...]) -> tuple[int, ...]:
    """Give the numbers to choose from; a single number is a choice of one."""
    return choice if isinstance(choice, tuple) else (choice,)
