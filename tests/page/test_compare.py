"""Two plans side by side on the page: of one job, of two, and of very many candidates."""

import re

import pytest
from playwright.sync_api import expect
from small_problems import chain

from page.looking import found_by_axe, planned, row

MANY = 500


@pytest.fixture(scope="module")
def job(server):
    """A job with two plans."""
    return planned(server[1], chain())[0]


def test_two_candidates(visit, server, job):
    """Tests metrics with their differences in words, what moves, and that the picture of all plans is there."""
    page = visit(f"{server[1].base_url}#/plans/{job}/1")
    page.get_by_role("link", name="Compare it with another plan").click()
    expect(page.get_by_role("table", name="Metrics")).to_be_visible()
    assert row(page, "Metrics", "Iteration time") == ["15.00 s", "21.00 s", "+40.0 %", "40.0 % worse"]
    assert row(page, "Metrics", "Tokens per second")[2:] == ["−28.6 %", "28.6 % worse"]
    before, after, change, said = row(page, "Metrics", "Bubble")
    points = f"{float(after.split()[0]) - float(before.split()[0]):.1f} points"
    assert (change, said) == (f"+{points}", f"{points} worse")
    assert row(page, "From the left to the right", "b") == ["1 layer", "stage 0", "stage 1"]
    assert row(page, re.compile("Forward and backward"), "Stage 1")[:2] == ["1", "3.000 s"]
    expect(page.locator(".picture").get_by_role("heading", name="Plans compared")).to_be_visible()
    expect(page.locator(".drawing[aria-busy]")).to_have_count(0)
    assert found_by_axe(page) == []


def test_two_candidates_on_a_phone(visit, server, job):
    """Tests that nothing is wider than the window."""
    page = visit(f"{server[1].base_url}#/compare/{job},1/{job},2", viewport={"width": 360, "height": 760})
    expect(page.get_by_role("table", name="Metrics")).to_be_visible()
    expect(page.locator(".picture")).to_be_visible()
    expect(page.locator(".drawing[aria-busy]")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_simple_rule_and_a_link_that_stays(visit, server, job):
    """Tests that a baseline can be chosen, that nothing is said where nothing moves, and that the address follows."""
    page = visit(f"{server[1].base_url}#/compare/{job},1/{job},2")
    page.get_by_label("Plan on the right").select_option("balanced_time")
    expect(page.get_by_text("Nothing: both have the same layers")).to_be_visible()
    assert row(page, "Metrics", "Iteration time")[3] == "the same"
    assert page.url.endswith(f"#/compare/{job},1/{job},balanced_time")
    page.reload()
    expect(page.get_by_label("Plan on the right")).to_have_value("balanced_time")
    expect(page.get_by_role("columnheader", name="Plan with balanced stage times", exact=True).first).to_be_visible()


def test_a_rule_that_does_not_fit(visit, server):
    """Tests that baselines which do not fit say so in the list, and that the picture draws it without a warning."""
    layers = [{"name": f"l{at}", "forward_s": 1.0, "weight_bytes": 6 * 10**8 if at < 2 else 1} for at in range(4)]
    name, answer = planned(server[1], chain(model__layers=layers))
    assert not answer["baselines"]["uniform"]["fits"]
    page = visit(f"{server[1].base_url}#/compare/{name},1/{name},uniform")
    expect(page.get_by_label("Plan on the right").locator("option", has_text="does not fit")).to_have_count(2)
    expect(page.locator(".picture")).to_be_visible()
    expect(page.locator(".drawing[aria-busy]")).to_have_count(0)


def test_two_jobs(visit, server, job):
    """Tests plans for other layers and devices, the second of which is chosen from the newest jobs."""
    other = chain(cluster__nodes=[{"name": "far", "device": "d", "count": 2, "fabric": {"bandwidth_bytes_per_s": 1e9}}])
    other["model"]["layers"][0]["name"] = "first"
    second, _ = planned(server[1], other)
    page = visit(f"{server[1].base_url}#/compare/{job},1")
    right = page.get_by_role("group", name="Right")
    expect(right.get_by_label("Job").locator(f"option[value='{second}']")).to_have_count(1)
    right.get_by_label("Job").select_option(second)
    expect(page.get_by_role("columnheader", name=f"Plan 1 of {second[:8]}", exact=True).first).to_be_visible()
    moves = "From the left to the right"
    assert row(page, moves, "a") == ["1 layer", "only on the left", ""]
    assert row(page, moves, "first") == ["1 layer", "", "only on the right"]
    assert row(page, moves, "Stage 0") == ["devices", "node0:0", "far:0"]


def test_very_many_candidates(visit, server, job):
    """Tests that one of 500 candidates is found by a filter, and compared at once."""

    def multiplied(route):
        found = route.fetch().json()
        plans = found["answer"]["candidates"]
        found["answer"]["candidates"] = (plans * MANY)[:MANY]  # more than a problem may ask for
        route.fulfill(json=found)

    page = visit(f"{server[1].base_url}#/batches")
    page.route(f"**/v1/plans/{job}?include=problem", multiplied)
    page.evaluate(f"location.hash = '#/compare/{job},1/{job},3'")
    plans = page.get_by_label("Plan on the right")
    expect(plans.locator("option")).to_have_count(MANY + 2)
    page.get_by_role("group", name="Right").get_by_label("Filter").fill("498")
    expect(plans.locator("option")).to_have_count(1)
    plans.select_option("498")
    expect(page.get_by_role("columnheader", name="Plan 498", exact=True).first).to_be_visible()
    assert row(page, "Metrics", "Iteration time")[3] == "40.0 % worse"


def test_how_far_values_are_apart(home):
    """Tests both directions, rounding, and a reference of nothing, of which there are no percents."""
    pairs = [[3, 2], [1, 2], [2 + 1e-12, 2], [0, 0], [5, 0]]
    found = home.evaluate(
        """async (pairs) => {
          const { difference, signed } = await import("/page/objective.js");
          return pairs.map(([value, other]) => [signed(value, other), difference(value, other, true)]);
        }""",
        pairs,
    )
    assert found == [
        ["+50.0 %", "50.0 % better"],
        ["−50.0 %", "50.0 % worse"],
        ["", "the same"],
        ["", "the same"],
        ["", "better"],
    ]


def test_moves_between_plans(home):
    """Tests that neighbors which go the same way move together, and what is only in one of the two."""
    found = home.evaluate(
        """async () => {
          const { layerMoves, missing, placeMoves, recomputedOnly } = await import("/page/moves.js");
          const stage = (layers, devices, recompute = []) => ({ layers: [...layers], devices: [devices], recompute });
          const one = { stages: [stage("abcd", "n:0", ["a"]), stage("ex", "n:1")] };
          const other = { stages: [stage("ad", "n:0"), stage("bc", "n:2", ["b"]), stage("e", "n:1")] };
          return [layerMoves(one, other), missing(one, other), missing(other, one), placeMoves(one, other),
                  recomputedOnly(one, other), recomputedOnly(other, one)];
        }"""
    )
    assert found == [
        [{"layers": ["b", "c"], "from": 0, "to": 1}, {"layers": ["e"], "from": 1, "to": 2}],
        ["x"],
        [],
        [{"stage": 1, "from": ["n:1"], "to": ["n:2"]}],
        ["a"],
        ["b"],
    ]
