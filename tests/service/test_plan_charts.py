"""The charts of plans, answers and fronts: their figures are the answer's, and all of them can be drawn."""

import itertools
import json
import re

import pytest
from drawn_answers import ANSWERS, answer, chain, front, priced

from partita.models.answer import Answer
from partita.models.errors import InvalidInput
from partita.service.charts.charts import PLAN_CHARTS, Wanted, draw
from partita.service.charts.drawing import to_svg
from partita.service.charts.names import CHARTS, charts_of
from partita.service.charts.style import ITEMS, KINDS, STAGES, THEMES
from partita.service.reports.wording import seconds, sized

UNITS = {
    "s": 1.0,
    "ms": 1e-3,
    "µs": 1e-6,
    "bytes": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "tokens/s": 1,
}


def chart(of, name, **wanted):
    return draw(Wanted(name, **wanted), answer(of) if isinstance(of, str) else of)


def data(spec, field):
    """Give the rows of the first layer whose data has a field, and the size of the unit of the x axis."""
    rows = next(
        layer["data"]["values"]
        for layer in spec["layer"]
        if any(field in row for row in layer.get("data", spec.get("data"))["values"])
    )
    unit = re.search(r"\(([^)]*)\)$", spec["encoding"]["x"]["title"])
    return rows, UNITS[unit[1]] if unit else 1.0


def texts(svg):
    return re.findall(r"<(?:text|tspan)[^>]*>([^<]+)</", svg)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("of", "name"),
    [(of, name) for of in ANSWERS for name in charts_of("plan") if (of, name) != ("steady", "timeline")],
)
def test_every_chart_is_drawn(of, name, theme):
    """Tests that Vega-Lite draws it, at a size that a page can show, the same each time, and with its description."""
    spec = chart(of, name, theme=theme)
    json.dumps(spec, allow_nan=False)
    assert spec["width"] == "container"
    assert len(spec["description"]) > 20
    assert spec["background"] == THEMES[theme].background
    svg = to_svg(spec)
    width, height = (float(each) for each in re.search(r'width="([\d.]+)" height="([\d.]+)"', svg).groups())
    assert 1000 < width < 1800
    assert 90 < height < 2000
    assert "NaN" not in svg
    assert spec["title"]["text"] in "".join(texts(svg)).replace("&#39;", "'")
    assert to_svg(chart(of, name, theme=theme)) == svg


@pytest.mark.parametrize("of", ANSWERS)
def test_times_are_those_of_the_answer(of):
    """Tests that the parts of every stage add up to its times, and that the bottleneck is marked."""
    plan = answer(of).candidates[0].as_shown
    rows, unit = data(chart(of, "times"), "seconds") if of != "no time" else ([], 1.0)
    for stage in plan.stages:
        own = [row for row in rows if row["stage"] == stage.index and row["kind"] != "transfer"]
        turns = stage.data_parallel or 1
        assert sum(row["seconds"] for row in own) == pytest.approx((stage.forward_s + stage.backward_s) / turns)
        assert sum(row["end"] - row["start"] for row in own) * unit == pytest.approx(sum(row["seconds"] for row in own))
    spec = chart(of, "times")
    ends, _ = data(spec, "busy")
    marks = [row for layer in spec["layer"] for row in layer["data"]["values"] if row.get("name")]
    decides = [row for row in (*ends, *marks) if row["decides"]]
    limit = plan.metrics.bottleneck_time_s
    assert max(row["busy"] for row in ends) <= limit * (1 + 1e-6)
    assert decides or of == "steady"
    assert all(row["busy"] == pytest.approx(limit) for row in decides if "busy" in row)
    assert seconds(limit) in spec["description"]
    (line,), unit = data(spec, "limit")
    assert line["limit"] * unit == pytest.approx(limit)


def test_a_transfer_can_be_the_bottleneck():
    """Tests a plan whose slow link takes longer than any stage."""
    problem = chain(16, 8, 2, 4)
    problem["cluster"]["nodes"][0]["uplink"] = {"bandwidth_bytes_per_s": 1e7}
    spec = chart(priced(problem, 8), "times")
    assert ": the transfers from stage 3 to 4" in spec["title"]["text"]
    assert not any(row["decides"] for row in data(spec, "busy")[0])


