"""Cuts that are moved on the page: prices at once, refusals in the words of the service, and large pipelines."""

import json
import re

import pytest
from playwright.sync_api import expect
from small_problems import chain

from page.looking import figure, found_by_axe, planned

PRICES = re.compile("/v1/evaluations")


def what_if(client, problem):
    """Have a problem planned; give the address of its what-if, and its answer."""
    job, answer = planned(client, problem)
    return f"{client.base_url}#/plans/{job}/what-if", answer


def layers(count, **given):
    """Equal layers."""
    return [{"name": f"l{at}", "forward_s": 1.0, **given} for at in range(count)]


def devices(count, memory="1GB"):
    """A cluster of one node."""
    node = {"name": "node0", "device": "d", "count": count, "fabric": {"bandwidth_bytes_per_s": 1e9}}
    return {"devices": {"d": {"memory_bytes": memory}}, "nodes": [node]}


def test_a_cut_is_moved_by_the_keyboard(visit, server):
    """Tests the price, the difference, the bottleneck, the best single move, and the way back."""
    address, _ = what_if(server[1], chain())
    page = visit(address)
    expect(figure(page, "Iteration time")).to_have_text("15.00 s")
    expect(figure(page, "Against the best plan")).to_have_text("the same (15.00 s)")
    cut = page.get_by_role("slider", name="Cut between stage 0 and stage 1")
    assert cut.get_attribute("aria-valuetext") == "after b; stage 0 has 2 layers, stage 1 1"
    cut.focus()
    page.keyboard.press("ArrowLeft")
    assert cut.get_attribute("aria-valuetext") == "after a; stage 0 has 1 layer, stage 1 2"
    expect(figure(page, "Iteration time")).to_have_text("21.00 s")
    expect(figure(page, "Against the best plan")).to_have_text("40.0 % worse (15.00 s)")
    expect(figure(page, "Bottleneck")).to_have_text("stage 1 · node0:1: 5.000 s per microbatch")
    expect(page.get_by_role("status").filter(has_text="Iteration time 21.00 s, 40.0 % worse.")).to_have_count(1)
    expect(page.get_by_text("The best single move: move 'b' from stage 1 to stage 0")).to_be_visible()
    assert found_by_axe(page) == []
    page.keyboard.press("Home")
    assert cut.get_attribute("aria-valuenow") == "1"
    page.get_by_role("button", name="Make this move").click()
    expect(figure(page, "Iteration time")).to_have_text("15.00 s")
    expect(page.get_by_role("button", name="Put the cuts back")).to_be_disabled()


def test_a_cut_is_dragged_and_the_last_answer_counts(visit, server):
    """Tests that one request follows a drag, and that a late answer to an earlier place is not shown."""
    address, _ = what_if(server[1], chain(model__layers=layers(8)))
    page = visit(address)
    expect(figure(page, "Iteration time")).to_be_visible()
    asked = []
    page.on("request", lambda request: asked.append(request) if "/v1/evaluations" in request.url else None)
    track, cut = page.locator(".strip").bounding_box(), page.get_by_role("slider")
    box = cut.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] * 0.75, track["y"] + 20, steps=12)
    expect(cut).to_have_attribute("aria-valuenow", "6")
    page.mouse.up()
    expect(figure(page, "Bottleneck")).to_have_text("stage 0 · node0:0: 6.000 s per microbatch")
    assert len(asked) <= 3
    held = []
    page.route(PRICES, lambda route: route.continue_() if held else held.append(route))
    with page.expect_request(PRICES):
        cut.press("ArrowLeft")
    with page.expect_event("requestfailed") as failed:  # it is given up, so its answer cannot come late
        cut.press("ArrowLeft")
    assert json.loads(failed.value.post_data)["plan"]["stages"][0]["layers"][-1] == "l4"
    expect(figure(page, "Bottleneck")).to_have_text("stage 0 · node0:0 and 1 more: 4.000 s per microbatch")


def kept_together():
    return chain(constraints={"together": [["a", "b"]]})


def a_graph():
    """Two branches that meet; their layers may change places between stages, but no consumer comes first."""
    parts = [{"name": name, "producer": name, "consumers": consumers, "bytes": 1000}
             for name, consumers in (("l0", ["l1", "l2"]), ("l1", ["l3"]), ("l2", ["l3"]))]  # fmt: skip
    return chain(model={"layers": layers(4), "tensors": parts})


def interleaved():
    schedule = {"kind": "interleaved_1f1b", "chunks_per_rank": 2}
    return chain(model__layers=layers(8, backward_s=1.0), training__schedule=schedule, training__num_stages=4)


def too_small():
    return chain(model__layers=layers(6, weight_bytes="200MB"), cluster=devices(2, "700MB"))


@pytest.mark.parametrize(
    "problem, said",
    [
        (kept_together(), "not on one stage"),
        (a_graph(), None),
        (interleaved(), None),  # two stages on a rank
        (chain(search__keep={"stage_sizes": [2, 1]}, search__keep_if_within=0.1), None),
        (too_small(), "stage 1 on node0:1 needs"),
    ],
    ids=["together", "graph", "interleaved", "kept", "memory"],
)
def test_what_the_service_says_is_shown(visit, server, problem, said):
    """Tests that what breaks limits is told in the words of the service, and that all kinds of plans are priced."""
    address, answer = what_if(server[1], problem)
    page = visit(address)
    expect(figure(page, "Against the best plan")).to_contain_text("the same")
    assert page.get_by_role("slider").count() == len(answer["candidates"][0]["stages"]) - 1
    expect(page.locator(".proof .failure")).to_have_count(0)
    page.get_by_role("slider").first.press("Home")
    expect(figure(page, "Against the best plan")).to_contain_text(re.compile("worse|better"))
    if said is None:
        expect(page.locator(".proof .failure")).to_have_count(0)
    else:
        expect(page.locator(".proof .failure")).to_have_text("This plan breaks limits")
        expect(page.locator(".proof")).to_contain_text(said)


def test_a_thousand_layers_on_64_stages(visit, server):
    """Tests that every cut of a large plan can be reached and moved, and how long its price takes."""
    problem = chain(model__layers=layers(1000), cluster=devices(64), training__num_stages=64)
    problem["search"] |= {"candidates": 1, "time_limit_s": 1}
    address, answer = what_if(server[1], problem)
    assert len(answer["candidates"][0]["stages"]) == 64
    page = visit(address)
    expect(figure(page, "Iteration time")).to_be_visible()
    cuts = page.get_by_role("slider")
    assert cuts.count() == 63
    cut = cuts.nth(40)
    before = cut.get_attribute("aria-valuenow")
    cut.press("End")
    assert int(cut.get_attribute("aria-valuenow")) > int(before)
    expect(figure(page, "Against the best plan")).to_contain_text("worse")
    page.set_viewport_size({"width": 360, "height": 760})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_key_that_may_only_look(visit, server):
    """Tests that whoever may not ask for prices is told so, and is not refused."""
    address, _ = what_if(server[1], chain())
    page = visit(f"{server[1].base_url}#/batches")
    page.route("**/v1/key", lambda route: route.fulfill(json={"name": "looks", "role": "read"}))
    page.reload()
    expect(page.get_by_role("button", name="Plan all")).to_be_disabled()
    page.evaluate(f"location.hash = '{address.partition('#')[2]}'")
    expect(page.get_by_text("Prices need a key with the role solve.")).to_be_visible()
