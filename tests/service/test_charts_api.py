"""GET /v1/plans/{job}/charts/{name} and the same of fronts, over a real network."""

import json

import pytest
from processes import doubled
from small_problems import as_bytes, chain, too_large

from partita.service.charts.names import CHARTS, charts_of

JSON = {"Content-Type": "application/json", "Prefer": "wait=30"}


def planned(client, path, problem):
    """Have a problem planned; give the path of its job."""
    response = client.post(path, content=as_bytes(problem), headers=JSON)
    assert response.status_code == 200, response.text
    return response.headers["location"]


@pytest.fixture(scope="module")
def job(real_client):
    """The path of the job of a chain that is not trained."""
    return planned(real_client, "/v1/plans", chain())


@pytest.fixture(scope="module")
def front(real_client):
    """The path of the job of a front."""
    return planned(real_client, "/v1/frontiers", {"problem": chain(), "points": 3})


@pytest.mark.parametrize("name", charts_of("plan"))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_a_plan(real_client, job, name, theme):
    """Tests that every picture is a specification with a description, in either theme."""
    response = real_client.get(f"{job}/charts/{name}?theme={theme}")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    spec = response.json()
    assert spec["description"]
    assert (spec["background"] == "#ffffff") == (theme == "light")


@pytest.mark.parametrize("name", charts_of("frontier"))
def test_pictures_of_a_front(real_client, front, name):
    """Tests the same of a front."""
    assert real_client.get(f"{front}/charts/{name}").json()["description"]


def test_another_candidate(real_client, job):
    """Tests the second plan, and one that there is not."""
    first, second = (real_client.get(f"{job}/charts/layers?candidate={number}").json() for number in (1, 2))
    assert first["title"] != second["title"] or first["layer"] != second["layer"]
    response = real_client.get(f"{job}/charts/layers?candidate=9")
    assert (response.status_code, response.json()["type"]) == (422, "/docs#not-drawable")
    assert "there are 2 candidates, and no number 9" in response.json()["detail"]


def test_what_cannot_be_drawn_is_refused(real_client, job):
    """Tests a scenario that there is not, a theme that there is not, and a problem without a plan."""
    response = real_client.get(f"{job}/charts/timeline?scenario=long")
    assert (response.status_code, response.json()["type"]) == (422, "/docs#not-drawable")
    assert [place["pointer"] for place in response.json()["errors"]] == ["/problem/scenarios"]
    response = real_client.get(f"{job}/charts/timeline?theme=blue")
    assert response.json()["errors"][0]["parameter"] == "theme"
    response = real_client.get(f"{planned(real_client, '/v1/plans', too_large())}/charts/memory")
    assert (response.status_code, response.json()["type"]) == (422, "/docs#not-drawable")


def test_charts_and_jobs_that_do_not_exist(real_client, job, front):
    """Tests that the charts are named, and that a job of another kind is none."""
    response = real_client.get(f"{job}/charts/pie")
    assert response.status_code == 404
    assert f"the charts are {', '.join(charts_of('plan'))}" in response.json()["detail"]
    assert real_client.get("/v1/plans/x/charts/memory").status_code == 404
    assert real_client.get(f"{job.replace('plans', 'frontiers')}/charts/memory").status_code == 404


def test_jobs_without_an_answer():
    """Tests a job that runs, and one that was cancelled."""
    headers = {**JSON, "Prefer": "respond-async"}
    with doubled("nap", solves=1) as (_, client):
        path = client.post("/v1/plans", content=json.dumps({"nap_s": 30}), headers=headers).headers["location"]
        response = client.get(f"{path}/charts/memory")
        assert (response.status_code, response.json()["type"]) == (409, "/docs#not-done")
        client.delete(path)
        response = client.get(f"{path}/charts/memory")
        assert (response.status_code, response.json()["type"]) == (409, "/docs#cancelled")


def test_every_chart_has_its_kind_of_job():
    """Tests that no picture is out of reach."""
    assert {*charts_of("plan"), *charts_of("frontier")} == set(CHARTS)
