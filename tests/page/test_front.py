"""Fronts on the page: how they are asked for, live, and from each point to its plan."""

import json
import re

import pytest
from playwright.sync_api import expect
from small_problems import chain, too_large

from hard_problem import hard_problem
from page.looking import figure, found_by_axe, planned, row

PLACES = """text => {
  const picture = new DOMParser().parseFromString(text, "image/svg+xml");
  return [...picture.querySelectorAll(".mark-symbol.role-mark path[aria-label]")].map((mark) => {
    let [x, y] = [0, 0];
    for (let each = mark; each; each = each.parentElement) {
      const moved = /translate\\(([-\\d.]+),([-\\d.]+)\\)/.exec(each.getAttribute("transform") ?? "");
      if (moved) [x, y] = [x + Number(moved[1]), y + Number(moved[2])];
    }
    return [mark.getAttribute("aria-label"), x, y];
  });
}"""
"""Where the points of a picture are, which the canvas does not tell."""
FRONT = re.compile(r"#/frontiers/[0-9a-f-]{36}$")


def tradeoff():
    """A problem in which less memory takes more time."""
    layers = [
        {"name": name, "forward_s": seconds, "weight_bytes": weight}
        for name, seconds, weight in (("a", 1.0, 10**8), ("b", 1.0, 10**8), ("c", 1.0, 10**8), ("d", 5.0, 1))
    ]
    return chain(model__layers=layers)


def ask(page, problem):
    """Ask for a front as a user does."""
    page.get_by_label("Problem").fill(problem if isinstance(problem, str) else json.dumps(problem))
    page.get_by_text("Or find the front of two metrics").click()
    page.get_by_role("button", name="Find the front").click()


@pytest.fixture(scope="module")
def front(server):
    """A front of a few points; the address of its view, and the front."""
    body = {"problem": tradeoff(), "metrics": ["iteration_time_s", "peak_memory_bytes"]}
    response = server[1].post("/v1/frontiers", json=body, headers={"Prefer": "wait=60"})
    assert response.status_code == 200, response.text
    assert len(response.json()["points"]) > 1
    return f"{server[1].base_url}#{response.headers['location'].removeprefix('/v1')}", response.json()


def test_a_front_is_asked_for(home):
    """Tests the form, what is proven, and that each point of the table leads to its plan."""
    ask(home, tradeoff())
    home.wait_for_url(FRONT)
    expect(home.locator(".headline")).to_contain_text("three: iteration time against peak memory")
    expect(home.get_by_text("Proven: these are all;")).to_be_visible()
    expect(home.locator(".drawing[aria-busy]")).to_have_count(0)
    assert found_by_axe(home) == []
    home.get_by_role("link", name="Point 2").focus()
    home.keyboard.press("Enter")
    expect(home.get_by_role("heading", level=1)).to_contain_text("Plan of point 2 of")
    expect(home.get_by_role("heading", name="Memory per device")).to_be_visible()
    expect(home.locator(".drawing[aria-busy]")).to_have_count(0)
    home.get_by_role("link", name="All points of the front").click()
    expect(home.get_by_role("table", name="Points of the front")).to_be_visible()


