"""``plan``, ``frontier`` and ``evaluate`` with ``--server``: as without it, and what happens on Ctrl-C."""

import json
import signal
import subprocess
import sys

import httpx
import pytest
from cli_calls import partita
from processes import ROOT, doubled, until
from small_answers import PROBLEM
from small_problems import chain, too_large

from partita.service import client as clients
from partita.service.client import Client, steps
from partita.service.commands.progress import describe_job
from partita.service.replies import JobDocument


@pytest.fixture
def server(real_client):
    return ("--server", str(real_client.base_url))


def effortless(text):
    """Give an answer without what tells the effort."""
    return {name: value for name, value in json.loads(text).items() if name != "solver"}


@pytest.mark.parametrize("command", ["plan", "frontier"])
@pytest.mark.parametrize("problem", [chain(), too_large()])
def test_the_same_as_without(file, server, command, problem):
    """Tests that report, JSON and exit code are those of the command that works here."""
    name = file(problem)
    here, there = partita(command, name), partita(command, name, *server)
    assert (there.exit_code, there.out, there.err) == (here.exit_code, here.out, here.err)
    here, there = partita(command, name, "--json"), partita(command, name, "--json", *server)
    assert effortless(there.out) == effortless(here.out)


def test_evaluate_the_same_as_without(file, server, tmp_path):
    """Tests that a plan is priced alike, also where it is at fault, and written with its problem."""
    name, output = file(chain()), tmp_path / "answer.json"
    good, bad = file({"stage_sizes": [1, 2]}, "plan.json"), file({"stage_sizes": [1, 1]}, "bad.json")
    for plan in (good, bad):
        here, there = partita("evaluate", name, plan), partita("evaluate", name, plan, *server)
        assert (there.exit_code, there.out, there.err) == (here.exit_code, here.out, here.err)
    assert partita("evaluate", name, good, "-o", str(output), *server).exit_code == 0
    assert json.loads(output.read_text())["problem"]["model"]["name"] == "three"


@pytest.mark.parametrize("command", ["plan", "frontier"])
def test_a_limit_of_the_server(file, server, command):
    """Tests that what only the server refuses is told with the file and the place."""
    name = file(chain(search__time_limit_s=601))
    refused = partita(command, name, *server)
    assert refused.exit_code == 2
    assert f"{name}: /search/time_limit_s: 601 seconds; this server allows at most 600" in refused.err


def test_no_server(file, monkeypatch):
    """Tests that a server that is not there is told in one line."""
    monkeypatch.setattr(steps, "FIRST_PAUSE_S", 0.001)
    called = partita("plan", file(chain()), "--server", "http://127.0.0.1:9")
    assert called.exit_code == 1
    assert called.err.startswith("partita: the server cannot be reached: ") and called.err.count("\n") == 1


@pytest.mark.parametrize(("option", "variable"), [(("--key", "secret"), None), ((), "secret")])
def test_the_key(file, monkeypatch, option, variable):
    """Tests that the key is sent, from the command line or the environment."""
    sent = []

    def answer(request):
        sent.append(request.headers["authorization"])
        return httpx.Response(418)

    transport = httpx.MockTransport(answer)
    monkeypatch.setattr(clients, "Client", lambda url, key: Client(url, key=key, transport=transport))
    if variable:
        monkeypatch.setenv("PARTITA_KEY", variable)
    assert partita("plan", file(chain()), "--server", "http://planner.example", *option).exit_code == 1
    assert sent == ["Bearer secret"]


def test_no_key(file, monkeypatch):
    """Tests that a command that a server refuses for want of a key says how to give it one."""
    refusal = {"type": "/docs#no-key", "title": "No valid API key", "status": 401, "detail": "send an API key"}
    refusal |= {"instance": "urn:uuid:1", "request_id": "1", "errors": []}
    headers = {"Content-Type": "application/problem+json"}
    transport = httpx.MockTransport(lambda request: httpx.Response(401, json=refusal, headers=headers))
    monkeypatch.setattr(clients, "Client", lambda url, key: Client(url, key=key, transport=transport))
    result = partita("plan", file(chain()), "--server", "http://planner.example")
    assert (result.exit_code, "PARTITA_KEY or --key" in result.err) == (1, True)


def start(http, name):
    """Begin a command that follows a job, and wait until the job runs."""
    command = [sys.executable, "-m", "partita.service", "plan", name, "--json", "--server", str(http.base_url)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    until(lambda: states(http)[:1] == ["running"], 30)
    return process


def states(http):
    return [job["state"] for job in http.get("/v1/plans").json()["jobs"]]


@pytest.fixture(scope="module")
def paced():
    """A server whose solves go on until they are stopped."""
    with doubled("paced") as (_, http):
        yield http


def test_interrupt_keeps_the_best(paced, file):
    """Tests that Ctrl-C ends the search, and that its plan is printed."""
    with start(paced, file(chain(search__time_limit_s=60))) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, json.loads(out)["status"]) == (0, "feasible")
        assert "Ctrl-C again cancels" in err and "Traceback" not in err
        assert states(paced)[0] == "succeeded"


def test_second_interrupt_cancels(paced, file):
    """Tests that Ctrl-C again cancels a job that does not stop."""
    with start(paced, file(chain(model__name="deaf"))) as process:
        process.send_signal(signal.SIGINT)
        assert "Ctrl-C again cancels" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (130, "", "")
        assert states(paced)[0] == "cancelled"


def job(state="running", ahead=None, **progress):
    """Make a job as the client sees it."""
    whole = {"phase": "search", "incumbent": 2.0, "best_bound": 1.5, "relative_gap": 0.25, "points": None}
    whole |= {"activity": "improving", "improved_at": "2026-01-01T00:00:00.000Z", "alive_at": "2026-01-01T00:00:42Z"}
    known = {"id": "1", "kind": "plan", "batch": None, "name": None, "created_at": "", "started_at": None}
    return JobDocument.model_validate(
        {
            **known,
            "finished_at": None,
            "state": state,
            "ahead": ahead,
            "progress": {**whole, **progress} if progress else None,
        }
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (job("queued", 3), "queued behind 3 jobs"),
        (job(), "reading"),
        (job(phase="prove"), "prove, best 2 s, bound 1.5 s, gap 25.0 %"),
        (job(activity="searching"), "search, best 2 s, bound 1.5 s, gap 25.0 %, alive, nothing better for 42 s"),
        (job(activity="silent", incumbent=None, best_bound=None, relative_gap=None), "search, no sign of life; it is"),
    ],
)
def test_words_for_progress(told, words):
    """Tests that a job that only lives is told apart from one that shows no sign of life."""
    assert describe_job(told, PROBLEM).replace(".000", "").replace("1.500", "1.5").startswith(words)


def test_words_for_a_front():
    """Tests that a front tells how many points it has."""
    told = job(points=3, incumbent=None, best_bound=None, relative_gap=None)
    assert describe_job(told, PROBLEM, 20) == "3 points, 20 at most"
