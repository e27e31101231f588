"""Servers that are killed, and what becomes of what they had taken."""

import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from batch_calls import ask_batch, results
from processes import alive, doubled, doubled_worker, pid_in, until
from survival import killed, survive

from partita.service.jobs.database import FILE

AT_ONCE = {"Content-Type": "application/json", "Prefer": "respond-async"}


def test_a_batch_survives_kill_9(tmp_path):
    """Tests that nothing accepted is lost, nothing recorded twice, and only what was running is begun again."""
    store = {"data": str(tmp_path / "data"), "solves": 2}
    found, begun = survive(tmp_path, store, jobs=12, kills=2, nap_s=0.2, seed=1)
    assert {result["status"] for result in found.values()} == {"succeeded"}
    assert min(begun) >= 1
    assert sum(begun) <= 12 + 2 * 2


@pytest.mark.slow
def test_a_large_batch_survives_ten_kills(tmp_path):
    """Tests the same with a batch of 200 and ten kills at random moments."""
    store = {"data": str(tmp_path / "data"), "solves": 2}
    found, begun = survive(tmp_path, store, jobs=200, kills=10, nap_s=0.05, seed=2)
    assert len(found) == 200
    assert min(begun) >= 1
    assert sum(begun) <= 200 + 10 * 2


def test_a_killed_worker_on_the_same_file(tmp_path):
    """Tests that a server takes over what a worker beside it was solving when it was killed."""
    counts = tmp_path / "counts"
    counts.mkdir()
    store = {"data": str(tmp_path / "data"), "solves": 1}
    problems = [{"nap_s": 0.4, "count_in": str(counts), "number": number} for number in range(8)]
    with doubled("count", **store, lease_s=2.0) as (_, client), doubled_worker("count", **store) as worker:
        batch = ask_batch(client, {"problems": problems}).json()["id"]
        until(lambda: client.get(f"/v1/batches/{batch}").json()["running"] == 2)
        killed(worker)
        found = results(client, batch)
    assert {result["status"] for result in found.values()} == {"succeeded"}
    assert sum(len(list(counts.glob(f"{number}-*"))) for number in range(8)) <= 9


def test_what_was_given_without_a_word_is_done(tmp_path):
    """Tests that a job is solved soon when the queue has given it to a worker that never heard of it.

    So it is after a database went away between writing and saying so. A single such job takes the only place here.
    """
    store = {"data": str(tmp_path / "data"), "solves": 1}
    database = tmp_path / "data" / FILE
    with doubled("nap", **store) as (_, client):
        until(lambda: rows(database, "SELECT slot FROM workers"))
        first = client.post("/v1/plans", content=b'{"nap_s": 1}', headers=AT_ONCE).headers["location"]
        until(lambda: client.get(first).json()["state"] == "running")
        second = client.post("/v1/plans", content=b'{"nap_s": 0}', headers=AT_ONCE).headers["location"]
        job = second.rsplit("/", 1)[1]
        assert client.get(second).json()["state"] == "queued"
        given = "UPDATE workflow_status SET status = 'PENDING', executor_id = (SELECT slot FROM workers)"
        assert rows(database, f"{given} WHERE workflow_uuid = ? AND status = 'ENQUEUED' RETURNING 1", job)
        until(lambda: client.get(second).json()["state"] == "succeeded", 60)


def rows(database, statement, *values):
    """Give what a statement gives in a database of SQLite."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def test_what_was_answered_is_there_after_a_kill(tmp_path):
    """Tests that answers of 200 and jobs of 202, also those solved past the queue, outlive the server at once."""
    store = {"data": str(tmp_path / "data"), "solves": 1}
    path = tmp_path / "pid"
    with doubled("nap", **store) as (process, client):
        headers = {**AT_ONCE, "Prefer": "wait=30"}
        answered = client.post("/v1/plans", content=b'{"nap_s": 0}', headers=headers)
        direct = client.post(
            "/v1/plans",
            content=json.dumps({"nap_s": 1.5, "pid_file": str(path)}),
            headers={**AT_ONCE, "Prefer": "wait=1"},
        )
        waiting = client.post("/v1/plans", content=b'{"nap_s": 0.1}', headers=AT_ONCE)
        killed(process)
    assert (answered.status_code, direct.status_code, waiting.status_code) == (200, 202, 202)
    until(lambda: not alive(pid_in(path)))
    with doubled("nap", **store) as (_, client):
        assert client.get(answered.headers["location"]).json()["answer"] == answered.json()
        for job in (direct, waiting):
            location = job.headers["location"]
            done = until(lambda at=location: (found := client.get(at).json())["state"] == "succeeded" and found)
            assert done["answer"] == {"napped": True}


def test_a_server_that_stops_lets_its_jobs_wait(tmp_path):
    """Tests that a server that is told to stop gives back what it was solving, and ends soon."""
    store = {"data": str(tmp_path / "data"), "solves": 1, "shutdown_s": 1}
    first, second = tmp_path / "first", tmp_path / "second"
    with doubled("loop", **store) as (process, client):
        queued = client.post("/v1/plans", content=json.dumps({"pid_file": str(first)}), headers=AT_ONCE)
        pid = pid_in(first)
        waiting = client.post("/v1/plans", content=json.dumps({"pid_file": str(second)}), headers=AT_ONCE)
        begin = time.monotonic()
        process.terminate()
        process.wait(15)
        assert time.monotonic() - begin < 10
        assert not alive(pid)
    with doubled("nap", **store) as (_, client):
        for job in (queued, waiting):
            location = job.headers["location"]
            until(lambda at=location: client.get(at).json()["state"] == "succeeded")


def test_who_waits_while_a_server_stops_gets_the_job(tmp_path):
    """Tests that a request that waits is answered with its job when the server is told to stop."""
    store = {"data": str(tmp_path / "data"), "solves": 1}
    path = tmp_path / "pid"
    with doubled("loop", **store) as (process, client), ThreadPoolExecutor(1) as pool:
        body, headers = json.dumps({"pid_file": str(path)}), {**AT_ONCE, "Prefer": "wait=30"}
        waiting = pool.submit(client.post, "/v1/plans", content=body, headers=headers)
        pid_in(path)
        process.terminate()
        response = waiting.result(10)
    assert response.status_code == 202
    with doubled("nap", **store) as (_, client):
        until(lambda: client.get(response.headers["location"]).json()["state"] == "succeeded")


@pytest.mark.parametrize("double", ["crash", "hog", "error"])
def test_a_solve_that_goes_wrong_fails_alone(double):
    """Tests that a crash, too much memory or an error costs one job of the queue, and that the next one runs."""
    with doubled(double, solves=1, solve_memory_bytes=2 * 2**30) as (_, client):
        locations = [
            client.post("/v1/plans", content=json.dumps({"number": number}), headers=AT_ONCE).headers["location"]
            for number in range(2)
        ]
        for location in locations:
            job = until(lambda at=location: (found := client.get(at).json())["state"] == "failed" and found)
            assert job["failure"]["status"] in (422, 500)
        assert client.get("/readyz").status_code == 200