def test_recompute_and_weight_gradients_have_parts_of_their_own():
    """Tests which parts there are where layers are recomputed, backward passes split and transfers occupy stages."""
    kinds = {of: {row["kind"] for row in data(chart(of, "times"), "seconds")[0]} for of in ANSWERS if of != "no time"}
    assert kinds["planned"] == {"forward", "backward"}
    assert kinds["recompute"] == {"forward", "backward", "recompute"}
    assert kinds["inference"] == {"forward"}
    assert kinds["blocking"] == {"forward", "backward", "transfer"}
    assert kinds["split"] == {"forward", "input gradient"}


@pytest.mark.parametrize("of", ANSWERS)
def test_memory_is_that_of_the_answer(of):
    """Tests that the items add up to the totals, device by device, against what each has."""
    plan = answer(of).candidates[0]
    spec = chart(of, "memory")
    parts, unit = data(spec, "item")
    assert {part["item"] for part in parts} <= set(ITEMS)
    ends, _ = data(spec, "total_bytes")
    assert sum(part["bytes"] for part in parts) == sum(stage.memory.total_bytes for stage in plan.stages)
    assert max(end["total_bytes"] for end in ends) == answer(of).candidates[0].as_shown.metrics.peak_memory_bytes
    for end in ends:
        own = [part for part in parts if part["row"] == end["row"]]
        assert sum(part["bytes"] for part in own) == end["total_bytes"]
        assert max(part["end"] for part in own) * unit == pytest.approx(end["total_bytes"])
        assert end["decides"] == (end["total_bytes"] > end["capacity_bytes"])
    assert sized(max(end["total_bytes"] for end in ends)) in spec["description"]


def test_too_little_memory_is_marked():
    """Tests that the devices that lack room are marked, and those alone."""
    ends, _ = data(chart("too small", "memory"), "total_bytes")
    assert {end["decides"] for end in ends} == {True, False}


@pytest.mark.parametrize("of", ANSWERS)
def test_layers_are_those_of_the_answer(of):
    """Tests that every layer is there, in its stage and as wide as it takes, and the bytes of every cut."""
    plan = answer(of).candidates[0]
    spec = chart(of, "layers")
    blocks, unit = data(spec, "layer")
    assert [block["layer"] for block in blocks] == [name for stage in plan.stages for name in stage.layers]
    assert len({block["short"] for block in blocks}) == len(blocks)
    assert all(first["end"] == second["start"] for first, second in itertools.pairwise(blocks))
    for stage in plan.stages:
        own = [block for block in blocks if block["stage"] == stage.index]
        assert [block["layer"] for block in own] == list(stage.layers)
        if of not in ("steady", "no time"):
            whole = stage.forward_s + stage.backward_s
            assert (own[-1]["end"] - own[0]["start"]) * unit == pytest.approx(whole)
    if len(plan.stages) > 1:
        cuts, _ = data(spec, "cut")
        assert len(cuts) == len(plan.stages) - 1
        relayed = [each for each in plan.boundaries if each.to_stage == each.from_stage + 1]
        if len(relayed) == len(plan.boundaries):
            assert [cut["bytes"] for cut in cuts] == [each.forward_bytes + each.backward_bytes for each in relayed]
        assert sized(max(cut["bytes"] for cut in cuts)) in spec["description"]


def test_long_names_stay_distinct_and_short():
    """Tests that a layer's name loses what all long ones share."""
    blocks, _ = data(chart("many layers", "layers"), "layer")
    assert [blocks[12]["short"], blocks[999]["short"]] == ["…12…", "…999…"]


@pytest.mark.parametrize("of", ANSWERS)
def test_placement_is_that_of_the_answer(of):
    """Tests that every stage is on each of its nodes with all its devices, and that every boundary has its link."""
    plan = answer(of).candidates[0]
    spec = chart(of, "placement")
    boxes, _ = data(spec, "devices")
    for stage in plan.stages:
        own = [box for box in boxes if box["stage"] == stage.index]
        devices = set()
        for box in own:
            for run in box["devices"].split(", "):
                first, _, last = run.partition("-")
                devices |= {f"{box['node']}:{number}" for number in range(int(first), int(last or first) + 1)}
        assert devices == set(stage.devices)
    if plan.boundaries:
        links, _ = data(spec, "link")
        assert {link["name"] for link in links} == {
            f"stage {each.from_stage} to {each.to_stage}" for each in plan.boundaries
        }
        apart = {link["name"] for link in links if link["kind"] == "between nodes"}
        assert bool(apart) == (plan.as_shown.metrics.inter_node_bytes > 0)


