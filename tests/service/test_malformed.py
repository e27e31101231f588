"""Malformed input of every kind: always a refusal with places, never an error inside."""

import json

import pytest
from cli_calls import partita
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_problems import as_bytes, chain

from partita.models.document import read_json
from partita.models.errors import InvalidInput
from partita.service.outcomes import Answered, Refused
from partita.service.settings import Settings
from partita.service.work import Task, perform

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**53, 2**63, 2**64, -(2**63), 10**30, 10**399, 10**400])
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=8)
    | st.sampled_from(["80GiB", "1e3", "-1B", "node0", "a", "b", "choose", "1f1b", "\u0000", "\ud800", "x" * 300])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def places(value, path=()):
    """Give the path of every value in a document."""
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


PLACES = [path for path in places(chain()) if path]


@st.composite
def broken_problems(draw):
    """A problem that works, with some values replaced, removed, doubled or added."""
    problem = chain(search__time_limit_s=0.2)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(PLACES))
        here = problem
        try:
            for key in path[:-1]:
                here = here[key]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change removed the place
        _change(draw, here, path[-1])
    return problem


def _change(draw, here, key):
    if isinstance(here, dict):
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                here[key] = draw(JSON)
            case "remove":
                here.pop(key, None)
            case _:
                here[draw(st.text(max_size=8))] = draw(JSON)
    elif isinstance(here, list) and here and isinstance(key, int):
        match draw(st.sampled_from(["replace", "remove", "double"])):
            case "replace":
                here[key % len(here)] = draw(JSON)
            case "remove":
                here.pop()
            case _:
                here.append(here[0])


def check(body, kind="plan"):
    outcome = perform(Task(kind, body), Settings(), lambda _: None)
    assert isinstance(outcome, Answered | Refused)
    if isinstance(outcome, Refused):
        assert outcome.faults
        assert sum(len(str(fault)) for fault in outcome.faults) < 100_000
        _check_places(body, outcome)
    return outcome


def _check_places(body, outcome):
    """Check that every pointer leads to a value, or to a place in an object where one is missing."""
    try:
        data = read_json(body)
    except InvalidInput:
        return
    for fault in outcome.faults:
        here = data
        steps = [step.replace("~1", "/").replace("~0", "~") for step in fault.pointer.split("/")[1:]]
        for number, step in enumerate(steps):
            if isinstance(here, list):
                here = here[int(step)]
            else:
                assert isinstance(here, dict), fault
                assert step in here or number == len(steps) - 1, fault
                here = here.get(step)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(broken_problems())
def test_broken_problems(problem):
    """Tests that a problem with something wrong in it is answered or refused, for plans and evaluations."""
    body = json.dumps(problem).encode()
    check(body)
    check(b'{"problem": ' + body + b', "plan": {"stage_sizes": [1, 2]}}', "evaluation")


@settings(max_examples=150, deadline=None, derandomize=True)
@given(JSON)
def test_any_json(value):
    """Tests that any JSON at all is refused."""
    assert isinstance(check(json.dumps(value).encode()), Refused)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.binary(max_size=40)
    | st.text(max_size=40).map(str.encode)
    | st.text('[]{}",:0123eE.-+ntf\\u', max_size=30).map(str.encode)
)
def test_any_bytes(body):
    """Tests that any bytes at all are refused."""
    assert isinstance(check(body), Refused)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(JSON)
def test_any_plan(plan):
    """Tests that any plan that is none is refused."""
    check(json.dumps({"problem": chain(search__time_limit_s=0.2), "plan": plan}).encode(), "evaluation")


LARGE = {
    "wide": as_bytes(chain(model__layers=[{"name": "x"}] * 600_000)),
    "long name": as_bytes(chain(model__name="x" * 10_000_000)),
    "numbers": b'{"model": [' + b"1," * 5_000_000 + b"1]}",
    "deep": b'{"model":' * 1_000_000,
    "keys": json.dumps({str(number): 0 for number in range(700_000)}).encode(),
    "spaces": b" " * 10_000_000,
    "long number": b'{"model": ' + b"9" * 10_000_000 + b"}",
    "escapes": b'{"model": "' + b"\\u0041" * 1_700_000 + b'"}',
}


@pytest.mark.parametrize("body", LARGE.values(), ids=list(LARGE))
def test_ten_megabytes(body):
    """Tests that a large body that is wrong is refused in a short message and in time."""
    assert len(body) > 5_000_000
    assert isinstance(check(body), Refused)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b"NaN", b"\x00", b"\xef\xbb\xbf", b"{" * 70, LARGE["deep"], LARGE["spaces"]]
)
def test_command_line(body):
    """Tests that the command line refuses the same, with exit code 2 and the place."""
    called = partita("plan", "-", stdin=body)
    assert (called.exit_code, called.out) == (2, "")
    assert called.err.startswith("standard input: ")
    assert "Traceback" not in called.err
