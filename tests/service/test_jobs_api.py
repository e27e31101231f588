"""Jobs over a real network: asked for, followed, stopped, cancelled, found again."""

import gzip
import json
import time

import pytest
from processes import SOON_S, alive, doubled, pid_in, until
from small_problems import as_bytes, chain

from hard_problem import hard_problem

JSON = {"Content-Type": "application/json"}
AT_ONCE, PATIENT = {**JSON, "Prefer": "respond-async"}, {**JSON, "Prefer": "wait=30"}


@pytest.fixture(scope="module")
def napping():
    """A server with one slot whose solves only sleep."""
    with doubled("nap", solves=1) as (_, client):
        yield client


def ask(client, body, headers=AT_ONCE, kind="plans"):
    return client.post(f"/v1/{kind}", content=as_bytes(body), headers=headers)


def look(client, job):
    return client.get(f"/v1/plans/{job}").json()


def ended(client, job):
    """Wait until a job has ended."""
    return until(lambda: (found := look(client, job))["state"] not in ("queued", "running") and found)


def test_a_job_is_answered_later(napping):
    """Tests that a request that does not wait gets a job, and that the job gets its answer."""
    response = ask(napping, {"nap_s": 0.2})
    job = response.json()
    assert response.status_code == 202
    assert response.headers["location"] == f"/v1/plans/{job['id']}"
    assert int(response.headers["retry-after"]) >= 1
    assert (job["state"], job["answer"]) == ("queued", None)
    found = ended(napping, job["id"])
    assert (found["state"], found["answer"]) == ("succeeded", {"napped": True})
    assert found["created_at"] <= found["started_at"] <= found["finished_at"]


def test_waits_as_long_as_it_should(napping):
    """Tests that a request waits for a second unless it says otherwise, and says how long it waited."""
    begin = time.monotonic()
    response = ask(napping, {"nap_s": 60}, JSON)
    assert 0.9 < time.monotonic() - begin < 1 + SOON_S
    assert (response.status_code, response.headers["preference-applied"]) == (202, "wait=1")
    napping.delete(response.headers["location"])
    assert ask(napping, {"nap_s": 0.5}, PATIENT).status_code == 200


def test_jobs_wait_for_each_other(napping):
    """Tests that a job that waits says how many come before it, and that they are done in their order."""
    names = [ask(napping, {"nap_s": 0.3, "number": number}).json()["id"] for number in range(4)]
    waiting = [look(napping, name) for name in names]
    assert waiting[3]["ahead"] in (2, 3)
    finished = [ended(napping, name)["finished_at"] for name in names]
    assert finished == sorted(finished)


def test_the_same_key_is_the_same_job(napping):
    """Tests that a repeated request is done once, and that another one under its key is refused."""
    headers = {**AT_ONCE, "Idempotency-Key": "one"}
    first, second = (ask(napping, {"nap_s": 0.1}, headers).json()["id"] for _ in range(2))
    assert first == second
    for other in (ask(napping, {"nap_s": 0.2}, headers), ask(napping, {"nap_s": 0.1}, headers, "frontiers")):
        assert (other.status_code, other.json()["type"]) == (409, "/docs#key-reused")
    refused = ask(napping, {}, {**AT_ONCE, "Idempotency-Key": "no spaces"})
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "Idempotency-Key")


def test_jobs_are_listed(napping):
    """Tests that the newest come first, in parts, by their state, and fronts apart from plans."""
    names = [ask(napping, {"nap_s": 0, "number": number}).json()["id"] for number in range(3)]
    for name in names:
        ended(napping, name)
    first = napping.get("/v1/plans?limit=2&state=succeeded").json()
    assert [job["id"] for job in first["jobs"]] == names[:0:-1]
    second = napping.get(first["next"]).json()
    assert second["jobs"][0]["id"] == names[0]
    assert napping.get("/v1/plans?state=failed").json() == {"jobs": [], "next": None}
    assert not {job["id"] for job in napping.get("/v1/frontiers").json()["jobs"]} & set(names)


def test_a_job_with_its_problem(real_client):
    """Tests that the problem is in the answer of a job that is asked for with it, and only then."""
    path = real_client.post("/v1/plans", content=as_bytes(chain()), headers=PATIENT).headers["location"]
    assert real_client.get(path).json()["answer"]["problem"] is None
    assert real_client.get(f"{path}?include=problem").json()["answer"]["problem"]["model"]["name"] == "three"


