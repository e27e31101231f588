"""Keys and what they may do."""

import pytest
from cli_calls import partita
from playwright.sync_api import expect
from processes import running

from hard_problem import hard_problem


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """A server that asks for keys: a client of it, and a key of each role, which share what they see."""
    folder = str(tmp_path_factory.mktemp("keyed"))
    solve = partita("keys", "create", "alice", "--data", folder).out.strip()
    look = partita("keys", "create", "looks", "--role", "read", "--share-with", "alice", "--data", folder).out.strip()
    with running("-m", "partita.service", "serve", "--port", "0", "--data", folder) as (_, client):
        client.headers["Authorization"] = f"Bearer {solve}"
        yield client, solve, look


def give(page, key):
    """Enter a key as a user does."""
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Use this key").click()


def test_a_key_is_asked_for(visit, keyed):
    """Tests that the form opens by itself, says what to do, and that a key is kept for this tab alone."""
    client, solve, _ = keyed
    page = visit(client.base_url)
    page.watch.allowed = {401}
    expect(page.get_by_role("alert").filter(has_text="partita keys create")).to_be_visible()
    expect(page.get_by_label("API key")).to_be_focused()
    give(page, "partita_0000000000000000_wrong")
    expect(page.get_by_role("alert").filter(has_text="the key is not valid")).to_be_visible()
    give(page, solve)
    expect(page.get_by_role("button", name="Key: alice (solve)")).to_be_visible()
    expect(page.get_by_label("API key")).to_be_hidden()
    expect(page.get_by_label("Example")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Plan", exact=True)).to_be_enabled()
    expect(page.get_by_role("button", name="Key: alice (solve)")).to_be_visible()
    assert page.evaluate("localStorage.length") == 0
    assert page.context.cookies() == []
    page.get_by_role("button", name="Key: alice (solve)").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("alert").filter(has_text="partita keys create")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_key_that_may_only_look(visit, keyed):
    """Tests that whoever may only look sees jobs, and cannot press what would be refused."""
    client, _, look = keyed
    job = client.post("/v1/plans", json=hard_problem(), headers={"Prefer": "respond-async"}).json()["id"]
    page = visit(client.base_url)
    page.watch.allowed = {401}
    give(page, look)
    expect(page.get_by_role("button", name="Key: looks (read)")).to_be_visible()
    expect(page.get_by_role("button", name="Plan", exact=True)).to_be_disabled()
    expect(page.get_by_text("Planning needs a key with the role solve.")).to_be_visible()
    page.get_by_role("link", name=f"Plan {job[:8]}").click()
    for name in ("Stop and keep the best", "Cancel"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    assert client.delete(f"/v1/plans/{job}").is_success
    expect(page.get_by_text("The job was cancelled")).to_be_visible()


def test_a_refusal_opens_the_form(visit, keyed):
    """Tests that the form opens as soon as the server refuses what a key may not do."""
    client, _, look = keyed
    page = visit(client.base_url)
    page.watch.allowed = {401, 403}
    give(page, look)
    expect(page.get_by_role("button", name="Key: looks (read)")).to_be_visible()
    expect(page.get_by_text("Planning needs a key with the role solve.")).to_be_visible()
    page.get_by_role("button", name="Plan", exact=True).evaluate("button => button.disabled = false")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#access-reason")).to_contain_text("needs a key with the role solve")
    expect(page.get_by_label("API key")).to_be_focused()
