"""What every rank does when, with the critical path."""

from partita.models.answer import Candidate
from partita.service.charts.gathering import gathered, steps_of
from partita.service.charts.names import Themes
from partita.service.charts.style import (
    CRITICAL,
    FONT_SIZE,
    INK,
    KINDS,
    THEMES,
    ZOOM,
    Spec,
    framed,
    short_labels,
    written_where_room,
)
from partita.service.reports.timeline_words import KINDS as WORDS
from partita.service.reports.timeline_words import critical_sentence, link_name, rank_name, scenario_words
from partita.service.reports.wording import counted, percent, seconds, unit_of_seconds
from partita.solver.timeline import Timeline

MOST_BARS = 10_000
"""Bars that are drawn one by one; a browser takes about a second for so many."""
ROW_HEIGHT, LOW_ROW, FEW_ROWS = 22, 14, 40
"""Of a row, in pixels, and of one where there are more than so many."""


def pipeline_chart(timeline: Timeline, candidate: Candidate, theme: Themes = "light", *, links: bool = False) -> Spec:
    """Draw what every rank does when, and below it what the links carry where that is asked for.

    Bars are colored by kind, carry the microbatch where it can be read, and are outlined where they are on the critical
    path. Very many are gathered into steps of time.
    """
    unit, size = unit_of_seconds(timeline.makespan_s)
    end = timeline.makespan_s / size
    bars = _action_bars(timeline, candidate, size)
    rows = [rank_name(memory.devices) for memory in timeline.memory]
    if links:
        bars += _transfer_bars(timeline, size)
        rows += list(dict.fromkeys(link_name(transfer) for transfer in timeline.transfers))
    title, critical, how = _title(timeline, candidate), critical_sentence(timeline), ""
    layers = [_bar_layer(unit, max(_chunks(candidate).values()), theme), _outline_layer(), _number_layer()]
    if len(bars) > MOST_BARS:
        steps = steps_of(len(rows))
        bars = gathered(bars, end, steps)
        took = seconds(timeline.makespan_s / steps)
        how = f" Drawn in steps of {took}: what takes most of each, paler where devices wait in it."
        layers = [_step_layer(unit), _outline_layer()]
    kinds = [kind for kind in KINDS if any(bar["kind"] == kind for bar in bars)]
    layers[0]["encoding"]["color"] = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": kinds, "range": [KINDS[kind] for kind in kinds]},
        "legend": {"title": None},
    }
    return framed(
        theme,
        title=title,
        subtitle=f"{critical} It is outlined.{how}",
        description=f"Timeline of one iteration: {title}. {critical}",
        body={
            "data": {"values": bars},
            "height": (ROW_HEIGHT if len(rows) <= FEW_ROWS else LOW_ROW) * len(rows),
            "encoding": {
                "y": {"field": "row", "type": "nominal", "sort": rows, "title": None, "axis": short_labels(60, 16)},
                "x": {
                    "field": "start",
                    "type": "quantitative",
                    "title": f"Time ({unit})",
                    "scale": {"domain": [0, end], "nice": False},
                },
            },
            "layer": layers,
        },
    )


def _title(timeline: Timeline, candidate: Candidate) -> str:
    """Name schedule, size and makespan, and how much of it devices wait."""
    kind, stages = candidate.schedule.kind, counted(len(candidate.stages), "stage")
    ranks, scenario = counted(timeline.num_ranks, "rank"), scenario_words(candidate)
    idle = candidate.as_shown.metrics.bubble_fraction
    bubble = "" if idle is None else f", bubble {percent(idle)}"
    return f"{kind}, {stages} on {ranks}{scenario}: makespan {seconds(timeline.makespan_s)}{bubble}"


def _chunks(candidate: Candidate) -> dict[int, int]:
    """Give the place of every stage among those of its rank, from 1."""
    found: dict[int, list[int]] = {}
    for stage in candidate.stages:
        found.setdefault(stage.rank, []).append(stage.index)
    return {stage: number for stages in found.values() for number, stage in enumerate(sorted(stages), start=1)}


def _action_bars(timeline: Timeline, candidate: Candidate, unit_s: float) -> list[Spec]:
    """Give the data of the actions."""
    chunks, layers = _chunks(candidate), {stage.index: len(stage.layers) for stage in candidate.stages}
    return [
        {
            "row": rank_name(action.devices),
            "kind": WORDS[action.kind],
            "start": action.start_s / unit_s,
            "end": action.end_s / unit_s,
            "stage": str(action.stage),
            "chunk": chunks[action.stage],
            "microbatch": action.microbatch,
            "layers": layers[action.stage],
            "took": seconds(action.end_s - action.start_s),
            "critical": action.critical,
        }
        for action in timeline.actions
    ]


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


def _bar_layer(unit: str, chunks: int, theme: Themes) -> Spec:
    """Draw all bars; where ranks run several stages, those of the later ones are paler. The zoom belongs to them."""
    shown = [("kind", "Kind"), ("stage", "Stage"), ("microbatch", "Microbatch"), ("layers", "Layers")]
    shown += [("took", "Takes"), ("critical", "On the critical path")]
    encoding: Spec = {
        "x2": {"field": "end"},
        "tooltip": [
            *({"field": field, "title": title} for field, title in shown),
            {"field": "start", "type": "quantitative", "title": f"Starts ({unit})", "format": ".4~r"},
        ],
    }
    if chunks > 1:
        encoding["opacity"] = {
            "field": "chunk",
            "type": "ordinal",
            "scale": {
                "domain": list(range(1, chunks + 1)),
                "range": [1.0 - 0.6 * i / (chunks - 1) for i in range(chunks)],
            },
            "legend": {"title": "Stage of its rank", "symbolFillColor": THEMES[theme].quiet},
        }
    return {
        "params": [ZOOM],
        "mark": {
            "type": "bar",
            "stroke": THEMES[theme].background,
            "strokeWidth": 0.5,
            "clip": True,
            "aria": False,  # thousands of bars: the description says what is to be seen in them
        },
        "encoding": encoding,
    }


def _step_layer(unit: str) -> Spec:
    """Draw the steps into which very many bars are gathered."""
    return {
        "params": [ZOOM],
        "mark": {"type": "bar", "clip": True, "aria": False},
        "encoding": {
            "x2": {"field": "end"},
            "opacity": {
                "field": "busy",
                "type": "quantitative",
                "scale": {"domain": [0, 1], "range": [0.1, 1]},
                "legend": None,
            },
            "tooltip": [
                {"field": "row", "title": "Devices"},
                {"field": "kind", "title": "Mostly"},
                {"field": "busy", "title": "Busy", "format": ".0%"},
                {"field": "start", "type": "quantitative", "title": f"Starts ({unit})", "format": ".4~r"},
            ],
        },
    }


def _outline_layer() -> Spec:
    """Outline what is on the critical path."""
    outline = {"fill": None, "stroke": CRITICAL, "strokeWidth": 1.5, "tooltip": None, "clip": True, "aria": False}
    return {
        "transform": [{"filter": "datum.critical"}],
        "mark": {"type": "bar", **outline},
        "encoding": {"x2": {"field": "end"}},
    }


def _number_layer() -> Spec:
    """Write the microbatches where there is room, which zooming may give."""
    written = {"fontSize": FONT_SIZE, "color": INK, "tooltip": None, "clip": True, "aria": False}
    return {
        "transform": [{"calculate": "(datum.start + datum.end) / 2", "as": "middle"}],
        "mark": {"type": "text", **written},
        "encoding": {
            "x": {"field": "middle", "type": "quantitative"},
            "text": written_where_room("microbatch"),
        },
    }
