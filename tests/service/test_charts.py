"""Charts: what is in the specification, that Vega-Lite accepts it, and what is drawn."""

import itertools
import re
import time
from xml.etree import ElementTree

import pytest
import vl_convert
from small_timelines import timeline_of, training_problem

from partita.service.charts.drawing import VEGA_LITE, to_png, to_svg
from partita.service.charts.gathering import gathered
from partita.service.charts.style import writable
from partita.service.charts.timeline import pipeline_chart

PROBLEMS = {
    "1f1b": training_problem(),
    "zb_v": training_problem(chunks=2, schedule="zb_v"),
    "three stages each": training_problem(
        ranks=4, chunks=3, num_microbatches=4, schedule={"kind": "interleaved_1f1b", "chunks_per_rank": 3}
    ),
    "blocking": training_problem(communication="blocking"),
    "one rank": training_problem(ranks=1),
    "inference": training_problem(schedule="forward_only"),
}


@pytest.fixture(params=PROBLEMS, scope="module")
def plan(request):
    return timeline_of(PROBLEMS[request.param])


def texts(svg):
    return re.findall(r"<(?:text|tspan)[^>]*>([^<]+)</", svg)


@pytest.mark.parametrize("links", [False, True])
def test_vega_lite_accepts_it(plan, links):
    """Tests that the specification compiles to Vega, with the rows in order and a bar for everything."""
    timeline, _ = plan
    spec = pipeline_chart(*plan, links=links)
    assert spec["$schema"] == "https://vega.github.io/schema/vega-lite/v6.json"
    vega = vl_convert.vegalite_to_vega(spec, vl_version=VEGA_LITE)
    rows = next(scale["domain"] for scale in vega["scales"] if scale["name"] == "y")
    assert rows["sort"]
    assert "vega/v6" in vega["$schema"]
    bars = spec["data"]["values"]
    assert len(bars) == len(timeline.actions) + links * len(timeline.transfers)
    assert sum(bar["critical"] for bar in bars if bar["kind"] != "transfer") == sum(
        action.critical for action in timeline.actions
    )
    assert {bar["row"] for bar in bars} == set(spec["encoding"]["y"]["sort"])
    (unit,) = re.findall(r"\((.*)\)", spec["encoding"]["x"]["title"])
    assert unit == "s"
    assert max(bar["end"] for bar in bars) == pytest.approx(timeline.makespan_s)


def test_svg_has_a_row_for_every_rank(plan):
    """Tests that rows, kinds and microbatches are written."""
    timeline, _ = plan
    found = texts(to_svg(pipeline_chart(*plan)))
    rows = [memory.devices[0] for memory in timeline.memory]
    assert [text for text in found if text in rows] == rows
    assert "forward" in found
    assert any("The critical path spends" in text for text in found)
    assert {str(action.microbatch) for action in timeline.actions} <= set(found)


def test_svg_with_links():
    """Tests that links are rows below the ranks."""
    found = texts(to_svg(pipeline_chart(*timeline_of(PROBLEMS["1f1b"]), links=True)))
    assert [text for text in found if text.startswith("n0")] == [
        "n0:0",
        "n0 uplink + n1 uplink, stage 0 to 1",
        "n0 uplink + n1 uplink, stage 1 to 0",
    ]
    assert "transfer" in found


def test_names_are_only_text():
    """Tests that a name cannot break out of the SVG."""
    problem = training_problem()
    node = problem.cluster.nodes[0].model_copy(update={"name": "<b>&\"'"})
    cluster = problem.cluster.model_copy(update={"nodes": (node,)})
    svg = to_svg(pipeline_chart(*timeline_of(problem.model_copy(update={"cluster": cluster}))))
    assert "<b>" not in svg
    assert any(text.startswith("&lt;b&gt;&amp;") for text in texts(svg))