@pytest.mark.parametrize("of", ANSWERS)
def test_comparison_has_all_plans(of):
    """Tests that every plan and baseline is there with its objective, and the bound where one is proven."""
    found = answer(of)
    spec = chart(of, "comparison")
    rows = spec["layer"][-1]["data"]["values"]
    assert [row["row"] for row in rows][: len(found.candidates)] == [f"plan {each.rank}" for each in found.candidates]
    assert len(rows) == len(found.candidates) + len(found.baselines)
    if found.objective == "iteration_time":
        every = [each.metrics for each in (*found.candidates, *found.baselines.values())]
        assert [row["figure"] for row in rows] == [metrics.iteration_time_s for metrics in every]
    elif found.objective == "tokens_per_second":
        assert rows[0]["figure"] == found.candidates[0].metrics.tokens_per_second
    bounds = [layer for layer in spec["layer"] if "bound" in layer["data"]["values"][0]]
    assert len(bounds) == (found.best_bound is not None)


def test_comparison_says_what_differs():
    """Tests schedules, sizes and configurations, against the best plan."""
    rows = chart("compared", "comparison")["layer"][-1]["data"]["values"]
    assert rows[0]["differs"].startswith("layers ")
    assert all(row["differs"].startswith(("zb_", "interleaved", "1f1b")) for row in rows[1:3])
    rows = chart("degrees", "comparison")["layer"][-1]["data"]["values"]
    assert any("microbatches " in row["differs"] for row in rows)
    rows = chart("planned", "comparison")["layer"][-1]["data"]["values"]
    assert rows[1]["text"].split(": ")[1] == rows[1]["differs"]
    assert re.fullmatch(r"layers [\d ]+", rows[1]["differs"])
    assert "(+" in rows[1]["text"]


def test_comparison_draws_the_best_of_very_many():
    """Tests that of 500 plans the best are drawn, and that it says so."""
    found = answer("planned")
    many = found.model_copy(
        update={"candidates": tuple(found.candidates[0].model_copy(update={"rank": rank}) for rank in range(1, 501))}
    )
    spec = chart(many, "comparison")
    assert len(spec["layer"][-1]["data"]["values"]) == 60 + len(found.baselines)
    assert "The 60 best are drawn." in " ".join(spec["title"]["subtitle"])


@pytest.mark.parametrize(
    "metrics",
    [
        ("iteration_time_s", "peak_memory_bytes"),
        ("tokens_per_second", "num_devices"),
        ("peak_memory_bytes", "bottleneck_time_s"),
    ],
)
@pytest.mark.parametrize("theme", THEMES)
def test_front(metrics, theme):
    """Tests that every point is there with both values and its number, and that the staircase joins them."""
    found = front(*metrics)
    spec = chart(found, "front", theme=theme)
    assert to_svg(spec)
    points, unit = data(spec, "point")
    assert sorted(point["point"] for point in points) == list(range(1, len(found.points) + 1))
    for point in points:
        first, _ = found.points[point["point"] - 1].values
        assert point["first"] * unit == pytest.approx(first)
    assert f"{len(found.points)} point" in spec["description"]
    assert len(found.points) > 1


def test_plans_of_a_front():
    """Tests that the charts of plans draw the points of a front."""
    found = front()
    last = len(found.points)
    spec = chart(found, "memory", candidate=last)
    assert sized(found.points[-1].plan.metrics.peak_memory_bytes) in spec["description"]
    with pytest.raises(InvalidInput, match=f"there are {last} points, and no number {last + 1}"):
        chart(found, "memory", candidate=last + 1)


def test_unexplored_parts_of_a_front_are_shaded():
    """Tests that what is left out is shown, within the plot."""
    found = front(points=2)
    assert found.unexplored
    spec = chart(found, "front")
    regions, _ = data(spec, "first_least")
    assert len(regions) == len(found.unexplored)
    low, high = spec["encoding"]["y"]["scale"]["domain"]
    assert all(low <= region["second_least"] < region["second_most"] <= high for region in regions)
    assert "Shaded: not explored." in " ".join(spec["title"]["subtitle"])


