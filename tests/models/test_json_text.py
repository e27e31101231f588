"""Tests of strict JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.models.errors import InvalidInput
from partita.models.json_text import MAX_DEPTH, read_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_good_json_is_read_as_it_is(data: object) -> None:
    """Tests that strictness changes nothing in a good document."""
    assert read_json(json.dumps(data)) == data
    assert read_json(json.dumps(data, ensure_ascii=False).encode()) == data


@given(st.binary(max_size=60) | st.text('[]{}",:\\u0123456789eE+-.truefalsnNaI \n', max_size=60))
def test_bad_json_is_refused_and_nothing_else(text: bytes | str) -> None:
    """Tests that no other error than InvalidInput comes out of any text."""
    try:
        read_json(text)
    except InvalidInput as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "pointer", "detail", "value"),
    [
        ("", "", "line 1, column 1", "the end of the text"),
        ('{"a": 1,\n x}', "", "line 2, column 2", "'x}'"),
        ('{"a": 1} x', "", "extra data", "'x'"),
        ('{"a": 1, "a": 2}', "/a", "twice", "'a'"),
        ('{"b": [{}, {"c/d": {"a~": 1, "a~": 2}}]}', "/b/1/c~1d/a~0", "twice", "'a~'"),
        ('{"a": NaN}', "/a", "finite", "NaN"),
        ('{"a": [0, -Infinity]}', "/a/1", "finite", "-Infinity"),
        ("[1e999]", "/0", "below 1e308", "Infinity"),
        ("[" + "1" * 401 + "]", "/0", "at most 400 digits", "an integer of 401 digits"),
        (b'"\xff"', "", "not UTF-8: byte 1", "0xff"),
        ('["\\ud800"]', "/0", "surrogate", r"'\ud800'"),
        ('{"\\udfff": 1}', "", "surrogate", r"'\udfff'"),
        ('"\ud800"', "", "surrogate pair at character 1", None),
        ("[" * 65 + "]" * 65, "", "65 levels deep; at most 64", None),
    ],
)
def test_what_is_wrong_is_pointed_at(text: bytes | str, pointer: str, detail: str, value: str | None) -> None:
    """Tests place, words and value of every kind of refusal."""
    with pytest.raises(InvalidInput) as caught:
        read_json(text)
    fault = caught.value.faults[0]
    assert (fault.pointer, fault.value) == (pointer, value)
    assert detail in fault.detail


def test_a_repeated_key_below_a_repeated_key_is_no_surprise() -> None:
    """Tests that the outer one is reported although the inner one is lost with its value."""
    with pytest.raises(InvalidInput) as caught:
        read_json('{"a": {"x": 1, "x": 2}, "a": 3}')
    assert [fault.pointer for fault in caught.value.faults] == ["/a"]


def test_depth_is_counted_outside_of_texts() -> None:
    """Tests the limit itself, and that brackets in texts do not count."""
    assert read_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert read_json('["' + "[" * 100 + '\\"[["]') == ["[" * 100 + '"[[']


def test_a_byte_order_mark_is_ignored() -> None:
    """Tests that files of editors that write one are read."""
    assert read_json(b"\xef\xbb\xbf[1]") == [1]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 2_000_000,
        '{"a":' * 400_000,
        '"' * 2_000_000,
        '"\\' * 1_000_000,
        "[" + "9" * 2_000_000 + "]",
        "1e" + "9" * 2_000_000,
    ],
    ids=["arrays", "objects", "quotes", "escapes", "digits", "exponent"],
)
@pytest.mark.timeout(30)  # tenths of a second where nothing else runs; many minutes in quadratic time
def test_hostile_texts_are_refused_fast(text: str) -> None:
    """Tests that two megabytes meant to take long do not."""
    with pytest.raises(InvalidInput):
        read_json(text)