def test_a_point_of_the_picture_opens_its_plan(visit, front):
    """Tests a click on the last point, which the table tells with its values."""
    address, found = front
    page = visit(address)
    picture = page.locator(".drawing canvas")
    expect(picture).to_be_visible()
    expect(page.locator(".drawing[aria-busy]")).to_have_count(0)
    assert page.get_by_role("link", name=re.compile("^Point")).count() == len(found["points"])
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("^Save SVG")).click()
    places = page.evaluate(PLACES, download.value.path().read_text())
    assert len(places) == len(found["points"])
    label, across, down = max(places, key=lambda place: place[1])  # the one that takes longest
    assert "Iteration time" in label
    picture.click(position={"x": across, "y": down})
    page.wait_for_url(re.compile(f"/{len(places)}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Plan of point {len(places)} of {len(places)}")
    expect(page.get_by_text("Between nodes").first).to_be_visible()
    page.goto(f"{address}/99")
    expect(page.get_by_text(f"The front has {len(places)} points, and no number 99.")).to_be_visible()


def test_a_point_is_a_plan_like_others(visit, server, front):
    """Tests that the plan of a point leads to its exports, to a comparison, and to a what-if judged by both metrics."""
    address, found = front
    job, _ = planned(server[1], tradeoff())
    last = len(found["points"])
    page = visit(f"{address}/{last}")
    page.watch.allowed = {422}
    page.get_by_text("For other programs").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save deepspeed.txt").click()
    assert "PARTS = [0, 2, 4]" in download.value.path().read_text()
    page.get_by_role("link", name="Compare it with another plan").click()
    expect(page.get_by_role("columnheader", name="Point 1", exact=True).first).to_be_visible()
    assert row(page, "Metrics", "Iteration time") == ["26.00 s", "23.00 s", "−11.5 %", "11.5 % better"]
    assert row(page, "From the left to the right", "c") == ["1 layer", "stage 1", "stage 0"]
    assert re.search(f",point{last}/[^/]*,point1$", page.url)
    expect(page.locator(".picture canvas")).to_be_visible()
    assert found_by_axe(page) == []
    page.get_by_role("group", name="Right").get_by_label("Job").select_option(job)
    expect(page.get_by_role("columnheader", name=f"Plan 1 of {job[:8]}", exact=True).first).to_be_visible()
    page.get_by_role("group", name="Left").get_by_label("Job").select_option(job)
    expect(page.locator(".picture").get_by_role("heading")).to_have_text("Plans compared")
    page.goto(f"{address}/{last}")
    page.get_by_role("link", name="Move its cuts and see what that costs").click()
    time, memory = (figure(page, f"{name} against point {last}") for name in ("Iteration time", "Peak memory"))
    expect(time).to_contain_text("the same")
    expect(memory).to_contain_text("the same")
    page.get_by_role("slider").press("End")
    expect(time).to_contain_text("better")
    expect(memory).to_contain_text("worse")
    assert found_by_axe(page) == []
    page.get_by_role("link", name=f"the plan of point {last}").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Plan of point {last} of {last}")


def test_what_is_wrong_is_marked(home):
    """Tests that faults of the problem stand in it, and those of the question beside the button."""
    home.watch.allowed = {422}
    ask(home, chain(training__num_stages="many"))
    expect(home.get_by_role("alert").filter(has_text="1 thing to correct")).to_contain_text("/training/num_stages")
    home.get_by_label("Problem").fill(json.dumps(chain()))
    home.get_by_label("against").select_option("iteration_time_s")
    home.get_by_role("button", name="Find the front").click()
    expect(home.get_by_role("alert").filter(has_text="one plan is the best by both")).to_be_visible()
    home.get_by_label("Problem").fill("{oops")
    home.get_by_role("button", name="Find the front").click()
    expect(home.get_by_role("alert").filter(has_text="no JSON")).to_be_visible()


def test_a_front_without_plans(home):
    """Tests that the reason is told, and that there is no picture."""
    ask(home, too_large())
    expect(home.get_by_role("heading", name="No plan")).to_be_visible()
    expect(home.get_by_text("a layer does not fit").first).to_be_visible()
    expect(home.locator(".picture")).to_have_count(0)


def test_a_front_is_stopped(home):
    """Tests that points are counted while it is sought, and that what is not explored is said after a stop."""
    ask(home, hard_problem(16))
    home.wait_for_url(FRONT)
    expect(home.get_by_text(re.compile(r"^\d+ points?$"))).to_be_visible()
    home.get_by_role("button", name="Stop and keep the best").click()
    expect(home.get_by_text(re.compile("^(not explored: |No point of the front was proven)")).first).to_be_visible()
