"""A plan from the problem to its pictures, and a search that is stopped or cancelled."""

import json
import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from small_problems import chain, too_large

from hard_problem import hard_problem
from page.looking import PLAN, ask, drawn, figure
from partita.service.reports.wording import seconds


def saved(page, button):
    """Press a button that keeps something; give the file's name and content."""
    with page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_bytes()


@pytest.fixture
def planned(home):
    """The page of the plan of an example."""
    home.get_by_label("Example").select_option("chain")
    home.get_by_role("button", name="Plan", exact=True).click()
    home.wait_for_url(PLAN)
    return home


def test_a_plan_is_understood(planned, server):
    """Tests what is proven, what it costs, every picture with its files and its figures, and the assumptions."""
    page = planned
    drawn(page)
    answer = server[1].get(urlsplit(page.url).fragment.replace("/plans", "/v1/plans", 1)).json()["answer"]
    expect(page.locator(".headline")).to_contain_text("chain of six layers: 6 layers, 3 stages, 1f1b")
    best = seconds(answer["best_bound"])
    expect(page.get_by_text(f"Proven optimal: no plan has a better iteration time than {best}.")).to_be_visible()
    expect(figure(page, "Iteration time")).to_have_text(f"{best}, predicted")
    expect(page.get_by_text(answer["assumptions"][0], exact=True)).to_be_visible()
    pictures = page.locator(".picture")
    assert pictures.count() >= 4
    for picture in pictures.all():
        name, content = saved(page, picture.get_by_role("button", name=re.compile("^Save SVG")))
        assert name.endswith(".svg") and content.startswith(b"<svg")
    name, content = saved(page, pictures.first.get_by_role("button", name=re.compile("^Save PNG")))
    assert name.endswith(".png") and content.startswith(b"\x89PNG")
    page.evaluate(
        "() => { HTMLCanvasElement.prototype.toBlob = (made) => made(null); }"
    )  # as for a canvas that is too large
    pictures.first.get_by_role("button", name=re.compile("^Save PNG")).click()
    expect(pictures.first.get_by_role("alert")).to_have_text(
        "The browser cannot make a PNG of this size; keep it as SVG."
    )
    memory = pictures.filter(has=page.get_by_role("heading", name="Memory per device"))
    memory.get_by_text("Its figures as a table").click()
    expect(memory.get_by_role("row")).to_have_count(1 + len(answer["candidates"][0]["stages"]))


@pytest.mark.parametrize("kind", ["plans", "frontiers", "batches"])
def test_what_is_not_there(visit, server, kind):
    """Tests that a link to nothing leaves no view that waits for it."""
    page = visit(f"{server[1].base_url}#/{kind}/nothing")
    page.watch.allowed = {404}
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("nothing")
    expect(page.get_by_text("Looking …")).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


def test_plans_that_were_seen_are_told_apart(planned):
    """Tests that the list of jobs has the headline of a plan that this tab has shown, and so has the comparison."""
    page = planned
    headline = page.locator(".headline").text_content()
    job = urlsplit(page.url).fragment.split("/")[2][:8]
    page.get_by_role("link", name="Compare it with another plan").click()
    expect(page.get_by_label("Job").first.locator("option:checked")).to_contain_text(headline)
    page.get_by_role("link", name="Plan", exact=True).click()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=f"Plan {job}"))
    expect(row.get_by_role("cell").last).to_have_text(headline)


def test_other_plans_and_other_programs(planned):
    """Tests that a link leads to the second plan, and that it is kept as text where a format can express it."""
    page = planned
    page.watch.allowed = {422}
    page.get_by_role("link", name="Plan 2", exact=True).click()
    page.wait_for_url(re.compile("/2$"))
    expect(page.get_by_role("heading", name="Plan 2 of 3")).to_be_visible()
    page.get_by_text("For other programs").click()
    assert b"PARTS = [0, " in saved(page, page.get_by_role("button", name="Save deepspeed.txt"))[1]
    refused = page.get_by_role("row").filter(has_text="VLLM_PP_LAYER_PARTITION")
    expect(refused).to_contain_text("vLLM does not run 1f1b")
    answer = json.loads(saved(page, page.get_by_role("button", name="Answer as JSON"))[1])
    assert answer["problem"]["model"]["name"] == "chain of six layers"
    page.get_by_role("button", name="Change the problem").click()
    expect(page.get_by_label("Problem")).to_have_value(re.compile('"chain of six layers"'))


