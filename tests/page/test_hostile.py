"""Names, links and keys that would lead a page astray, and ways back that would not end."""

import pytest
from playwright.sync_api import expect


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
