"""Strict JSON: no repeated keys, no numbers that are none, no depth without end."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, islice
from math import isfinite

from partita.models.base import MAX_FAULTS
from partita.models.errors import Fault, InvalidInput, join_pointer, short_value

MAX_DEPTH = 64
"""Most levels of arrays and objects in each other."""
MAX_DIGITS = 400
"""Most digits of an integer."""
MAX_MEMBERS = 20_000
"""Most members of an object."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_HALF_PAIR = re.compile(r"[\ud800-\udfff]")
_HALF_PAIR_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_STEPS = bytes.maketrans(b"[{]}", b"\x02\x02\x00\x00")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


class _Repeated(dict[str, object]):
    """An object in which a key stands twice."""

    def __init__(self, members: dict[str, object], key: str) -> None:
        super().__init__(members)
        self.key = key


class _TooMany:
    """An object with too many members, which are dropped."""

    def __init__(self, members: int) -> None:
        self.members = members


class _TooLong:
    """An integer with too many digits."""

    def __init__(self, digits: int) -> None:
        self.digits = digits


class _Suspects:
    """The hooks of the parser. They keep what is wrong as values that are looked for afterwards, with their places."""

    def __init__(self) -> None:
        self.any = False

    def pairs(self, members: list[tuple[str, object]]) -> object:
        """Make an object; one with a repeated key or with too many members is marked."""
        if len(members) > MAX_MEMBERS:
            self.any = True
            return _TooMany(len(members))
        plain = dict(members)
        if len(plain) == len(members):
            return plain
        self.any = True
        counts = Counter(key for key, _ in members)
        return _Repeated(plain, next(key for key, count in counts.items() if count > 1))

    def real(self, digits: str) -> float:
        """Read a number with a point or an exponent, NaN or Infinity."""
        number = float(digits)
        self.any = self.any or not isfinite(number)
        return number

    def integer(self, digits: str) -> object:
        """Read an integer, unless it has too many digits."""
        if len(digits) <= MAX_DIGITS:
            return int(digits)
        self.any = True
        return _TooLong(len(digits.lstrip("-")))


def read_json(text: bytes | str) -> object:
    """Read a JSON document.

    Raises
    ------
    InvalidInput
        When it is not UTF-8 or not JSON; when it nests deeper than 64 levels, repeats a key, has an object of more than
        20000 members, or holds NaN, an infinity, a number too large for a double, an integer of more than 400 digits,
        or half of a surrogate pair.
    """
    text = _decoded(text)
    _check_depth(text)
    found_suspect = _Suspects()
    try:
        data = json.loads(
            text,
            object_pairs_hook=found_suspect.pairs,
            parse_float=found_suspect.real,
            parse_constant=found_suspect.real,
            parse_int=found_suspect.integer,
        )
    except json.JSONDecodeError as error:
        around = text[error.pos : error.pos + 20]
        found = short_value(around) if around else "the end of the text"
        detail = f"not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}"
        raise InvalidInput.at("", detail, found, "not_json") from None
    if found_suspect.any or _HALF_PAIR_ESCAPE.search(text):
        faults = list(islice(_faults_in(data), MAX_FAULTS))
        if faults:
            raise InvalidInput(faults)
    return data


def _decoded(text: bytes | str) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    if isinstance(text, str):
        half = _HALF_PAIR.search(text)
        if half:
            detail = f"not valid text: half of a surrogate pair at character {half.start()}"
            raise InvalidInput.at("", detail, None, "not_unicode")
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        detail = f"not UTF-8: byte {error.start} is wrong; save the file as UTF-8"
        raise InvalidInput.at("", detail, hex(text[error.start]), "not_unicode") from None


def _check_depth(text: str) -> None:
    """Refuse arrays and objects nested too deep, before anything walks into them."""
    brackets = _STRING.sub(b"", text.encode()).translate(_STEPS, _NOT_BRACKETS)
    depth = max(accumulate(step - 1 for step in brackets), default=0)
    if depth > MAX_DEPTH:
        detail = f"arrays and objects nested {depth} levels deep; at most {MAX_DEPTH} are allowed"
        raise InvalidInput.at("", detail, None, "too_deep")


def _faults_in(data: object) -> Iterator[Fault]:
    """Find the first fault of each suspect value; walks without recursion."""
    stack: list[tuple[tuple[str | int, ...], object]] = [((), data)]
    while stack:
        path, value = stack.pop()
        found = _fault_of(value)
        if found is not None:
            place, detail, shown, code = found
            yield Fault(join_pointer((*path, *place)), detail, shown, code)
        if isinstance(value, dict):
            stack.extend(((*path, key), member) for key, member in reversed(value.items()))
        elif isinstance(value, list):
            stack.extend(((*path, index), value[index]) for index in range(len(value) - 1, -1, -1))


def _fault_of(value: object) -> tuple[tuple[str, ...], str, str | None, str] | None:
    """Judge one value: the key below it where one is at fault, what is wrong, what was found, and the code."""
    if isinstance(value, _Repeated):
        return (value.key,), "this key stands twice in one object; keep one", short_value(value.key), "repeated_key"
    if isinstance(value, _TooMany):
        detail = f"an object has at most {MAX_MEMBERS} members"
        return (), detail, f"an object of {value.members} members", "too_many_members"
    if isinstance(value, _TooLong):
        found = f"an integer of {value.digits} digits"
        return (), f"an integer has at most {MAX_DIGITS} digits", found, "number_too_large"
    if isinstance(value, float) and not isfinite(value):
        return (), "must be a finite number, below 1e308 in size", short_value(value), "finite_number"
    if isinstance(value, str) and _HALF_PAIR.search(value):
        return (), "not valid text: half of a surrogate pair", ascii(value)[:80], "not_unicode"
    if isinstance(value, dict):
        half = next((key for key in value if _HALF_PAIR.search(key)), None)
        if half is not None:
            return (), "a key is not valid text: half of a surrogate pair", ascii(half)[:80], "not_unicode"
    return None
