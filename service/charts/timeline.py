"""What every rank does when, with the critical path."""

from partita.models.answer import Candidate
from partita.service.charts.names import Themes
from partita.service.charts.style import CRITICAL, FONT_SIZE, INK, KINDS, THEMES, ZOOM, Spec, framed, written_where_room
from partita.service.reports.timeline_words import KINDS as WORDS
from partita.service.reports.timeline_words import critical_sentence, link_name, rank_name, scenario_words
from partita.service.reports.wording import counted, percent, seconds, unit_of_seconds
from partita.solver.timeline import Timeline

MOST_BARS = 50_000
"""Bars of the largest chart that is drawn."""
ROW_HEIGHT, LOW_ROW, FEW_ROWS = 22, 14, 40
"""Of a row, in pixels, and of one where there are more than so many."""


class TooManyBars(ValueError):
    """Says how many bars a chart would have, and how many can be drawn."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} bars are too many to draw, more than {MOST_BARS}; chrome-trace has no such limit")


def pipeline_chart(timeline: Timeline, candidate: Candidate, theme: Themes = "light", *, links: bool = False) -> Spec:
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
    kinds = [kind for kind in KINDS if any(bar["kind"] == kind for bar in bars)]
    title, critical = _title(timeline, candidate), critical_sentence(timeline)
    return framed(
        theme,
        title=title,
        subtitle=f"{critical} It is outlined.",
        description=f"Timeline of one iteration: {title}. {critical}",
        body={
            "data": {"values": bars},
            "height": (ROW_HEIGHT if len(rows) <= FEW_ROWS else LOW_ROW) * len(rows),
            "encoding": {
                "y": {"field": "row", "type": "nominal", "sort": rows, "title": None, "axis": {"labelLimit": 400}},
                "x": {
                    "field": "start",
                    "type": "quantitative",
                    "title": f"Time ({unit})",
                    "scale": {"domain": [0, timeline.makespan_s / size], "nice": False},
                },
            },
            "layer": [
                _bar_layer(kinds, unit, max(_chunks(candidate).values()), theme),
                _outline_layer(),
                _number_layer(),
            ],
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


def _bar_layer(kinds: list[str], unit: str, chunks: int, theme: Themes) -> Spec:
    """Draw all bars; where ranks run several stages, those of the later ones are paler. The zoom belongs to them."""
    shown = [("kind", "Kind"), ("stage", "Stage"), ("microbatch", "Microbatch"), ("layers", "Layers")]
    shown += [("took", "Takes"), ("critical", "On the critical path")]
    encoding: Spec = {
        "x2": {"field": "end"},
        "color": {
            "field": "kind",
            "type": "nominal",
            "scale": {"domain": kinds, "range": [KINDS[kind] for kind in kinds]},
            "legend": {"title": None},
        },
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
            "legend": {"title": "Stage of its rank"},
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
