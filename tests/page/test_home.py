"""The page at /: what it loads, and what is wrong in a problem."""

import json
import re

from playwright.sync_api import expect
from small_problems import chain

from partita.models.objective import FIELDS
from partita.service.reports import proof, report, wording

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def test_the_page_comes_from_this_server_alone(home, server):
    """Tests that it is there, under its policy; the fixture sees what it loads and writes."""
    expect(home.get_by_role("heading", level=1)).to_have_text("Plan pipeline parallelism")
    expect(home.get_by_label("Example")).to_be_visible()
    policy = server[1].get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    print(f"first contentful paint after {home.evaluate(PAINT):.0f} ms")  # a figure, no limit: others run beside it


DROP = """(box, text) => {
  const files = new DataTransfer();
  files.items.add(new File([text], "problem.json"));
  const event = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: files });
  return box.dispatchEvent(event);
}"""
"""Drops a file on the text; gives whether the browser would go on to show the file itself."""


def test_a_file_is_dropped(home):
    """Tests that the text of a file takes the place of what is written, and that the page stays."""
    text = json.dumps(chain())
    assert home.get_by_label("Problem").evaluate(DROP, text) is False
    expect(home.get_by_label("Problem")).to_have_value(text)


def test_what_is_wrong_is_marked_where_it_is(home):
    """Tests that faults stand at their lines, that the first is selected, and that each of a list leads to its own."""
    home.watch.allowed = {422}
    wrong = chain(training__num_stages="many", model__layers=[{"name": "a/b", "forward_s": -1}])
    text = json.dumps(wrong, indent=1)
    home.get_by_label("Problem").fill(text)
    home.get_by_role("button", name="Plan", exact=True).click()
    alert = home.get_by_role("alert").filter(has_text="2 things to correct")
    expect(alert).to_be_visible()
    field = home.get_by_label("Problem")
    selected = "field => field.value.slice(field.selectionStart, field.selectionEnd)"
    assert field.evaluate(selected) in ('"many"', "-1")
    lines = text.split("\n")
    for pointer, value in (("/training/num_stages", '"many"'), ("/model/layers/0/forward_s", "-1")):
        number = next(at for at, line in enumerate(lines, 1) if line.rstrip(",").endswith(value))
        alert.get_by_role("button", name=f"Line {number}, {pointer}", exact=True).click()
        assert field.evaluate(selected) == value
        expect(home.locator(".gutter .wrong", has_text=re.compile(f"^{number}$"))).to_be_visible()
    expect(home.locator(".band").first).to_have_text("must be at least 0")


def test_text_that_is_no_json(home):
    """Tests that the line is marked in which that shows."""
    home.watch.allowed = {400}
    home.get_by_label("Problem").fill('{\n "model": {},\n "cluster": oops\n}')
    home.get_by_role("button", name="Plan", exact=True).click()
    expect(home.get_by_role("alert").filter(has_text="1 thing to correct")).to_contain_text("Line 3")
    expect(home.locator(".gutter .wrong")).to_have_text("3")


def test_a_server_that_is_away(home):
    """Tests that a problem that cannot be sent stays, and that it is said why."""
    home.watch.allowed = {0}
    home.route("**/v1/plans", lambda route: route.abort())
    home.get_by_label("Problem").fill("{}")
    home.get_by_role("button", name="Plan", exact=True).click()
    expect(home.get_by_role("alert").filter(has_text="The server does not answer.")).to_be_visible()
    expect(home.get_by_label("Problem")).to_have_value("{}")


def test_stored_parts_are_named(home, server):
    """Tests that a stored model takes the place of the problem's own, and that what it then lacks is said."""
    home.watch.allowed = {422}
    assert server[1].put("/v1/profiles/tiny", json=chain()["model"]).is_success
    home.reload()
    home.get_by_label("Stored model").select_option("tiny")
    assert json.loads(home.get_by_label("Problem").input_value())["model"] == {"ref": "tiny"}
    home.get_by_role("button", name="Plan", exact=True).click()
    expect(home.get_by_role("alert").filter(has_text="to correct")).to_contain_text("/cluster")


def test_figures_are_written_as_by_the_command_line(home):
    """Tests that the page's scripts write times, sizes and shares as the reports do."""
    values = [0, 0.99999, 1.5e-9, 3.21e-5, 0.012345, 7.6543, 12345.6, 8.1e13, 1023, 1024, 5.5e9, 3e13]
    shares = [0, 0.00001, 0.0123, 0.5, 1.234]
    written = home.evaluate(
        "async ([values, shares]) => {"
        " const { seconds, sized, significant, percent } = await import('/page/format.js');"
        " return [...values.map((v) => [seconds(v), sized(Math.floor(v)), significant(v)]), shares.map(percent)]; }",
        [values, shares],
    )
    expected = [[wording.seconds(v), wording.sized(int(v)), wording.significant(v)] for v in values]
    assert written == [*expected, [wording.percent(v) for v in shares]]


def test_devices_are_named_as_by_the_command_line(home):
    """Tests that the page's scripts join devices to ranges as the reports do."""
    devices = ["a:b:0", "a:b:1", "c:3", "c:10", "c:9", "c:5", "a:b:2"]
    written = home.evaluate("async (devices) => (await import('/page/format.js')).ranges(devices)", devices)
    assert written == ", ".join(wording.device_ranges(devices))


def test_names_are_those_of_the_command_line(home):
    """Tests that metrics, objectives and simple rules are called as the reports call them."""
    named = home.evaluate(
        "async () => {"
        " const [format, objective, sides] ="
        "   await Promise.all(['format', 'objective', 'sides'].map((name) => import(`/page/${name}.js`)));"
        " return [format.FIELDS, objective.METRICS, sides.RULES]; }"
    )
    assert named == [dict(FIELDS), proof.METRICS, report.BASELINES]
