"""Tests of the fluid queue."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.models.queueing import backlog, drain_s

AMOUNTS = st.integers(0, 10**9).map(lambda number: number / 1000)


@pytest.mark.parametrize(
    ("start", "arrival", "service", "after", "waits"),
    [
        (4, 4, 3, 1, 5),  # one more arrives than is done
        (4, 2, 3, 1, 3),
        (4, 2, 3, 4, 0),  # just worked off
        (4, 2, 3, 9, 0),  # and never below zero
        (0, 2, 3, 1, 0),
        (4, 3, 3, 100, 4),
        (4, 4, 3, 0, 4),
    ],
)
def test_a_backlog_grows_by_what_is_not_done(
    start: float, arrival: float, service: float, after: float, waits: float
) -> None:
    """Tests cases worked out by hand."""
    assert backlog(start, arrival, service, after) == waits


@pytest.mark.parametrize(
    ("start", "arrival", "service", "seconds"),
    [
        (4, 2, 3, 4),
        (4, 0, 8, 0.5),
        (4, 4, 3, None),
        (4, 3, 3, None),
        (4, 0, 0, None),
        (0, 4, 3, 0),  # nothing waits now, though it will
        (0, 0, 0, 0),
    ],
)
def test_a_backlog_is_worked_off_or_never(start: float, arrival: float, service: float, seconds: float | None) -> None:
    """Tests cases worked out by hand."""
    assert drain_s(start, arrival, service) == seconds


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_nothing_waits_once_it_is_worked_off(start: float, arrival: float, service: float) -> None:
    """Tests that both functions agree, to rounding, and that half the backlog is left after half the time."""
    seconds = drain_s(start, arrival, service)
    if seconds is None:
        assert backlog(start, arrival, service, 1e6) >= start
    else:
        assert backlog(start, arrival, service, seconds) <= 1e-9 * start
        assert backlog(start, arrival, service, seconds / 2) == pytest.approx(start / 2, rel=1e-9)


@pytest.mark.parametrize("wrong", [-1.0, inf, -inf, nan])
@pytest.mark.parametrize("name", ["start", "arrival_per_s", "service_per_s", "after_s"])
def test_values_that_make_no_sense_are_refused(name: str, wrong: float) -> None:
    """Tests that the message names the value."""
    values = {"start": 1.0, "arrival_per_s": 1.0, "service_per_s": 1.0, "after_s": 1.0, name: wrong}
    with pytest.raises(ValueError, match=f"{name} must be a finite number, at least 0, not {wrong}"):
        backlog(**values)
    if name != "after_s":
        del values["after_s"]
        with pytest.raises(ValueError, match=name):
            drain_s(**values)
