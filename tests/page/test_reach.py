"""The page for those who use a keyboard, a screen reader, a phone, or a dark screen."""

import json

import pytest
from playwright.sync_api import expect
from small_problems import chain, too_large

from hard_problem import hard_problem
from page.looking import found_by_axe, planned

PHONE = {"viewport": {"width": 360, "height": 760}, "color_scheme": "dark"}


@pytest.fixture(scope="module")
def jobs(server):
    """A job that has a plan and one that cannot have any, by the names of their views."""
    problems = {"planned": chain(), "infeasible": too_large()}
    return {name: planned(server[1], problem)[0] for name, problem in problems.items()}


def check(page, ready):
    """Look at a view when it is ready, with all that is folded in it."""
    expect(ready).to_be_visible()
    expect(page.locator(".drawing[aria-busy]")).to_have_count(0)
    page.locator("details:not(.exports)").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    assert found_by_axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("view", ["home", "planned", "infeasible"])
def test_every_view_can_be_read(visit, server, jobs, view):
    """Tests that axe-core finds nothing serious and nothing is wider than the window, as on a laptop, then a phone."""
    address = f"#/plans/{jobs[view]}" if view in jobs else "#/"
    page = visit(f"{server[1].base_url}{address}")
    ready = page.locator(".headline") if view in jobs else page.get_by_label("Example")
    check(page, ready)
    page.set_viewport_size(PHONE["viewport"])
    if view == "planned":  # its pictures are drawn anew in the other colors
        with page.expect_response(lambda response: "/charts/" in response.url and "theme=dark" in response.url):
            page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="dark")
    check(page, ready)


def test_a_search_can_be_read(visit, server):
    """Tests the same of a job that goes on."""
    client = server[1]
    job = client.post("/v1/plans", json=hard_problem(), headers={"Prefer": "respond-async"}).json()["id"]
    page = visit(f"{client.base_url}#/plans/{job}", **PHONE)
    check(page, page.get_by_text("Best so far"))
    assert client.delete(f"/v1/plans/{job}").is_success


def test_a_plan_by_the_keyboard_alone(home):
    """Tests that a problem is planned and its second plan looked at without a mouse."""
    home.keyboard.press("Tab")
    expect(home.get_by_role("button", name="Skip to content")).to_be_focused()
    home.keyboard.press("Enter")
    for _ in range(20):
        home.keyboard.press("Tab")
        if home.evaluate("document.activeElement.id") == "problem":
            break
    home.keyboard.insert_text(json.dumps(chain()))
    home.keyboard.press("Tab")
    expect(home.get_by_role("button", name="Plan", exact=True)).to_be_focused()
    home.keyboard.press("Enter")
    expect(home.locator(".headline")).to_be_visible()
    expect(home.locator("main")).to_be_focused()
    for _ in range(20):
        home.keyboard.press("Tab")
        if home.evaluate("document.activeElement.textContent") == "Plan 2":
            break
    home.keyboard.press("Enter")
    expect(home.get_by_role("heading", name="Plan 2 of 2")).to_be_visible()
