"""Jobs as clients see them, from jobs made by hand."""

import asyncio
import time

import pytest

from partita.service.api import job_calls
from partita.service.api.job_documents import IMPROVING_S, SILENT_S, document_of, event, with_answer
from partita.service.jobs.progress import Progress
from partita.service.jobs.records import Job
from partita.service.solving.talk import Accepted, Beat, Step


def job(**changes):
    """Give a running job."""
    nothing = dict.fromkeys(Job.__dataclass_fields__)
    whole = {"id": "x", "owner": "me", "kind": "plan", "state": "running", "request": "", "created_at": 1.5}
    return Job(**{**nothing, **whole, "attempt": 1, "include_problem": False, "stop_asked": False, **changes})


@pytest.mark.parametrize(
    ("improved", "alive", "activity"),
    [
        (0, 0, "improving"),
        (IMPROVING_S + 5, 0, "searching"),  # alive, but nothing better lately
        (IMPROVING_S + 5, SILENT_S + 1, "silent"),  # stuck
        (SILENT_S - 1, SILENT_S + 1, "silent"),
    ],
)
def test_searching_is_told_from_stuck(improved, alive, activity):
    """Tests that a search that only proves is told apart from one that shows no sign of life."""
    now = time.time()
    progress = document_of(job(phase="proof", improved_at=now - improved, alive_at=now - alive)).progress
    assert (progress.phase, progress.activity) == ("proof", activity)


def test_no_progress_where_nothing_runs():
    """Tests that a job that was not heard of yet, or has ended, shows no progress."""
    assert document_of(job()).progress is None
    assert document_of(job(state="succeeded", alive_at=1.0)).progress is None


def test_moments_are_in_utc():
    """Tests how moments are written."""
    assert document_of(job()).created_at == "1970-01-01T00:00:01.500Z"


def test_the_answer_is_put_in_as_it_is():
    """Tests that the document is JSON with the answer, or null, as its last member."""
    assert with_answer(document_of(job()), b'{"a":1}').endswith(b',"failure":null,"answer":{"a":1}}')
    assert with_answer(document_of(job()), None).endswith(b'"answer":null}')
    assert event("end", b"{}") == b"event: end\ndata: {}\n\n"


def test_what_counts_as_an_improvement():
    """Tests that a better value or bound is one, that another phase and a sign of life are not, and what is news."""
    progress = Progress()
    assert progress.news() is None
    progress.note(Accepted(1.0, None))
    first = progress.news()
    progress.note(Step("search", 2.0, 1.0, 0.5))
    second = progress.news()
    progress.note(Step("proof", 2.0, 1.0, 0.5))
    progress.note(Beat())
    third = progress.news()
    assert progress.news() is None
    assert first["incumbent"] is None and first["improved_at"] <= second["improved_at"]
    assert (third["phase"], third["incumbent"], third["relative_gap"]) == ("proof", 2.0, 0.5)
    assert third["improved_at"] == second["improved_at"]
    assert third["alive_at"] >= second["alive_at"]


def test_a_stream_shows_that_it_lives(monkeypatch):
    """Tests that whoever follows a job that does not change hears of that, until it ends."""
    states = iter([job(phase="search", improved_at=1.0, alive_at=float(second)) for second in range(3)])

    class Jobs:
        closing = False

        async def ahead(self, job):
            return None

        async def answer(self, job):
            return None

        async def get(self, name, owner):
            return next(states, job(state="cancelled"))

    async def told():
        return [text.split(b"\n")[0] async for text in job_calls._events(Jobs(), next(states))]

    monkeypatch.setattr(job_calls, "LOOK_S", 0.0)
    monkeypatch.setattr(job_calls, "BEAT_S", 0.0)
    assert asyncio.run(told()) == [b"event: progress", b"event: heartbeat", b"event: heartbeat", b"event: end"]
