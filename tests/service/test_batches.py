"""Batches over a real network."""

import json
import time

import pytest
from batch_calls import JSON, ask_batch, results
from processes import SOON_S, alive, doubled, pid_in, until
from small_problems import as_bytes, chain

LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def napping():
    """A server with two slots whose solves only sleep."""
    with doubled("nap", solves=2) as (_, client):
        yield client


def test_variants_of_a_base(real_client):
    """Tests that patches are applied, names come back, and a bad variant fails alone with its reason."""
    variants = [
        {"name": "one", "patch": {"training": {"num_microbatches": 5}}},
        {"name": "bad", "patch": {"training": {"num_microbatches": 0}}},
        {"patch": {"training": {"num_microbatches": 6}, "search": None}},
    ]
    response = ask_batch(real_client, {"base": chain(), "variants": variants})
    assert response.status_code == 202
    batch = response.json()
    assert response.headers["location"] == f"/v1/batches/{batch['id']}"
    assert (batch["total"], batch["queued"] + batch["running"]) == (3, 3)
    found = results(real_client, batch["id"])
    assert [found[index]["name"] for index in range(3)] == ["one", "bad", None]
    assert [found[index]["status"] for index in range(3)] == ["succeeded", "failed", "succeeded"]
    assert found[1]["answer"] is None
    assert found[1]["failure"]["errors"][0]["pointer"] == "/training/num_microbatches"
    assert found[0]["answer"]["candidates"][0]["num_microbatches"] == 5
    done = real_client.get(f"/v1/batches/{batch['id']}").json()
    assert (done["succeeded"], done["failed"], done["forecast"]) == (2, 1, None)
    job = real_client.get(f"/v1/plans/{found[0]['job']}").json()
    assert (job["batch"], job["name"], job["answer"]) == (batch["id"], "one", found[0]["answer"])


def test_batches_are_listed(napping):
    """Tests that the newest come first, in parts, with the states of their problems and without a forecast."""
    problems = [{"nap_s": 0, "number": number} for number in range(2)]
    names = [ask_batch(napping, {"problems": problems}).json()["id"] for _ in range(3)]
    until(lambda: all(napping.get(f"/v1/batches/{name}").json()["succeeded"] == 2 for name in names))
    first = napping.get("/v1/batches?limit=2").json()
    assert [batch["id"] for batch in first["batches"]] == names[:0:-1]
    assert {(batch["total"], batch["succeeded"], batch["forecast"]) for batch in first["batches"]} == {(2, 2, None)}
    assert napping.get(first["next"]).json()["batches"][0]["id"] == names[0]


def test_lines(real_client):
    """Tests that a batch may come as lines, of which one that cannot be read fails alone."""
    lines = [
        json.dumps(chain(training__num_microbatches=7)),
        "{",
        "",
        json.dumps({"name": "named", "problem": chain(training__num_microbatches=8)}),
        json.dumps({"problem": 3}),
    ]
    found = results(real_client, ask_batch(real_client, "\n".join(lines).encode(), LINES).json()["id"])
    assert [found[index]["status"] for index in range(4)] == ["succeeded", "failed", "succeeded", "failed"]
    assert found[1]["failure"]["type"] == "/docs#not-json"
    assert found[2]["name"] == "named"


def test_problems_as_they_are(real_client):
    """Tests that whole problems may be given, and that every answer has its problem where that is asked for."""
    body = as_bytes({"problems": [chain(training__num_microbatches=9), {"model": 1}]})
    batch = real_client.post("/v1/batches?include=problem", content=body, headers=JSON).json()
    found = results(real_client, batch["id"])
    assert found[0]["answer"]["problem"]["training"]["num_microbatches"] == 9
    assert found[1]["status"] == "failed"


@pytest.mark.parametrize(
    ("body", "headers", "pointer"),
    [
        ({}, JSON, ""),
        ({"problems": []}, JSON, ""),
        ({"problems": [{}], "base": {}}, JSON, ""),
        ({"base": {}}, JSON, ""),
        ({"base": {}, "variants": [{"patch": 1}]}, JSON, "/variants/0/patch"),
        ({"base": {}, "variants": [{"name": "\0", "patch": {}}]}, JSON, "/variants/0/name"),
        (b"\n\n", LINES, ""),
    ],
)
def test_no_batch(real_client, body, headers, pointer):
    """Tests that what is no batch is refused, with the place."""
    response = ask_batch(real_client, body, headers)
    assert response.status_code == 422
    assert [place["pointer"] for place in response.json()["errors"]] == [pointer]


