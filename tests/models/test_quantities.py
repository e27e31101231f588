"""Tests of names, bytes, seconds and counts."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from partita.models.base import Model
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.quantities import (
    MAX_BYTES,
    UNITS,
    Bytes,
    Choice,
    Name,
    PositiveSeconds,
    Seconds,
    as_choices,
    parse_size,
)


class Quantities(Model):
    """One field of each kind."""

    size: Bytes = 0
    time: Seconds = 0.0
    limit: PositiveSeconds = 1.0
    name: Name = "n"
    choice: Choice = 1


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (0, 0),
        (125e6, 125_000_000),  # a float with an integral value
        ("80GiB", 80 * 2**30),
        ("16GB", 16 * 10**9),
        ("16 GB", 16 * 10**9),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("1.5GiB", 3 * 2**29),
        ("0.3kB", 300),  # exact, though 0.3 is no binary fraction
        ("7B", 7),
        (MAX_BYTES, MAX_BYTES),
        ("1024PiB", MAX_BYTES),
    ],
)
def test_bytes_are_read(written: object, size: int) -> None:
    """Tests that every way of writing bytes gives the same integer."""
    read = validate(Quantities, {"size": written}).size
    assert read == size
    assert type(read) is int


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("12", "write 12 without quotes, or '12B'"),
        ("12gb", "write GB"),
        ("80G", "write GB"),
        ("100Gb", "means bits: divide by 8 and write GB"),
        ("100Gib", "means bits: divide by 8 and write GiB"),
        ("many", "such as '80GiB'"),
        ("-1GB", "such as '80GiB'"),
        ("1.5B", "whole numbers"),
        (1.5, "write 2"),
        (-1, "at least 0"),
        (MAX_BYTES + 1, "at most"),
        (1e300, "at most"),
        (True, "whole number"),
        (None, "leave the field out"),
        ([], "whole number"),
        (float("nan"), "whole number"),
    ],
)
def test_bytes_are_refused_with_a_remedy(written: object, remedy: str) -> None:
    """Tests that what are no bytes is refused, and that the message says what to write."""
    with pytest.raises(InvalidInput, match=r".+") as caught:
        validate(Quantities, {"size": written})
    assert caught.value.faults[0].pointer == "/size"
    assert remedy in caught.value.faults[0].detail


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)))
def test_sizes_scale_with_their_unit(number: int, unit: str) -> None:
    """Tests that a whole number of units is exactly that many bytes."""
    assert parse_size(f"{number}{unit}") == number * UNITS[unit]


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.binary()))
def test_any_value_is_bytes_or_is_refused(value: Any) -> None:
    """Tests that nothing but a ValidationError comes out of odd values."""
    adapter: TypeAdapter[int] = TypeAdapter(Bytes)
    with suppress(ValidationError):
        assert 0 <= adapter.validate_python(value, strict=True) <= MAX_BYTES


@pytest.mark.parametrize("value", ["1", True, -1.0, 1e10, float("inf"), float("nan"), None, 10**390])
def test_seconds_are_finite_numbers(value: object) -> None:
    """Tests that texts, booleans, negative, huge and endless times are refused."""
    with pytest.raises(InvalidInput):
        validate(Quantities, {"time": value})


def test_seconds_may_be_integers() -> None:
    """Tests that a time without a point is a number too."""
    assert validate(Quantities, {"time": 3}).time == 3.0


@pytest.mark.parametrize("value", [5e-324, 1e-310, 9.9e-16])
def test_times_shorter_than_any_real_one_are_refused(value: float) -> None:
    """Tests that a quotient of two times cannot overflow, and that the message says what to check."""
    with pytest.raises(InvalidInput) as caught:
        validate(Quantities, {"time": value, "limit": value})
    remedy = "at least 1e-15 s (a femtosecond); check the unit: times are given in seconds"
    assert [str(fault) for fault in caught.value.faults] == [
        f"/time: a time is 0 or {remedy} (got {value})",
        f"/limit: must be {remedy} (got {value})",
    ]


@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1e-15, 2.5e-10, 1e9])
def test_times_may_be_none_or_short(value: float) -> None:
    """Tests both ends of what is allowed."""
    assert validate(Quantities, {"time": value}).time == value


def test_the_schema_knows_the_shortest_time() -> None:
    """Tests that the schema allows the same times."""
    fields = Quantities.model_json_schema()["properties"]
    assert fields["time"]["anyOf"] == [{"const": 0}, {"minimum": 1e-15}]
    assert (fields["time"]["minimum"], fields["time"]["maximum"]) == (0, 1e9)
    assert (fields["limit"]["minimum"], fields["limit"]["maximum"]) == (1e-15, 1e9)


@pytest.mark.parametrize("name", ["", "a\nb", "\x7f", "\x85", "x" * 257, 3, None])
def test_names_are_short_and_printable(name: object) -> None:
    """Tests that empty and long names and control characters are refused."""
    with pytest.raises(InvalidInput):
        validate(Quantities, {"name": name})


@pytest.mark.parametrize("name", ["x" * 256, "größe", "a b/c~d:e", "層"])
def test_names_may_hold_any_other_character(name: str) -> None:
    """Tests that a name need not be an identifier."""
    assert validate(Quantities, {"name": name}).name == name


def test_a_choice_is_a_number_or_a_list() -> None:
    """Tests both forms of a choice, and that each becomes a tuple to go through."""
    assert as_choices(validate(Quantities, {"choice": 2}).choice) == (2,)
    assert as_choices(validate(Quantities, {"choice": [4, 2]}).choice) == (4, 2)


@pytest.mark.parametrize(
    ("written", "pointer"),
    [
        (0, "/choice"),
        (2.0, "/choice"),
        ("2", "/choice"),
        (True, "/choice"),
        ([], "/choice"),
        ([1, 0], "/choice/1"),  # the pointer has no trace of the branch of the union
        ([1, 2, 1], "/choice/2"),
        ([[1]], "/choice/0"),
    ],
)
def test_a_wrong_choice_is_pointed_at(written: object, pointer: str) -> None:
    """Tests the pointers of wrong choices."""
    with pytest.raises(InvalidInput) as caught:
        validate(Quantities, {"choice": written})
    assert [fault.pointer for fault in caught.value.faults] == [pointer]