@pytest.mark.parametrize("name", ["6b9b7a5e-0c3f-4f57-9d5f-0f1e2d3c4b5a", "x", "%00"])
def test_no_such_job(napping, name):
    """Tests that every call about a job that is not there says so."""
    for method, rest in (("GET", ""), ("GET", "/events"), ("POST", "/stop"), ("DELETE", "")):
        response = napping.request(method, f"/v1/plans/{name}{rest}")
        assert (response.status_code, response.json()["type"]) == (404, "/docs#not-found")


def test_a_front_is_no_plan(napping):
    """Tests that a job is found under its own kind only."""
    job = ask(napping, {}, AT_ONCE, "frontiers").json()["id"]
    assert napping.get(f"/v1/frontiers/{job}").status_code == 200
    assert napping.get(f"/v1/plans/{job}").status_code == 404


def test_cancel_ends_the_process_soon(tmp_path):
    """Tests that jobs that run, in the queue's turn or at once, and that wait can be cancelled, deaf as they may be."""
    with doubled("loop", solves=1) as (process, client):
        for number, headers in enumerate((AT_ONCE, JSON)):
            path = tmp_path / str(number)
            job = ask(client, {"pid_file": str(path)}, headers).json()["id"]
            pid = pid_in(path)
            waiting = ask(client, {}).json()["id"]
            begin = time.monotonic()
            assert client.delete(f"/v1/plans/{job}").json()["state"] == "cancelled"
            until(lambda pid=pid: not alive(pid))
            assert time.monotonic() - begin < SOON_S
            assert client.delete(f"/v1/plans/{waiting}").json()["state"] == "cancelled"
            assert client.delete(f"/v1/plans/{job}").json()["state"] == "cancelled"
            assert look(client, job)["state"] == "cancelled"
    assert "Traceback" not in "".join(process.log)


def test_a_full_queue_takes_no_more():
    """Tests that more jobs than may wait are refused, with the limit and when to come back."""
    with doubled("nap", solves=1, max_queued=2) as (_, client):
        answers = [ask(client, {"nap_s": 20, "number": number}) for number in range(6)]
        refused = answers[-1]
        assert (refused.status_code, refused.json()["type"]) == (429, "/docs#queue-full")
        assert "the 2 jobs that may wait" in refused.json()["detail"]
        assert int(refused.headers["retry-after"]) >= 1


def test_failures_are_kept(real_client):
    """Tests that a job that is refused has failed, with the same document as a request that waits gets."""
    body = chain(training__num_microbatches=0)
    found = ended(real_client, ask(real_client, body).json()["id"])
    assert (found["state"], found["answer"], found["failure"]["status"]) == ("failed", None, 422)
    assert found["failure"]["errors"][0]["pointer"] == "/training/num_microbatches"
    response = ask(real_client, body, PATIENT)
    assert response.status_code == 422
    assert response.json()["errors"] == found["failure"]["errors"]


def test_equal_requests_are_answered_from_the_store(real_client):
    """Tests that a problem is solved once, however it is written, unless a fresh answer is asked for."""
    body = chain(model__name="stored")
    first = ask(real_client, body, PATIENT)
    assert "age" not in first.headers
    again = ask(real_client, body)
    assert (again.status_code, again.json()) == (200, first.json())
    assert 0 <= int(again.headers["age"]) < 60
    assert again.headers["location"] == first.headers["location"]
    body["cluster"]["devices"]["d"]["memory_bytes"] = 10**9
    otherwise = ask(real_client, body, PATIENT)
    assert otherwise.json()["solver"] == first.json()["solver"]  # the effort of another solve would differ
    fresh = ask(real_client, body, {**PATIENT, "Cache-Control": "no-cache"})
    assert "age" not in fresh.headers
    with_problem = real_client.post("/v1/plans?include=problem", content=as_bytes(body), headers=AT_ONCE)
    assert with_problem.json()["problem"]["model"]["name"] == "stored"
    keyed = ask(real_client, body, {**AT_ONCE, "Idempotency-Key": "stored"})
    assert keyed.headers["location"] != first.headers["location"]
    assert look(real_client, keyed.headers["location"].rsplit("/", 1)[1])["state"] == "succeeded"


