"""Tests of faults, how they are shown, and short values."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.models.errors import VALUE_WIDTH, Fault, InvalidInput, NotSupportedYet, join_pointer, short_value


def test_a_fault_is_one_line() -> None:
    """Tests place, words and value, and that a line break in a key does not break the line."""
    assert str(Fault("/a/0", "must be at least 1", "0", "x")) == "/a/0: must be at least 1 (got 0)"
    assert str(Fault("", "not JSON")) == "document: not JSON"
    assert str(Fault("/a\nb", "unknown")) == "/a\\nb: unknown"


def test_an_error_has_one_line_per_fault() -> None:
    """Tests the text of an error, and that it is a ValueError."""
    error = InvalidInput([Fault("/a", "one"), Fault("/b", "two")])
    assert str(error) == "/a: one\n/b: two"
    assert isinstance(error, ValueError)


def test_errors_cross_processes() -> None:
    """Tests that an error survives pickling, with its class and its faults."""
    error = NotSupportedYet.at("/training", "not yet")
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is NotSupportedYet
    assert copied.faults == error.faults
    assert copied.faults[0].code == "not_supported_yet"


def test_pointers_are_escaped() -> None:
    """Tests RFC 6901."""
    assert join_pointer(["a/b", 0, "m~n"]) == "/a~1b/0/m~0n"
    assert join_pointer([]) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (float("inf"), "Infinity"),
        ("a", "'a'"),
        ([1, 2], "a list of 2 items"),
        ({"a": 1}, "an object with 1 member"),
        (10**399, "an integer of about 400 digits"),
        (b"x", "a bytes"),
    ],
)
def test_values_are_shown_as_in_json(value: object, shown: str) -> None:
    """Tests the short form of every kind of value."""
    assert short_value(value) == shown


@given(st.text() | st.text("\\'\n\x00", min_size=70) | st.integers() | st.floats())
def test_short_values_are_short(value: object) -> None:
    """Tests that no value takes more than 80 characters or breaks the line."""
    shown = short_value(value)
    assert len(shown) <= VALUE_WIDTH
    assert "\n" not in shown
