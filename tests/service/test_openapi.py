"""The description of the service: true, complete, and with examples that work."""

import re
from html import escape
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from api_calls import call, document_in
from batch_calls import results

from partita.models.constraints import Constraints
from partita.service.api import examples
from partita.service.api.app import ROUTERS
from partita.service.api.docs_page import render
from partita.service.api.openapi import openapi_document
from partita.service.api.pages import ASSETS
from partita.service.problem_document import KINDS
from partita.service.settings import Settings

DOCUMENT = openapi_document(Settings())
EXAMPLES = [
    (path, name, example["value"])
    for path, methods in DOCUMENT["paths"].items()
    for name, example in methods.get("post", {})
    .get("requestBody", {"content": {"application/json": {"examples": {}}}})["content"]["application/json"]["examples"]
    .items()
]
PATIENT = {"Prefer": "wait=30"}
EXPECTED = {
    "chain": "optimal",
    "graph": "optimal",
    "schedules": "optimal",
    "replan": "feasible",
    "recompute": "optimal",
    "degrees": "optimal",
    "scenarios": "optimal",
    "lexicographic": "optimal",
    "time_and_memory": "complete",
    "variants": "optimal",
    "problems": "optimal",
    "stored": "optimal",
    "too_large": "infeasible",
    "conflict": "infeasible",
    "sizes": "feasible",
    "stages": "feasible",
    "megatron": "feasible",
}


STORED = [
    (path.replace("{name}", "chain"), example["value"])
    for path, methods in DOCUMENT["paths"].items()
    if "put" in methods
    for example in methods["put"]["requestBody"]["content"]["application/json"]["examples"].values()
]


@pytest.fixture(scope="module")
def stored(real_client):
    """Store the examples of what can be stored, which another one names."""
    for path, body in STORED:
        assert real_client.put(path, json=body).status_code in (200, 201)


@pytest.mark.parametrize(("path", "name", "body"), EXAMPLES, ids=[example[1] for example in EXAMPLES])
def test_examples_work_as_they_stand(real_client, stored, path, name, body):
    """Tests that every example is answered, with the status that its summary says."""
    response = real_client.post(path, json=body, headers=PATIENT)
    if name in examples.BATCHES:
        found = results(real_client, response.json()["id"])
        assert {result["answer"]["status"] for result in found.values()} == {EXPECTED[name]}
    else:
        assert response.status_code == 200, response.text
        assert response.json()["status"] == EXPECTED[name]


def test_the_comparison_has_every_schedule(real_client):
    """Tests that the example that compares schedules is answered with a result for each, best first."""
    found = real_client.post("/v1/plans", json=examples.COMPARISON, headers=PATIENT).json()
    asked = [each if isinstance(each, str) else each["kind"] for each in examples.COMPARISON["training"]["schedule"]]
    assert sorted(result["schedule"]["kind"] for result in found["schedules"]) == sorted(asked)
    assert found["schedules"][0]["schedule"] == found["candidates"][0]["schedule"]


def test_the_evaluation_compares_with_the_best(real_client):
    """Tests that the first example is answered with the distance and the move that its summary promises."""
    found = real_client.post("/v1/evaluations", json=examples.EVALUATIONS["sizes"]["value"]).json()["comparison"]
    assert 0.075 < found["gap"] < 0.085
    assert (found["best_status"], found["move"]["kind"], found["all_moves"]) == ("optimal", "boundary", True)
    assert found["move"]["gain"] > 0


def test_the_plan_in_use_is_kept(real_client):
    """Tests that the example that plans again is answered with the plan in use first, and says so."""
    found = real_client.post("/v1/plans", json=examples.REPLAN, headers=PATIENT).json()
    assert [len(stage["layers"]) for stage in found["candidates"][0]["stages"]] == [3, 1, 2]
    assert found["warnings"][-1].startswith("search.keep stays in front")


def test_choices_are_made(real_client):
    """Tests that the examples of recompute, degrees and scenarios are answered with what each of them is about."""
    found = {
        name: real_client.post("/v1/plans", json=examples.PLANS[name]["value"], headers=PATIENT).json()
        for name in ("recompute", "degrees", "scenarios")
    }
    options = [stage["options"] for stage in found["recompute"]["candidates"][0]["stages"]]
    assert any("selective" in stage.values() for stage in options) and not all(options)
    best = found["degrees"]["candidates"][0]
    assert best["num_microbatches"] * best["microbatch_size"] * best["data_parallel"] == 32
    assert len({(each["tensor_parallel"], each["data_parallel"]) for each in found["degrees"]["schedules"]}) == 5
    assert [each["name"] for each in found["scenarios"]["candidates"][0]["scenarios"]] == ["short", "long"]


