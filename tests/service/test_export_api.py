"""GET /v1/plans/{job}/export/{format}, and the same of fronts, over a real network."""

import json

import pytest
from processes import doubled, until
from small_problems import as_bytes, chain, too_large

JSON = {"Content-Type": "application/json", "Prefer": "wait=30"}


def planned(client, problem):
    """Have a problem planned; give the path of its job."""
    response = client.post("/v1/plans", content=as_bytes(problem), headers=JSON)
    assert response.status_code == 200, response.text
    return response.headers["location"]


@pytest.fixture(scope="module")
def job(real_client):
    """The path of the job of a chain that is not trained."""
    return planned(real_client, chain())


@pytest.mark.parametrize(
    ("format", "media_type", "words"),
    [
        ("torch", "application/json", '"stage_to_rank"'),
        ("torch-orders", "text/csv; charset=utf-8", "0F0,0F1,0F2,0F3\n"),
        ("deepspeed", "text/plain; charset=utf-8", "PARTS = [0, 2, 3]"),
        ("chrome-trace", "application/json", "traceEvents"),
    ],
)
def test_a_plan_is_written(real_client, job, format, media_type, words):
    """Tests texts, their media types, and that they are those of the best plan."""
    response = real_client.get(f"{job}/export/{format}")
    assert (response.status_code, response.headers["content-type"]) == (200, media_type)
    assert words in response.text


def test_another_candidate(real_client, job):
    """Tests the second plan, and one that there is not."""
    assert "PARTS = [0, 1, 3]" in real_client.get(f"{job}/export/deepspeed?candidate=2").text
    response = real_client.get(f"{job}/export/deepspeed?candidate=9")
    assert (response.status_code, response.json()["type"]) == (422, "/docs#not-exportable")
    assert "the answer has 2 candidates, and no number 9" in response.json()["detail"]


def test_a_point_of_a_front(real_client):
    """Tests the plans of two points, one that there is not, and what a format cannot express."""
    body = {"problem": chain(training__num_stages=[1, 2]), "metrics": ["iteration_time_s", "num_devices"]}
    response = real_client.post("/v1/frontiers", content=as_bytes(body), headers=JSON)
    assert [len(point["plan"]["stages"]) for point in response.json()["points"]] == [2, 1]
    path = f"{response.headers['location']}/export"
    assert "PARTS = [0, 2, 3]" in real_client.get(f"{path}/deepspeed").text
    second = real_client.get(f"{path}/torch?candidate=2")
    assert (second.status_code, second.json()["stage_to_rank"]) == (200, [0])
    missing = real_client.get(f"{path}/deepspeed?candidate=3")
    assert (missing.status_code, missing.json()["type"]) == (422, "/docs#not-exportable")
    assert "the front has 2 points, and no number 3" in missing.json()["detail"]
    refused = real_client.get(f"{path}/torchtitan?candidate=2")
    assert [place["pointer"] for place in refused.json()["errors"]] == ["/points/1/plan/schedule"]
    assert real_client.get(f"{path}/perfetto").status_code == 404


@pytest.mark.parametrize(
    ("format", "pointer", "words"),
    [
        ("vllm", "/candidates/0/stages", "vLLM counts transformer layers"),
        ("torchtitan", "/candidates/0/schedule", "torchtitan does not run forward_only"),
    ],
)
def test_what_cannot_be_expressed_is_refused(real_client, job, format, pointer, words):
    """Tests that the reason and the place in the answer are told."""
    response = real_client.get(f"{job}/export/{format}")
    assert (response.status_code, response.json()["type"]) == (422, "/docs#not-exportable")
    assert [place["pointer"] for place in response.json()["errors"]] == [pointer]
    assert words in response.json()["detail"]


def test_without_a_plan(real_client):
    """Tests a problem that has none."""
    response = real_client.get(f"{planned(real_client, too_large())}/export/torch")
    assert (response.status_code, response.json()["type"]) == (422, "/docs#not-exportable")


def test_formats_and_jobs_that_do_not_exist(real_client, job):
    """Tests that the formats are named, and that a job of another kind is none."""
    response = real_client.get(f"{job}/export/perfetto")
    assert response.status_code == 404
    assert "the formats are chrome-trace, contract, deepspeed, megatron" in response.json()["detail"]
    assert real_client.get("/v1/plans/x/export/torch").status_code == 404
    assert real_client.get(job.replace("plans", "frontiers") + "/export/torch").status_code == 404


def test_jobs_without_an_answer():
    """Tests a job that runs, and one that was cancelled."""
    headers = {**JSON, "Prefer": "respond-async"}
    with doubled("nap", solves=1) as (_, client):
        path = client.post("/v1/plans", content=json.dumps({"nap_s": 30}), headers=headers).headers["location"]
        response = client.get(f"{path}/export/torch")
        assert (response.status_code, response.json()["type"]) == (409, "/docs#not-done")
        client.delete(path)
        response = client.get(f"{path}/export/torch")
        assert (response.status_code, response.json()["type"]) == (409, "/docs#cancelled")


def test_a_job_that_failed(real_client):
    """Tests that its own reason is told."""
    headers = {**JSON, "Prefer": "respond-async"}
    path = real_client.post("/v1/plans", content=b"[", headers=headers).headers["location"]
    until(lambda: real_client.get(path).json()["state"] == "failed", 30)
    response = real_client.get(f"{path}/export/torch")
    assert (response.status_code, response.json()["type"]) == (400, "/docs#not-json")
