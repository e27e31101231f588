"""Charts as Vega-Lite 6 specifications: plain dicts, drawn here as SVG or PNG and by a browser as they stand."""

from typing import Any

from partita.models.answer import Candidate
from partita.service.reports.timeline_words import KINDS, critical_sentence, link_name, rank_name, scenario_words
from partita.service.reports.wording import counted, seconds, unit_of_seconds
from partita.solver.timeline import Timeline

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
VEGA_LITE = "6.4"
"""The version that draws here."""
MOST_BARS = 50_000
"""Bars of the largest chart that is drawn."""
WIDTH, ROW_HEIGHT = 1200, 22
"""Of the plot and of a row, in pixels."""
FONT_SIZE, DIGIT_WIDTH = 10, 6
"""Of the microbatches' numbers, in pixels."""
PNG_SCALE = 2
"""Pixels of a PNG per pixel of the chart."""
COLORS = {
    "forward": "#8ab6e8",
    "backward": "#8fce9b",
    "input gradient": "#7fd0d0",
    "weight gradient": "#f0c36d",
    "transfer": "#c9c9c9",
}
CRITICAL = "#c0282d"


class TooManyBars(ValueError):
    """Says how many bars a chart would have, and how many can be drawn."""

    def __init__(self, count: int) -> None:
        super().__init__(f"a chart of {count} bars is too large to draw; at most {MOST_BARS} are drawn")


def pipeline_chart(timeline: Timeline, candidate: Candidate, *, links: bool = False) -> Spec:
    """Draw what every rank does when, and below it what the links carry where that is asked for.

    Bars are colored by kind, carry the microbatch where it can be read, and are outlined where they are on the critical
    path.

    Raises
    ------
    TooManyBars
        When no viewer would draw it in reasonable time.
    """
    count = len(timeline.actions) + links * len(timeline.transfers)
    if count > MOST_BARS:
        raise TooManyBars(count)
    unit, size = unit_of_seconds(timeline.makespan_s)
    bars = _action_bars(timeline, candidate, size)
    rows = [rank_name(memory.devices) for memory in timeline.memory]
    if links:
        bars += _transfer_bars(timeline, size)
        rows += list(dict.fromkeys(link_name(transfer) for transfer in timeline.transfers))
    kinds = [kind for kind in COLORS if any(bar["kind"] == kind for bar in bars)]
    return {
        "$schema": SCHEMA,
        "title": {
            "text": _title(timeline, candidate),
            "subtitle": f"{critical_sentence(timeline)} It is outlined.",
            "anchor": "start",
        },
        "data": {"values": bars},
        "width": WIDTH,
        "height": {"step": ROW_HEIGHT},
        "encoding": {
            "y": {"field": "row", "type": "nominal", "sort": rows, "title": None, "axis": {"labelLimit": 400}},
            "x": {
                "field": "start",
                "type": "quantitative",
                "title": f"Time ({unit})",
                "scale": {"domain": [0, timeline.makespan_s / size], "nice": False},
            },
        },
        "layer": [_bar_layer(kinds, unit, max(_chunks(candidate).values())), _outline_layer(), _number_layer()],
        "config": {"view": {"stroke": None}, "axis": {"grid": False}},
    }


def to_svg(spec: Spec) -> str:
    """Draw a chart as SVG."""
    import vl_convert

    return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)


def to_png(spec: Spec) -> bytes:
    """Draw a chart as PNG."""
    import vl_convert

    return vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=PNG_SCALE)


def _title(timeline: Timeline, candidate: Candidate) -> str:
    kind, stages = candidate.schedule.kind, counted(len(candidate.stages), "stage")
    ranks, scenario = counted(timeline.num_ranks, "rank"), scenario_words(candidate)
    return f"{kind}, {stages} on {ranks}{scenario}: makespan {seconds(timeline.makespan_s)}"