def test_why_there_is_no_plan(home):
    """Tests that the reason stands where the plan would."""
    ask(home, too_large())
    expect(home.get_by_role("heading", name="No plan")).to_be_visible()
    expect(home.get_by_text("Limits in force:")).to_be_visible()
    expect(home.locator(".picture")).to_have_count(0)
    expect(home.get_by_text("layer 'c': needs 2.79 GiB, node0:0 allows 954 MiB: short by 1.86 GiB")).to_be_visible()
    expect(home.get_by_text("with memory_bytes of at least 2.80 GiB instead of 954 MiB")).to_be_visible()


def test_bytes_in_messages_are_readable(home):
    """Tests that bytes get units in which what differs stays apart and what is enough is not too little."""
    messages = {
        "needs 100000000000 bytes, 80000000000 bytes are allowed": "needs 93.1 GiB, 74.5 GiB are allowed",
        "of at least 100000000000 bytes (d has 1024 bytes)": "of at least 93.2 GiB (d has 1.00 KiB)",
        "of at least 85899345920 bytes": "of at least 80.0 GiB",
        "from 16000000000 bytes to 16001000000 bytes": "from 14.901 GiB to 14.903 GiB",
        "needs 1000001 bytes, 1000000 bytes are allowed": "needs 976.5635 KiB, 976.5625 KiB are allowed",
        "2 bytes of gradient, 4096 microbatches": "2 bytes of gradient, 4096 microbatches",
        "at least 1001 bytes, 1.5e+09 bytes": "at least 1001 B, 1.5e+09 bytes",
    }
    shown = home.evaluate(
        """async (messages) => {
          const { readable } = await import("/page/format.js");
          return messages.map(readable);
        }""",
        list(messages),
    )
    assert shown == list(messages.values())


def test_names_are_text(home):
    """Tests that markup in a name is shown as it is written, and is no part of the page."""
    name = "<img src=x onerror=alert(1)>"
    problem = chain(model__name=name)
    problem["model"]["layers"][0]["name"] = name
    ask(home, problem)
    expect(home.locator(".headline")).to_contain_text(name)
    picture = home.locator(".picture").first
    picture.get_by_text("Its figures as a table").click()
    expect(picture.get_by_role("cell", name=name).first).to_be_visible()
    picture.locator("canvas").hover(position={"x": 200, "y": 120})
    expect(home.locator("#vg-tooltip-element.visible")).to_contain_text(name)
    assert home.locator("img").count() == 0


def test_a_scenario_is_chosen(home):
    """Tests that the pictures of another scenario are drawn where there are several."""
    home.get_by_label("Example").select_option("scenarios")
    home.get_by_role("button", name="Plan", exact=True).click()
    expect(home.locator(".picture canvas").first).to_be_visible()
    with home.expect_response(lambda response: "charts/timeline" in response.url and "scenario=short" in response.url):
        home.get_by_role("combobox", name="Scenario").select_option("short")


def test_a_fault_that_shows_late_leads_back(home, server):
    """Tests that the page of a job that failed names the fault, and that whoever sent it can correct it."""
    answer = server[1].post("/v1/plans", json=chain(model__layers=[]), headers={"Prefer": "respond-async"}).json()
    home.goto(f"{server[1].base_url}#/plans/{answer['id']}")
    expect(home.get_by_role("alert").filter(has_text="The input is not valid")).to_be_visible()
    expect(home.get_by_text("/model/layers")).to_be_visible()


def test_a_search_is_stopped(home):
    """Tests that a search shows how far it is, and that stopping keeps the best plan found."""
    ask(home, hard_problem())
    expect(figure(home, "Best so far")).to_have_text(re.compile(r"\d m?s$"))
    expect(figure(home, "No plan is better than")).to_have_text(re.compile(r"\d m?s$"))
    expect(figure(home, "Gap")).to_have_text(re.compile(r"\d %$"))
    home.get_by_role("button", name="Stop and keep the best").click()
    expect(home.locator(".headline")).to_contain_text("feasible")
    expect(home.get_by_text(re.compile("^No plan can have a better iteration time than"))).to_be_visible()


def test_a_search_is_cancelled(home):
    """Tests that a cancelled search has no plan, says so, and is listed so."""
    ask(home, hard_problem())
    home.get_by_role("button", name="Cancel").click()
    expect(home.get_by_text("The job was cancelled")).to_be_visible()
    home.get_by_role("link", name="Plan", exact=True).click()
    expect(home.get_by_role("row").nth(1)).to_contain_text("cancelled")