def test_names_are_letters_that_svg_can_hold():
    """Tests that a name with what XML forbids is drawn, told from others, and that no other name is changed."""
    timeline, candidate = timeline_of(PROBLEMS["one rank"])
    spec = pipeline_chart(timeline, candidate)
    names = ["a\ufffeb", "a\uffffb", "a\x01b", "a\ud800b"]
    spec["data"]["values"] = [bar | {"row": name} for name in names for bar in spec["data"]["values"]]
    spec["encoding"]["y"]["sort"] = names
    svg = to_svg(writable(spec))
    ElementTree.fromstring(svg)
    assert {"a\\ufffeb", "a\\uffffb", "a\\u0001b", "a\\ud800b"} <= set(texts(svg))
    kept = {"name": ["עברית\u202e", "🤷\u200d", "\xa0", 1.5, None, True]}
    assert writable(kept) == kept


def test_png(plan):
    """Tests that a PNG is one, and larger than nothing."""
    drawn = to_png(pipeline_chart(*plan))
    assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = int.from_bytes(drawn[16:20], "big"), int.from_bytes(drawn[20:24], "big")
    assert width > 2000
    assert height > 100


def test_numbers_only_where_they_fit():
    """Tests that the microbatch is left out of a bar that is too narrow for it."""
    timeline, candidate = timeline_of(training_problem())
    wide = texts(to_svg(pipeline_chart(timeline, candidate)))
    assert {str(action.microbatch) for action in timeline.actions} <= set(wide)
    narrow = texts(to_svg(pipeline_chart(*timeline_of(training_problem(num_microbatches=400)))))
    assert "399" not in narrow


def test_16_ranks_and_64_microbatches():
    """Tests that a chart of ordinary size is drawn in a few seconds, both ways."""
    plan = timeline_of(training_problem(ranks=16, num_microbatches=64, output_bytes=10))
    begin = time.monotonic()
    spec = pipeline_chart(*plan, links=True)
    assert len(spec["data"]["values"]) == 2 * 64 * (16 + 15)
    to_svg(spec)
    to_png(spec)
    assert time.monotonic() - begin < 20


def test_very_many_bars_are_gathered(monkeypatch):
    """Tests that steps say what takes most of each and how much is busy, that these add up, and what it says."""
    monkeypatch.setattr("partita.service.charts.timeline.MOST_BARS", 11)
    timeline, candidate = timeline_of(PROBLEMS["1f1b"])
    spec = pipeline_chart(timeline, candidate, links=True)
    bars = spec["data"]["values"]
    subtitle = " ".join(spec["title"]["subtitle"])
    assert f"Drawn in steps of {timeline.makespan_s / 800 * 1e3:.2f} ms: what takes most of each" in subtitle
    for memory in timeline.memory:
        own = [bar for bar in bars if bar["row"] == memory.devices[0]]
        drawn = sum((bar["end"] - bar["start"]) * bar["busy"] for bar in own)
        busy = sum(each.end_s - each.start_s for each in timeline.actions if each.rank == memory.rank)
        assert drawn == pytest.approx(busy, rel=0.01)
        assert all(first["end"] <= second["start"] + 1e-9 for first, second in itertools.pairwise(own))
    assert {bar["kind"] for bar in bars} == {"forward", "backward", "transfer"}
    assert any(bar["critical"] for bar in bars)
    assert {"forward", "backward", "transfer"} <= set(texts(to_svg(spec)))


def test_steps_join_what_looks_the_same():
    """Tests steps by hand: a kind that takes most of a step, a step half idle, and what is critical."""
    bars = [
        {"row": "a", "kind": "forward", "start": 0.0, "end": 2.6, "critical": True},
        {"row": "a", "kind": "backward", "start": 2.6, "end": 3.0, "critical": False},
        {"row": "a", "kind": "backward", "start": 3.5, "end": 4.0, "critical": False},
    ]
    found = gathered(bars, 8.0, 8)
    assert [(each["start"], each["end"], each["kind"], each["busy"], each["critical"]) for each in found] == [
        (0.0, 3.0, "forward", 1.0, True),
        (3.0, 4.0, "backward", 0.5, False),
    ]


def test_no_time_at_all():
    """Tests that a plan that takes no time is drawn too."""
    problem = training_problem(output_bytes=0, schedule="forward_only")
    layers = [layer.model_copy(update={"forward_s": 0.0}) for layer in problem.model.layers]
    problem = problem.model_copy(update={"model": problem.model.model_copy(update={"layers": tuple(layers)})})
    assert to_png(pipeline_chart(*timeline_of(problem)))
