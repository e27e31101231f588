"""A server that goes away in the middle and comes back: the page says so, and nothing is lost."""

import re

from playwright.sync_api import expect
from processes import running
from small_problems import chain, too_large

from hard_problem import hard_problem
from page.looking import figure


def test_the_server_goes_and_comes_back(visit, tmp_path):
    """Tests a search and a batch over a restart: both go on, each result comes once, both can be ended as before."""
    serve = ("-m", "partita.service", "serve", "--data", str(tmp_path), "--lease", "2", "--solves", "2", "--port")
    problems = [chain(), too_large(), hard_problem(seed=1)]
    with running(*serve, "0", stop=False) as (process, client):
        job = client.post("/v1/plans", json=hard_problem(), headers={"Prefer": "respond-async"}).json()["id"]
        batch = client.post("/v1/batches", json={"problems": problems}).json()["id"]
        table = visit(f"{client.base_url}#/batches/{batch}")
        expect(table.locator(".headline")).to_have_text("2 of 3 problems have ended.")
        expect(table.get_by_text(re.compile(r"^About \d+ (s|min|h) to go, until .*fluid queue"))).to_be_visible()
        expect(table.get_by_role("status").filter(has_text="2 results")).to_be_visible()
        search = visit(f"{client.base_url}#/plans/{job}")
        table.watch.allowed = search.watch.allowed = {0}
        expect(figure(search, "Best so far")).to_be_visible()
        process.kill()
        expect(search.get_by_text("The server is away. The job is kept there")).to_be_visible()
        expect(table.locator(".headline")).to_contain_text("The server is away.")
        address = search.url
        with running(*serve, str(client.base_url.port)):
            expect(search.get_by_role("paragraph").filter(has_text="Being planned.")).to_be_visible()
            search.get_by_role("button", name="Stop and keep the best").click()
            expect(search.locator(".headline")).to_contain_text("feasible")
            assert search.url == address
            table.get_by_role("button", name="Cancel what has not ended").click()
            expect(table.locator(".headline")).to_have_text("All 3 problems have ended.")
            expect(table.get_by_role("status").filter(has_text="3 results")).to_be_visible()
            table.get_by_label("Status").select_option("cancelled")
            expect(table.get_by_role("status").filter(has_text="1 of 3 results")).to_be_visible()