def test_stop_keeps_the_best_plan(real_client):
    """Tests that a running search shows how far it is, and ends with its best plan when it is stopped."""
    job = ask(real_client, hard_problem()).json()["id"]
    running = until(lambda: (found := look(real_client, job))["progress"] and found["progress"]["incumbent"] and found)
    progress = running["progress"]
    assert progress["activity"] == "improving"
    assert progress["phase"] and progress["alive_at"] >= progress["improved_at"]
    assert real_client.post(f"/v1/plans/{job}/stop").status_code in (200, 202)
    found = ended(real_client, job)
    assert (found["state"], found["answer"]["status"]) == ("succeeded", "feasible")
    assert len(found["answer"]["candidates"]) == 1
    assert real_client.post(f"/v1/plans/{job}/stop").status_code == 200  # once more does no harm
    again = ask(real_client, hard_problem(), AT_ONCE)
    assert again.status_code == 202  # what was stopped early is no answer for others
    real_client.delete(again.headers["location"])


def events_of(client, job):
    """Give the names and the data of a job's events."""
    with client.stream("GET", f"/v1/plans/{job}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        name = None
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                yield name, json.loads(value)


def test_events_tell_of_a_job(real_client):
    """Tests that whoever follows a job sees it begin, improve and end with its answer."""
    job, told = ask(real_client, hard_problem(time_limit_s=60)).json()["id"], []
    for event in events_of(real_client, job):
        told.append(event)
        if event[1]["progress"] and event[1]["progress"]["incumbent"]:
            real_client.post(f"/v1/plans/{job}/stop")
    names = [name for name, _ in told]
    assert names[-1] == "end" and "progress" in names[:-1] and set(names[:-1]) <= {"progress", "heartbeat"}
    states = [data["state"] for _, data in told]
    assert states[-1] == "succeeded" and "running" in states
    assert any(data["progress"] and data["progress"]["incumbent"] for _, data in told[:-1])
    assert told[-1][1]["answer"]["status"] == "feasible"
    assert [name for name, _ in events_of(real_client, told[-1][1]["id"])] == ["end"]


def test_fronts_are_jobs_too(real_client):
    """Tests that a front is found, followed, stored and stopped like a plan."""
    body = {"problem": chain(model__name="front"), "metrics": ["iteration_time_s", "peak_memory_bytes"]}
    job = ask(real_client, body, AT_ONCE, "frontiers").json()
    assert job["kind"] == "frontier"
    path = f"/v1/frontiers/{job['id']}"
    found = until(lambda: (state := real_client.get(path).json())["state"] == "succeeded" and state)
    assert found["answer"]["status"] == "complete"
    again = ask(real_client, body, AT_ONCE, "frontiers")
    assert (again.status_code, again.json()) == (200, found["answer"])
    fewer = ask(real_client, {**body, "points": 2}, PATIENT, "frontiers")  # another request: it has its own answer
    assert "age" not in fewer.headers
    hard = ask(real_client, {**body, "problem": hard_problem()}, AT_ONCE, "frontiers").json()["id"]
    path = f"/v1/frontiers/{hard}"
    until(lambda: (real_client.get(path).json()["progress"] or {}).get("points") is not None)
    assert real_client.post(f"{path}/stop").status_code in (200, 202)
    stopped = until(lambda: (state := real_client.get(path).json())["state"] == "succeeded" and state)
    assert stopped["answer"]["status"] in ("partial", "no_solution")


def test_compressed_bodies(real_client, napping):
    """Tests that gzip is understood, and that what it unpacks to is bounded."""
    body = gzip.compress(as_bytes(chain(model__name="compressed")))
    packed = {**PATIENT, "Content-Encoding": "gzip"}
    assert real_client.post("/v1/plans", content=body, headers=packed).json()["status"] == "optimal"
    for broken in (body[:-10], b"{}", body + b"x"):
        assert real_client.post("/v1/plans", content=broken, headers=packed).status_code == 415
    bomb = gzip.compress(bytes(200 * 2**20))
    assert len(bomb) < 2**20
    response = real_client.post("/v1/plans", content=bomb, headers=packed)
    assert (response.status_code, response.json()["type"]) == (413, "/docs#body-too-large")


def test_ready(real_client):
    """Tests that a server that can solve says so."""
    assert real_client.get("/readyz").json()["status"] == "ok"


def test_not_ready_without_a_worker(make_app):
    """Tests that a server whose worker does not run is alive, but not ready."""
    from api_calls import call, document_in

    response = call(make_app(), "GET", "/readyz", headers={})
    document_in(response, 503, "not-ready")
    assert "retry-after" in response.headers