def test_scenarios():
    """Tests that the scenario asked for is drawn, and named."""
    longest, short = chart("scenarios", "times"), chart("scenarios", "times", scenario="short")
    assert "scenario 'long', the longest" in longest["title"]["text"]
    assert "scenario 'short'" in short["title"]["text"]
    (first,), one = data(longest, "limit")
    (second,), other = data(short, "limit")
    assert first["limit"] * one > second["limit"] * other


def test_without_plans():
    """Tests that an answer without a plan is refused, whatever is to be drawn."""
    empty: Answer = answer("planned").model_copy(update={"candidates": ()})
    for name in charts_of("plan"):
        with pytest.raises(InvalidInput, match="there are 0 candidates"):
            chart(empty, name)


@pytest.mark.parametrize(
    ("part", "changes", "place"),
    [
        ("stages", {"index": 1}, "/plan/stages/0/index"),
        ("stages", {"devices": ()}, "/plan/stages/0"),
        ("stages", {"devices": ("node0",)}, "/plan/stages/0"),
        ("stages", {"layers": ()}, "/plan/stages/0"),
        ("boundaries", {"to_stage": 9}, "/plan/boundaries/0"),
        ("boundaries", {"from_stage": 1}, "/plan/boundaries/0"),
    ],
)
def test_what_does_not_belong_together_is_refused(part, changes, place):
    """Tests that a plan from a file that somebody changed is refused at its place, whatever is to be drawn."""
    found = answer("planned")
    plan = found.candidates[0]
    first, *others = getattr(plan, part)
    changed = plan.model_copy(update={part: (first.model_copy(update=changes), *others)})
    for name in PLAN_CHARTS:
        with pytest.raises(InvalidInput) as error:
            chart(found.model_copy(update={"candidates": (changed,)}), name)
        assert [fault.pointer for fault in error.value.faults] == [place]


def test_charts_are_described():
    """Tests that every chart has a title and a sentence."""
    assert all(each.title and each.summary.endswith(".") for each in CHARTS.values())


# Machado, Oliveira and Fernandes, A physiologically-based model for simulation of color vision deficiency, 2009.
BLIND = {
    "full sight": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


def linear(color):
    """Give the linear light of a color."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def lab(light):
    """Give CIE L*a*b* of linear light under D65."""
    r, g, b = (min(1.0, max(0.0, each)) for each in light)
    white = (0.95047, 1.0, 1.08883)
    xyz = (
        0.4124 * r + 0.3576 * g + 0.1805 * b,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        0.0193 * r + 0.1192 * g + 0.9505 * b,
    )
    f = [
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (v / w for v, w in zip(xyz, white, strict=True))
    ]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def apart(first, second, sight):
    """Give how different two colors look (Delta E 1976)."""
    seen = [
        lab([sum(weight * part for weight, part in zip(row, linear(color), strict=True)) for row in BLIND[sight]])
        for color in (first, second)
    ]
    return sum((one - other) ** 2 for one, other in zip(*seen, strict=True)) ** 0.5


@pytest.mark.parametrize("sight", BLIND)
@pytest.mark.parametrize("palette", [KINDS, ITEMS, STAGES], ids=["kinds", "items", "stages"])
def test_colors_are_told_apart(palette, sight):
    """Tests that colors that lie beside each other differ for the color-blind too; 10 is seen at a glance."""
    colors = list(palette.values()) if isinstance(palette, dict) else list(palette)
    pairs = [*itertools.pairwise(colors), (colors[-1], colors[0])] if palette is STAGES else itertools.pairwise(colors)
    for first, second in pairs:
        assert apart(first, second, sight) > 10, (first, second)


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_text_can_be_read(theme):
    """Tests the contrast of all text with its background: 4.5 to 1, as WCAG 2 asks."""

    def luminance(color):
        red, green, blue = linear(color)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for color in (theme.text, theme.quiet, theme.decides):
        light, dark = sorted((luminance(color), luminance(theme.background)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 4.5


def test_a_number_stays_with_its_unit():
    """Tests that no line of a subtitle ends between the two."""
    lines = [
        line for of in ANSWERS for name in ("layers", "placement") for line in chart(of, name)["title"]["subtitle"]
    ]
    assert not [line for line in lines if re.match(r"(MiB|KiB|ms|µs|B)\b", line)]
    assert not [line for line in lines if "\ufdd0" in line]