def _chunks(candidate: Candidate) -> dict[int, int]:
    """Give the place of every stage among those of its rank, from 1."""
    found: dict[int, list[int]] = {}
    for stage in candidate.stages:
        found.setdefault(stage.rank, []).append(stage.index)
    return {stage: number for stages in found.values() for number, stage in enumerate(sorted(stages), start=1)}


def _action_bars(timeline: Timeline, candidate: Candidate, unit_s: float) -> list[Spec]:
    """Give the data of the actions; ``number`` is there where the bar is wide enough for it."""
    chunks, layers = _chunks(candidate), {stage.index: len(stage.layers) for stage in candidate.stages}
    bars: list[Spec] = []
    for action in timeline.actions:
        took = action.end_s - action.start_s
        bars.append(
            {
                "row": rank_name(action.devices),
                "kind": KINDS[action.kind],
                "start": action.start_s / unit_s,
                "end": action.end_s / unit_s,
                "stage": str(action.stage),
                "chunk": chunks[action.stage],
                "microbatch": action.microbatch,
                "layers": layers[action.stage],
                "took": seconds(took),
                "critical": action.critical,
            }
        )
        pixels = WIDTH * took / timeline.makespan_s if timeline.makespan_s > 0 else 0.0
        if pixels >= DIGIT_WIDTH * len(str(action.microbatch)) + 2:
            middle = (action.start_s + action.end_s) / 2 / unit_s
            bars[-1] |= {"number": str(action.microbatch), "middle": middle}
    return bars


def _transfer_bars(timeline: Timeline, unit_s: float) -> list[Spec]:
    """Give the data of the transfers."""
    return [
        {
            "row": link_name(transfer),
            "kind": "transfer",
            "start": transfer.start_s / unit_s,
            "end": transfer.end_s / unit_s,
            "stage": f"{transfer.from_stage} to {transfer.to_stage}",
            "chunk": 1,
            "microbatch": transfer.microbatch,
            "took": seconds(transfer.end_s - transfer.start_s),
            "critical": transfer.critical,
        }
        for transfer in timeline.transfers
    ]


def _bar_layer(kinds: list[str], unit: str, chunks: int) -> Spec:
    """Draw all bars; where ranks run several stages, those of the later ones are paler."""
    shown = [("kind", "Kind"), ("stage", "Stage"), ("microbatch", "Microbatch"), ("layers", "Layers")]
    shown += [("start", f"Start ({unit})"), ("took", "Takes"), ("critical", "On the critical path")]
    encoding: Spec = {
        "x2": {"field": "end"},
        "color": {
            "field": "kind",
            "type": "nominal",
            "scale": {"domain": kinds, "range": [COLORS[kind] for kind in kinds]},
            "legend": {"orient": "bottom", "title": None},
        },
        "tooltip": [{"field": field, "title": title} for field, title in shown],
    }
    if chunks > 1:
        encoding["opacity"] = {
            "field": "chunk",
            "type": "ordinal",
            "scale": {
                "domain": list(range(1, chunks + 1)),
                "range": [1.0 - 0.6 * i / (chunks - 1) for i in range(chunks)],
            },
            "legend": {"orient": "bottom", "title": "Stage of its rank"},
        }
    return {"mark": {"type": "bar", "stroke": "white", "strokeWidth": 0.5}, "encoding": encoding}


def _outline_layer() -> Spec:
    """Outline what is on the critical path."""
    return {
        "transform": [{"filter": "datum.critical"}],
        "mark": {"type": "bar", "fill": None, "stroke": CRITICAL, "strokeWidth": 1.5, "tooltip": None},
        "encoding": {"x2": {"field": "end"}},
    }


def _number_layer() -> Spec:
    """Write the microbatches where there is room."""
    return {
        "transform": [{"filter": "isValid(datum.number)"}],
        "mark": {"type": "text", "fontSize": FONT_SIZE, "tooltip": None},
        "encoding": {"x": {"field": "middle", "type": "quantitative"}, "text": {"field": "number", "type": "nominal"}},
    }
