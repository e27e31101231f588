"""The Python client against answers that are made up: what it sends, when it tries again, what it gives up."""

import asyncio
import json
import time

import httpx
import pytest
from both_clients import FORMS, client
from small_answers import answer
from small_problems import CHAIN

from partita.models.problem import Problem
from partita.service.client import Client, ServiceError, settings, steps
from partita.service.client.steps import Patience
from partita.service.problem_document import INVALID, NOT_FOUND, QUEUE_FULL, Place, Refusal

URL = "http://planner.example:8000"
ANSWER = answer().model_dump_json().encode()
JOB = "6b9b7a5e-0c3f-4f57-9d5f-0f1e2d3c4b5a"
LOCATION = {"Location": f"/v1/plans/{JOB}"}


def job(state="running", **members):
    """Write the document of a job."""
    whole = {"id": JOB, "kind": "plan", "state": state, "batch": None, "name": None, "created_at": "2026-01-01"}
    return {**whole, "started_at": None, "finished_at": None, **members}


def events(*told, cut=False):
    """Write a stream of server-sent events; ``cut`` breaks it off."""

    class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self):
            yield "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in told).encode()
            if cut:
                raise httpx.ReadError("cut")

        async def __aiter__(self):
            for part in self:
                yield part

    return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Stream())


def refused(kind, *places, **headers):
    refusal = Refusal(kind, "because", places)
    return httpx.Response(
        kind.status, content=refusal.document(), headers={"Content-Type": "application/problem+json"} | headers
    )


class Script:
    """A transport that gives prepared responses, one for each request, and notes the requests and the pauses."""

    def __init__(self, *responses):
        self.responses, self.requests, self.pauses = list(responses), [], []

    def __call__(self, request):
        self.requests.append(request)
        response = self.responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response


@pytest.fixture(params=FORMS)
def scripted(request, monkeypatch):
    """Make a client of either form that follows a script, without pauses."""
    made = []

    def make(*responses, **options):
        script = Script(*responses)
        monkeypatch.setattr(time, "sleep", script.pauses.append)
        for module in (steps, settings):
            monkeypatch.setattr(module, "monotonic", lambda: 1000.0 + sum(script.pauses))

        async def sleep(seconds):
            script.pauses.append(seconds)

        monkeypatch.setattr(asyncio, "sleep", sleep)
        made.append(client(request.param, URL, transport=httpx.MockTransport(script), **options))
        return made[-1].__enter__(), script

    yield make
    for each in made:
        each.__exit__(None, None, None)


def test_a_plan_in_one_request(scripted):
    """Tests what is sent: the problem, the key, a name for the request; and that the answer is a model."""
    planner, script = scripted(httpx.Response(200, content=ANSWER, headers=LOCATION), key="secret", retries=0)
    assert planner.plan(CHAIN, fresh=True, include_problem=True) == answer()
    (sent,) = script.requests
    assert (sent.method, str(sent.url)) == ("POST", f"{URL}/v1/plans?include=problem")
    assert json.loads(sent.content) == CHAIN
    assert (sent.headers["authorization"], sent.headers["cache-control"]) == ("Bearer secret", "no-cache")
    assert sent.headers["idempotency-key"] and sent.headers["prefer"] == "wait=1"


def test_a_model_is_sent_as_its_json(scripted):
    """Tests that a problem as a model is written so that the server reads the same problem."""
    planner, script = scripted(httpx.Response(200, content=ANSWER, headers=LOCATION))
    problem = Problem.model_validate(CHAIN)
    planner.plan(problem)
    assert Problem.model_validate_json(script.requests[0].content) == problem


def test_tries_again_with_the_same_key(scripted):
    """Tests that lost connections and full queues are tried again, under one name, not before the server says."""
    full = refused(QUEUE_FULL, **{"Retry-After": "30"})
    gone = httpx.ConnectError("no route")
    planner, script = scripted(gone, full, httpx.Response(200, content=ANSWER, headers=LOCATION))
    planner.plan(CHAIN)
    assert len({sent.headers["idempotency-key"] for sent in script.requests}) == 1
    assert script.pauses[0] < 1 and script.pauses[1] == 30


def test_gives_up(scripted):
    """Tests that a server that stays away ends the call, with the reason."""
    planner, script = scripted(*[httpx.ConnectError("no route")] * 3, retries=2)
    with pytest.raises(ServiceError, match="cannot be reached: no route") as caught:
        planner.plan(CHAIN)
    assert len(script.requests) == 3
    assert (caught.value.document, caught.value.status, caught.value.kind) == (None, None, None)