def test_fields_are_described():
    """Tests that every field of a problem says what it means, and that the page shows it."""
    schemas = DOCUMENT["components"]["schemas"]
    body = DOCUMENT["paths"]["/v1/plans"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    todo, seen = [body["$ref"].rsplit("/", 1)[1]], set()
    while todo:
        name = todo.pop()
        seen.add(name)
        for field, part in schemas[name].get("properties", {}).items():
            assert part.get("description"), f"{name}.{field}"
        todo += set(re.findall(r"'#/components/schemas/([^']+)'", str(schemas[name]))) - seen
    assert "Attributes" not in str(DOCUMENT)
    assert escape(Constraints.model_json_schema()["properties"]["recompute"]["description"]) in render(DOCUMENT)


def test_all_examples_are_shown():
    """Tests that no example is forgotten."""
    assert {name for _, name, _ in EXAMPLES} == {
        *examples.PLANS,
        *examples.EVALUATIONS,
        *examples.FRONTIERS,
        *examples.BATCHES,
    }


def test_every_call_is_described():
    """Tests that the calls that exist are those that are described."""
    existing = {
        (route.path, method)
        for router in ROUTERS[:-2]  # all but the pages
        for route in router.routes
        for method in route.methods
    }
    described = {(path, method.upper()) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert existing == described


def test_served_as_it_is(make_app):
    """Tests that /openapi.json is this document, with the limits of the server."""
    app = make_app(max_layers=123)
    shown = call(app, "GET", "/openapi.json", headers={}).json()
    assert shown == openapi_document(Settings(max_layers=123))
    assert "123 layers" in shown["info"]["description"]


def test_every_error_is_described():
    """Tests that every kind of problem of a call that solves stands in the description of that call."""
    responses = DOCUMENT["paths"]["/v1/plans"]["post"]["responses"]
    elsewhere = {"not-found", "wrong-method", "not-as-expected"}
    for kind in KINDS:
        if kind.name not in elsewhere:
            assert f"({kind.name})" in responses[str(kind.status)]["description"]
            assert list(responses[str(kind.status)]["content"]) == ["application/problem+json"]


def test_references_lead_somewhere():
    """Tests that every schema that is referred to exists."""
    used = set(re.findall(r"'#/components/schemas/([^']+)'", str(DOCUMENT)))
    assert used
    assert used <= set(DOCUMENT["components"]["schemas"])


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded, self.open = set(), set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        if tag == "a":
            self.links.add(attributes["href"])
        if tag in ("script", "link", "img", "iframe"):
            self.loaded.add(attributes.get("src") or attributes.get("href"))
        if tag not in ("meta", "link", "img", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page(make_app):
    response = call(make_app(), "GET", "/docs", headers={})
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    return response.text


def test_page_loads_nothing_from_outside(page, make_app):
    """Tests that the page needs this server only, and that all it loads is there."""
    loaded = Page(page).loaded
    assert loaded == {"/page/icon.svg", "/page/docs.css", "/page/docs.js"}
    for path in loaded:
        response = call(make_app(), "GET", path, headers={})
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(("text/css", "text/javascript", "image/svg+xml"))
        assert b"http" not in response.content.replace(b"http://www.w3.org/2000/svg", b"")
    assert "<style" not in page
    assert " style=" not in page
    assert "onclick" not in page


def test_links_of_the_page_lead_somewhere(page):
    """Tests that every link within the page has its target, and that every type of a problem leads to the page."""
    shown = Page(page)
    assert not shown.open
    assert {link[1:] for link in shown.links if link.startswith("#")} <= shown.ids
    assert {kind.name for kind in KINDS} <= shown.ids
    assert {link for link in shown.links if not link.startswith("#")} == {"/", "/openapi.json"}
    calls = re.findall(r'<section id="([^"]+)"', page)
    assert calls and {f"#{call}" for call in calls} <= set(shown.links)


def test_page_shows_every_example(page):
    """Tests that the examples can be sent from the page."""
    assert page.count("<textarea") == len(EXAMPLES) + len(STORED)
    without_body = [path for path, methods in DOCUMENT["paths"].items() if "get" in methods and "{" not in path]
    assert page.count('<button type="button">Send</button>') == len(EXAMPLES) + len(STORED) + len(without_body)


def test_unknown_file_of_the_page(make_app):
    """Tests that only the files of the page are given away."""
    document_in(call(make_app(), "GET", "/page/..%2fsettings.py", headers={}), 404, "not-found")
    assert {file.name for file in files("partita.service").joinpath("page").iterdir()} == {"index.html", *ASSETS}
