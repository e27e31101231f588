"""Names, links and keys that would lead a page astray, and ways back that would not end."""

import json
import re

import pytest
from playwright.sync_api import expect
from small_problems import chain

from hard_problem import hard_problem

NAMES = ["__proto__", "constructor", '<img src="x" onerror="alert(1)">', "a.b[0]", "\ufffe=1+1"]
"""Of members that every object has, of markup, and of what XML and fields of pictures could take for their own."""


@pytest.fixture(scope="module")
def hostile(server):
    """The identifier of a plan whose layers, nodes and devices have such names."""
    layers = [{"name": name, "forward_s": 1.0, "backward_s": 1.0, "output_bytes": 1} for name in NAMES]
    node = {"device": "__proto__", "count": 1, "fabric": {"bandwidth_bytes_per_s": 1e9}}
    nodes = [{"name": name, **node, "uplink": {"bandwidth_bytes_per_s": 1e9}} for name in NAMES]
    cluster = {"devices": {"__proto__": {"memory_bytes": "1GB"}}, "nodes": nodes}
    problem = chain(model__layers=layers, cluster=cluster, training__schedule="1f1b", training__num_stages=3)
    response = server[1].post("/v1/plans", json=problem, headers={"Prefer": "wait=30"})
    return response.headers["location"].split("/")[-1]


@pytest.mark.parametrize(
    "address",
    [
        "#/plans/..\\profiles\\x?",
        "#/batches/..\\profiles\\x",
        "#/plans/%2e%2e",
        "#/frontiers/..",
        "#/compare/..,1/..\\profiles,2",
        "#/plans/x?include=problem",
        "#/plans/..\\profiles/2/what-if",
    ],
)
def test_a_link_leads_to_a_view_alone(visit, server, address):
    """Tests that no address makes the page send something to another call, with the key that it has."""
    page = visit(f"{server[1].base_url}{address}")
    expect(page.get_by_text("This page has no such view.")).to_be_visible()


def test_names_of_members_of_objects_are_names(visit, server, hostile):
    """Tests that a plan with such names is priced when its cuts are moved."""
    page = visit(f"{server[1].base_url}#/plans/{hostile}/what-if")
    price = page.get_by_label("Price", exact=True)
    expect(price).to_contain_text("Bottleneck")
    page.get_by_role("slider").first.press("ArrowRight")
    expect(page.get_by_role("button", name="Put the cuts back")).to_be_enabled()
    expect(price).to_contain_text("worse")


def test_back_leads_away_from_a_problem_that_was_refused_late(home, server):
    """Tests that faults are shown where they stand once, that Back is not caught, and that no later text is lost."""
    client = server[1]
    wrong = json.dumps(chain(training__num_stages=9))
    client.post("/v1/plans", content=wrong, headers={"Content-Type": "application/json", "Prefer": "wait=30"})
    job = client.get("/v1/plans?state=failed&limit=1").json()["jobs"][0]["id"]
    late = {"status": 202, "headers": {"Location": f"/v1/plans/{job}"}, "body": "{}"}
    home.route("**/v1/plans", lambda route: route.fulfill(**late))
    home.get_by_label("Problem").fill(wrong)
    home.get_by_role("button", name="Plan", exact=True).click()
    expect(home.get_by_role("alert").filter(has_text="to correct")).to_contain_text("/training/num_stages")
    home.get_by_label("Problem").fill("{}")
    home.goto(f"{client.base_url}#/plans/{job}")
    expect(home.locator(".failure")).to_contain_text("to correct")
    home.go_back()
    expect(home.get_by_label("Problem")).to_have_value("{}")
    home.go_back()
    expect(home).to_have_url(re.compile("#/$|/$"))


def test_what_no_header_can_hold_is_no_key(home):
    """Tests that a key with an unseen letter, as copying may add one, is not taken for a server that is away."""
    home.get_by_role("button", name="Key", exact=True).click()
    home.get_by_label("API key").fill("partita_\u200babc")
    home.get_by_role("button", name="Use this key").click()
    expect(home.get_by_role("alert").filter(has_text="This is no key")).to_be_visible()
    assert home.evaluate("sessionStorage.length") == 0


def test_a_server_that_was_away_is_not_taken_for_a_role_too_low(home):
    """Tests that planning stays possible where nobody could say what the key may do."""
    home.watch.allowed = {0}
    home.route("**/v1/key", lambda route: route.abort())
    home.reload()
    expect(home.get_by_label("Example")).to_be_visible()
    expect(home.get_by_role("button", name="Plan", exact=True)).to_be_enabled()


PLACES = """async ([text, pointers]) => {
    const { places } = await import("/page/json_places.js");
    const begin = performance.now();
    const spans = places(text, pointers.map((pointer) => ({ pointer, detail: "", code: "" })));
    return [spans.map(({ start, end }) => text.slice(start, end)), performance.now() - begin];
}"""


def test_faults_are_found_in_long_and_in_deep_texts(home):
    """Tests where pointers lead, and that many faults of a long text do not stop the page."""
    text = '{"a/b": [1, {"x": "]}\\\\\\""}], "__proto__": 2,\n "deep": ' + "[" * 50_000 + "]" * 50_000 + "}"
    pointers = ["", "/a~1b/0", "/a~1b/1/x", "/a~1b/1/missing", "/__proto__", "/deep/0/0", "/constructor"]
    found, _ = home.evaluate(PLACES, [text, pointers])
    first = text.split("\n")[0]
    assert found[:5] == [first, "1", '"]}\\\\\\""', '{"x": "]}\\\\\\""}', "2"]
    assert found[5] == "[" * 49_998 + "]" * 49_998
    assert found[6] == first
    assert home.evaluate(PLACES, ["[" * 2_000_000, ["/0/0"]])[0] == ["[" * 2_000_000]
    layers = [{"name": "x" * 300, "forward_s": -1}] * 15_000
    many = [f"/model/layers/{place}/forward_s" for place in range(14_900, 15_000)]
    found, taken_ms = home.evaluate(PLACES, [json.dumps({"model": {"layers": layers}}), many])
    assert found == ["-1"] * 100
    assert taken_ms < 5_000


def test_a_front_is_asked_for_as_it_is_written(home):
    """Tests that the server judges what JSON in a browser would leave out, and that Enter finds the front."""
    home.watch.allowed = {400}
    home.get_by_label("Problem").fill('{"model": 1, "model": {}}')
    home.get_by_text("Or find the front").click()
    home.get_by_label("Points").press("Enter")
    expect(home.get_by_role("alert").filter(has_text="stands twice")).to_contain_text("Line 1, /model")


def test_the_keyboard_goes_on_when_a_button_is_gone(visit, server, hostile):
    """Tests that the focus is in the view after a search is cancelled, and at the cut that a button has moved."""
    client = server[1]
    job = client.post("/v1/plans", json=hard_problem(), headers={"Prefer": "respond-async"}).json()["id"]
    page = visit(f"{client.base_url}#/plans/{job}")
    page.get_by_role("button", name="Cancel").press("Enter")
    expect(page.get_by_text("The job was cancelled")).to_be_visible()
    expect(page.get_by_role("main")).to_be_focused()
    page.goto(f"{client.base_url}#/plans/{hostile}/what-if")
    page.get_by_role("slider").first.press("ArrowRight")
    page.get_by_role("button", name="Put the cuts back").press("Enter")
    expect(page.get_by_role("slider").first).to_be_focused()