def test_a_refusal_carries_its_document(scripted):
    """Tests that a refused request is not repeated, and that the error has the places."""
    place = Place(pointer="/training/num_stages", detail="too many", code="bound", value="9")
    planner, script = scripted(refused(INVALID, place))
    with pytest.raises(ServiceError, match="/training/num_stages: too many") as caught:
        planner.plan(CHAIN)
    assert (caught.value.status, caught.value.kind) == (422, "invalid-input")
    assert caught.value.document.errors == (place,)
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (lambda: httpx.Response(502, text="<html>proxy"), "status 502.*proxy"),
        (lambda: httpx.Response(200, text="hello", headers=LOCATION), "the server's Answer cannot be read.*healthz"),
        (lambda: httpx.Response(200, text="<html>hello"), "status 200 and names no job: this is not Partita"),
        (lambda: httpx.Response(202, json={}, headers={"Location": "/"}), "names no job"),
        (lambda: httpx.Response(307, headers={"Location": "https://other/"}), "redirects to 'https://other/'"),
    ],
)
def test_what_is_no_answer_of_partita(scripted, response, words):
    """Tests that other programs at the address, and other versions, are told as such."""
    with pytest.raises(ServiceError, match=words):
        scripted(response())[0].plan(CHAIN)


def accepted():
    return httpx.Response(202, json=job("queued"), headers=LOCATION)


def test_follows_a_job_through_a_broken_stream(scripted):
    """Tests that a stream that breaks is opened again, and that every state is told on the way."""
    done = job("succeeded", answer=json.loads(ANSWER))
    progress = {"phase": "search", "incumbent": 3.0, "best_bound": 2.0, "relative_gap": 0.5, "points": None}
    progress |= {"activity": "searching", "improved_at": "1", "alive_at": "2"}
    beat = {"id": JOB, "state": "running", "progress": progress}
    planner, script = scripted(
        accepted(),
        events(("progress", job()), ("heartbeat", beat), cut=True),
        httpx.Response(200, json=job()),
        events(),
        httpx.Response(200, json=job()),
        events(("progress", job()), ("end", done)),
    )
    told = []
    assert planner.plan(CHAIN, on_progress=told.append) == answer()
    assert [each.progress is not None for each in told] == [False, True, False, False, False]
    assert told[1].created_at == "2026-01-01"
    assert len(script.pauses) == 2


@pytest.mark.parametrize("data", ["", "alive", [1], {"state": "odd"}])
def test_a_heartbeat_that_is_none(scripted, data):
    """Tests that a sign of life that cannot be read ends the call with the reason."""
    stream = events(("progress", job("running")), ("heartbeat", data))
    with pytest.raises(ServiceError, match="the server's JobDocument cannot be read"):
        scripted(accepted(), stream)[0].plan(CHAIN)


@pytest.mark.parametrize("seconds", ["86400", "9" * 400])
def test_a_server_cannot_put_a_client_to_sleep(scripted, seconds):
    """Tests that the longest pause is bounded, whatever the server says."""
    planner, script = scripted(refused(QUEUE_FULL, **{"Retry-After": seconds}), httpx.Response(404))
    with pytest.raises(ServiceError, match="status 404"):
        planner.plan(CHAIN)
    assert script.pauses == [300.0]


@pytest.mark.parametrize("limit", [10**400, -1, float(10**300), "long"])
def test_a_time_limit_that_is_none(scripted, limit):
    """Tests that an evaluation with an impossible time limit is sent, so that the server says what is wrong."""
    planner, _ = scripted(refused(INVALID, Place(pointer="/problem/search", detail="too long", code="bound")))
    with pytest.raises(ServiceError, match="/problem/search: too long"):
        planner.evaluate({**CHAIN, "search": {"time_limit_s": limit}}, {"stage_sizes": [3]})


def test_polls_where_there_are_no_events(scripted):
    """Tests that a job is found to have ended even where its events never come through."""
    done = job("succeeded", answer=json.loads(ANSWER))
    looks = [httpx.Response(200, json=job())] * 8
    broken = [each for look in looks for each in (httpx.ReadTimeout("silent"), look)]
    planner, _ = scripted(*broken, events(), httpx.Response(200, json=done), retries=1)
    assert planner.wait(JOB).answer == answer()


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_job_without_an_answer(scripted, state):
    """Tests that a job that failed raises its reason, and a cancelled one says so."""
    failure = json.loads(Refusal(INVALID, "because").document()) if state == "failed" else None
    planner, _ = scripted(accepted(), events(("end", job(state, failure=failure))))
    with pytest.raises(ServiceError, match="because" if failure else "is cancelled") as caught:
        planner.plan(CHAIN)
    assert caught.value.job == JOB


