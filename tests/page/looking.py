"""What tests of the page look at, and how plans come to be there."""

import json
import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

PLAN = re.compile(r"#/plans/[0-9a-f-]{36}$")
SERIOUS = ("serious", "critical")


def planned(client, problem):
    """Have a problem planned; give the name of its job, and its answer."""
    response = client.post("/v1/plans", json=problem, headers={"Prefer": "wait=60"})
    assert response.status_code == 200, response.text
    return response.headers["location"].split("/")[-1], response.json()


def ask(page, problem):
    """Plan a problem as a user does."""
    page.get_by_label("Problem").fill(json.dumps(problem))
    page.get_by_role("button", name="Plan", exact=True).click()
    page.wait_for_url(PLAN)


def figure(page, name):
    """Give the value that stands beside a name."""
    return page.locator("dl div", has=page.locator("dt", has_text=re.compile(f"^{name}$"))).locator("dd")


def row(page, caption, heading):
    """Give the cells of a row of a table."""
    cells = page.get_by_role("table", name=caption).locator(
        "tr", has=page.get_by_role("rowheader", name=heading, exact=True)
    )
    return cells.locator("td").all_text_contents()


def drawn(page):
    """Wait until all pictures are there."""
    expect(page.locator(".picture").first).to_be_visible()
    expect(page.locator(".drawing[aria-busy]")).to_have_count(0)


def found_by_axe(page):
    """Give the serious findings of axe-core, each with the first element that it is about."""
    violations = Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in violations if each["impact"] in SERIOUS]
