"""What Prometheus is told: requests, waits, solves, gaps, hits, failures, and the queue."""

import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from api_calls import call, plan
from processes import ROOT
from prometheus_client.parser import text_string_to_metric_families
from small_problems import as_bytes, chain
from solve_doubles import crash

from partita.service.metrics import Metrics, size_class


def figures(app):
    """Ask for the figures; give those that are not zero by their names and sorted labels, as Prometheus reads them."""
    response = call(app, "GET", "/metrics")
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(response.text)
    samples = [sample for family in families for sample in family.samples]
    return {
        (each.name, *(label for _, label in sorted(each.labels.items()))): each.value for each in samples if each.value
    }


def test_what_a_plan_leaves(make_app):
    """Tests that a solve is counted by schedule and size, with its wait and its gap, and a repeated one as a hit."""
    app = make_app()
    for problem in (chain(), chain(), chain(search__seed=0)):
        assert plan(app, as_bytes(problem)).status_code == 200
    found = figures(app)
    assert found["partita_solve_seconds_count", "plan", "up to 32", "forward_only"] == 1
    assert found["partita_wait_seconds_count", "plan"] == 2
    assert found["partita_relative_gap_bucket", "0.0", "forward_only"] == 1
    assert found["partita_solves_ended_total", "plan", "optimal"] == 1
    assert (found["partita_cache_hits_total", "request"], found["partita_cache_hits_total", "problem"]) == (1, 1)
    assert found["partita_requests_total", "POST", "/v1/plans", "200"] == 3
    assert found["partita_request_seconds_count", "/v1/plans"] == 3
    assert (found["partita_store_up",], found["partita_workers",]) == (1, 1)


def test_failures(make_app):
    """Tests that failed jobs are counted by the kind of problem."""
    app = make_app(crash)
    assert plan(app, b"{}").status_code == 500
    found = figures(app)
    assert found["partita_failures_total", "solve-crashed"] == 1
    assert found["partita_solves_ended_total", "plan", "crashed"] == 1


def test_the_queue(make_app):
    """Tests that jobs that wait are counted in the store, and for how long the oldest has."""
    app = make_app()
    for seed in range(3):
        body = as_bytes(chain(search__seed=seed))
        headers = {"Content-Type": "application/json", "Prefer": "respond-async"}
        assert plan(app, body, headers=headers).status_code == 202
    found = figures(app)
    assert found["partita_jobs", "queued"] == 3
    assert 0 < found["partita_oldest_queued_seconds",] < 60


def test_labels_are_few(make_app):
    """Tests that paths and methods that somebody makes up are one label each."""
    app = make_app()
    for number in range(5):
        call(app, "GET", f"/nothing/{number}")
        call(app, "GET", f"/v1/plans/{number}")
        call(app, f"ODD{number}", "/healthz")
    found = {key: value for key, value in figures(app).items() if key[0] == "partita_requests_total"}
    assert {key[1:]: value for key, value in found.items()} == {
        ("GET", "other", "404"): 5,
        ("GET", "/v1/plans/{job}", "404"): 5,
        ("other", "/healthz", "405"): 5,
    }


def test_a_store_that_is_away(make_app):
    """Tests that the figures of the process are told even while the store is away."""
    app = make_app()
    assert figures(app)["partita_workers",] == 1

    async def away():
        return None

    app.state.jobs.census = away
    assert ("partita_store_up",) not in figures(app)


@pytest.mark.parametrize(("layers", "name"), [(0, "other"), (1, "up to 32"), (33, "up to 128"), (5000, "over 2048")])
def test_size_classes(layers, name):
    """Tests the bounds of the classes."""
    assert size_class(layers) == name


def test_processes_count_on_their_own():
    """Tests that two sets of figures in one process know nothing of each other."""
    first, second = Metrics(), Metrics()
    first.failed("solve-crashed")
    assert b'kind="solve-crashed"' in first.text(None) and b'kind="solve-crashed"' not in second.text(None)


def test_a_worker_has_figures_of_its_own(tmp_path):
    """Tests that a worker answers Prometheus on a port, until it ends."""
    options = ["--data", str(tmp_path), "--metrics-port", "0"]
    command = [sys.executable, "-m", "partita.service", "worker", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        url = re.search(r"http://\S+", process.stdout.readline())[0]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=10) as response:
            assert b"partita_solve_seconds" in response.read()
        assert process.stdout.readline().startswith("Partita works on jobs as ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read()