def test_ends_when_the_caller_says(scripted):
    """Tests that waiting ends in time, names the job, and that no connection may be silent for longer."""
    planner, script = scripted(accepted(), *[httpx.ReadTimeout("silent"), httpx.Response(200, json=job())] * 50)
    with pytest.raises(ServiceError, match=f"job {JOB} goes on") as caught:
        planner.plan(CHAIN, within_s=9)
    assert caught.value.job == JOB
    silent = [sent.extensions["timeout"]["read"] for sent in script.requests]
    assert silent[0] == 9 and silent == sorted(silent, reverse=True) and sum(script.pauses) == pytest.approx(9)


def test_pauses_grow_and_stay_bounded():
    """Tests that pauses double up to a bound, and vary so that clients spread."""
    patience = Patience(99)
    pauses = [next(patience.pause()).seconds for _ in range(20)]
    assert 0.25 <= pauses[0] <= 0.5 and 1 <= pauses[2] <= 2
    assert all(2.5 <= pause <= 5 for pause in pauses[5:]) and len(set(pauses)) > 1


def result(index, name=None):
    whole = {"index": index, "name": name, "job": JOB, "status": "cancelled", "failure": None, "answer": None}
    return json.dumps(whole, ensure_ascii=False) + "\n"


def batch(ended):
    counts = {"total": 3, "queued": 3 - ended, "running": 0, "succeeded": 0, "failed": 0, "cancelled": ended}
    return httpx.Response(200, json={"id": JOB, "created_at": "1", **counts, "forecast": None})


def test_results_come_once(scripted):
    """Tests that results go on where their stream ended early, each given once."""
    planner, _ = scripted(
        httpx.Response(200, text=result(1) + result(0)),
        batch(2),
        httpx.Response(200, text="".join(map(result, (1, 0, 2)))),
        batch(3),
    )
    assert [each.index for each in planner.results(JOB)] == [1, 0, 2]


def test_lines_end_at_line_feeds_alone(scripted):
    """Tests that names may hold characters at which other readers end a line, wherever the network cuts."""
    name = "a\u2028b\x85c\u2029ü"
    content = "".join(result(index, name) for index in range(3)).encode()

    class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self):
            yield from (content[at : at + 7] for at in range(0, len(content), 7))

        async def __aiter__(self):
            for part in self:
                yield part

    planner, _ = scripted(httpx.Response(200, stream=Pieces()), batch(3))
    assert [each.name for each in planner.results(JOB)] == [name] * 3


def test_names_cannot_lead_elsewhere(scripted):
    """Tests that a name of a job stays one part of the path."""
    planner, script = scripted(refused(NOT_FOUND))
    with pytest.raises(ServiceError):
        planner.cancel("../batches/1?x")
    assert script.requests[0].url.raw_path == b"/v1/plans/..%2Fbatches%2F1%3Fx"


def test_a_batch_as_lines(scripted):
    """Tests that names go with their problems, and that a batch is one request however often it is sent."""
    planner, script = scripted(httpx.ReadError("cut"), batch(0), batch(0))
    planner.submit_batch({"one": CHAIN})
    planner.submit_batch([CHAIN])
    first, second, third = script.requests
    assert json.loads(first.content) == {"name": "one", "problem": CHAIN}
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] != third.headers["idempotency-key"]


@pytest.mark.parametrize("url", ["planner.example", "ftp://planner.example", "http://", "http://a:b", ""])
def test_an_address_that_is_none(url):
    """Tests that a wrong address is told before anything is sent."""
    with pytest.raises(ServiceError, match="write http://HOST:PORT"):
        Client(url)


@pytest.mark.parametrize("key", ["", " ", "ü", "a\nb"])
def test_a_key_that_is_none(key):
    """Tests that a key that no header can carry is told, and not shown."""
    with pytest.raises(ServiceError, match="API key"):
        Client(URL, key=key)


def test_what_is_no_json():
    """Tests that a value that JSON lacks is told before anything is sent."""
    with Client(URL) as planner, pytest.raises(ServiceError, match="cannot be written as JSON"):
        planner.plan({"model": float("nan")})