def test_no_such_batch(real_client):
    """Tests that every call about a batch that is not there says so."""
    for name in ("6b9b7a5e-0c3f-4f57-9d5f-0f1e2d3c4b5a", "x"):
        for method, rest in (("GET", ""), ("GET", "/results"), ("DELETE", "")):
            assert real_client.request(method, f"/v1/batches/{name}{rest}").status_code == 404


def test_equal_problems_are_solved_once(tmp_path):
    """Tests that of equal problems one is solved, and that all have its end."""
    with doubled("count", solves=2) as (_, client):
        body = {"count_in": str(tmp_path), "number": 0, "nap_s": 0.2}
        batch = ask_batch(client, {"problems": [body] * 20}).json()
        found = results(client, batch["id"])
        assert {result["status"] for result in found.values()} == {"succeeded"}
        assert len(list(tmp_path.iterdir())) == 1


def test_results_come_while_others_run(napping):
    """Tests that the first results are there before the last problem has ended."""
    body = {"problems": [{"nap_s": 0.1}, {"nap_s": 3}]}
    batch = ask_batch(napping, body).json()
    with napping.stream("GET", f"/v1/batches/{batch['id']}/results") as response:
        first = json.loads(next(response.iter_lines()))
        assert first["index"] == 0
        assert napping.get(f"/v1/batches/{batch['id']}").json()["succeeded"] == 1


def test_a_job_of_its_own_comes_first(napping):
    """Tests that a batch does not hold up the requests of others until its end."""
    batch = ask_batch(napping, {"problems": [{"nap_s": 0.4, "number": number} for number in range(20)]}).json()
    response = napping.post("/v1/plans", content=b'{"nap_s": 0}', headers={**JSON, "Prefer": "wait=30"})
    assert response.status_code == 200
    state = napping.get(f"/v1/batches/{batch['id']}").json()
    assert state["queued"] > 10
    assert napping.delete(f"/v1/batches/{batch['id']}").json()["queued"] == 0


def test_the_forecast_is_near(napping):
    """Tests that the end is forecast from what was measured, and how."""
    naps, each = 24, 0.3
    batch = ask_batch(napping, {"problems": [{"nap_s": each, "number": number} for number in range(naps)]}).json()["id"]
    assert napping.get(f"/v1/batches/{batch}").json()["forecast"]["backlog"] >= naps - 2

    def half_done():
        state = napping.get(f"/v1/batches/{batch}").json()
        return state["succeeded"] >= naps / 2 and state

    forecast = until(half_done)["forecast"]
    begin = time.monotonic()
    assert "fluid queue" in forecast["method"]
    assert forecast["service_per_s"] > forecast["arrival_per_s"]
    results(napping, batch)
    took = time.monotonic() - begin
    assert forecast["remaining_s"] == pytest.approx(took, rel=0.7)


def test_cancel(tmp_path):
    """Tests that what runs of a cancelled batch ends soon, and that what waits never begins."""
    with doubled("loop", solves=1) as (_, client):
        problems = [{"pid_file": str(tmp_path / str(number))} for number in range(50)]
        batch = ask_batch(client, {"problems": problems}).json()["id"]
        pid = pid_in(tmp_path / "0")
        begin = time.monotonic()
        state = client.delete(f"/v1/batches/{batch}").json()
        until(lambda: not alive(pid))
        assert time.monotonic() - begin < SOON_S
        assert (state["cancelled"], state["queued"], state["running"]) == (50, 0, 0)
        time.sleep(0.5)
        assert [path.name for path in tmp_path.iterdir()] == ["0"]
        assert {result["status"] for result in results(client, batch).values()} == {"cancelled"}


def test_a_batch_is_taken_whole_or_not(napping):
    """Tests that a batch for which there is no room is refused, and that a repeated one is the same."""
    with doubled("nap", solves=1, max_queued=10, max_variants=15) as (_, client):
        refused = ask_batch(client, {"problems": [{"number": number} for number in range(12)]})
        assert (refused.status_code, refused.json()["type"]) == (429, "/docs#queue-full")
        refused = ask_batch(client, {"problems": [{}] * 16})
        assert refused.status_code == 422
        assert "at most 15" in refused.json()["errors"][0]["detail"]
    headers = {**JSON, "Idempotency-Key": "batch"}
    first, second = (ask_batch(napping, {"problems": [{"nap_s": 0}]}, headers).json()["id"] for _ in range(2))
    assert first == second
    assert ask_batch(napping, {"problems": [{"nap_s": 1}]}, headers).status_code == 409
