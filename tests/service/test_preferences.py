"""What the headers of a request ask for."""

import pytest
from starlette.requests import Request

from partita.service.api.preferences import WAIT_S, preferences
from partita.service.problem_document import Refusal
from partita.service.settings import Settings


def read(**headers):
    """Read the preferences of a request with these headers."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return preferences(Request({"type": "http", "headers": raw}), Settings(max_wait_s=60.0))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("wait=5", 5),
        ('Wait = "7" ; x=y', 7),
        ("wait=0", 0),
        ("wait=99999", 60),  # no more than the server allows
        ("respond-async", 0),
        ("respond-async, wait=10", 10),  # RFC 7240: asynchronously if it takes longer
        ("handling=lenient, wait=3", 3),
        ("wait=soon", WAIT_S),
        ("wait=-1", WAIT_S),
        ("wait=²", WAIT_S),
        ("", WAIT_S),
    ],
)
def test_how_long_to_wait(header, seconds):
    """Tests the forms of the header, and that what cannot be read is ignored."""
    assert read(prefer=header).wait_s == seconds


def test_without_headers():
    """Tests what holds where nothing is asked for."""
    found = read()
    assert (found.wait_s, found.fresh, found.key) == (WAIT_S, False, None)
    assert found.applied == {"Preference-Applied": "wait=1"}


def test_a_fresh_answer():
    """Tests that the store can be passed by."""
    assert read(cache_control="max-age=0, No-Cache").fresh


@pytest.mark.parametrize("key", ["", " ", "a b", "ä", "x" * 256])
def test_no_key(key):
    """Tests that an idempotency key that is none is refused."""
    with pytest.raises(Refusal):
        read(idempotency_key=key)
