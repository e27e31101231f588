"""The ranks of a plan as rows of a picture."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from partita.models.answer import Candidate
from partita.models.answer_plan import Stage
from partita.service.charts.names import Themes
from partita.service.charts.style import FONT_SIZE, NARROW, THEMES, Spec, shortened
from partita.service.reports.wording import device_ranges, first_few, spans

MOST_RUNS = 3
"""Most ranges of stages that are named in a label."""
MOST_LETTERS = 26
"""Letters of a range of devices in a label."""
FEW, TALL, LOW = 40, 24, 15
"""Up to so many rows are tall; pixels of a tall row and of a low one. More rows make the picture higher."""


@dataclass(frozen=True, slots=True)
class Row:
    """A rank with its stages, and what to call it: the stages and the devices."""

    rank: int
    stages: tuple[Stage, ...]
    label: str


def rows_of(candidate: Candidate) -> tuple[Row, ...]:
    """Give the ranks in their order."""
    of_rank: dict[int, list[Stage]] = {}
    for stage in candidate.stages:
        of_rank.setdefault(stage.rank, []).append(stage)
    return tuple(
        Row(rank, tuple(stages), f"{_numbers(stages)} · {_devices(stages[0].devices)}")
        for rank, stages in sorted(of_rank.items())
    )


def _devices(devices: tuple[str, ...]) -> str:
    """Name devices by the first range of them."""
    first, *others = device_ranges(devices)
    return f"{shortened(first, MOST_LETTERS)}{f' and {len(others)} more' if others else ''}"


def _numbers(stages: list[Stage]) -> str:
    """Name the stages of a rank by their numbers."""
    runs = [str(first) if first == last else f"{first}-{last}" for first, last in spans(each.index for each in stages)]
    return f"{'stage' if len(stages) == 1 else 'stages'} {first_few(runs, MOST_RUNS)}"


def row_channel(labels: list[str]) -> Spec:
    """Give the channel of rows with these labels, from the top down."""
    limit = {"expr": f"{NARROW} ? 100 : 260"}
    axis = {"labelLimit": limit, "labelPadding": 6, "ticks": False, "domain": False}
    return {"field": "row", "type": "nominal", "sort": labels, "title": None, "axis": axis}


def beside_layer(ends: list[Spec], theme: Themes) -> Spec:
    """Write the field ``text`` of every row right of the plot, where ``decides`` in the color for that.

    A phone has no room for it.
    """
    colors = THEMES[theme]
    return {
        "data": {"values": ends},
        "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": FONT_SIZE, "aria": False},
        "encoding": {
            "x": {"value": "width"},
            "text": {"value": {"expr": f"{NARROW} ? '' : datum.text"}},
            "color": {"condition": {"test": "datum.decides", "value": colors.decides}, "value": colors.text},
        },
    }


def row_step(count: int) -> int:
    """Give the height of a row, in pixels, of so many."""
    return TALL if count <= FEW else LOW


def stacked(parts: dict[str, float]) -> Iterator[tuple[str, float, float]]:
    """Give the parts that are not 0 one after the other: name, start and end."""
    start = 0.0
    for name, size in parts.items():
        if size > 0:
            yield name, start, start + size
            start += size


def stacked_layer(
    parts: list[Spec], field: str, colors: Mapping[str, str], shown: list[tuple[str, str]], theme: Themes
) -> Spec:
    """Draw parts of rows one after the other.

    Parameters
    ----------
    parts
        Their data: ``row``, ``start``, ``end``, and what else is shown of them.
    field
        What tells them apart; ``colors`` has the color of each of its values, in the order of the legend.
    shown
        The fields of the tooltip with their titles.
    theme
        Its background parts them.
    """
    found = [name for name in colors if any(part[field] == name for part in parts)]
    return {
        "data": {"values": parts},
        "mark": {"type": "bar", "stroke": THEMES[theme].background, "strokeWidth": 0.5},
        "encoding": {
            "x2": {"field": "end"},
            "color": {
                "field": field,
                "type": "nominal",
                "scale": {"domain": found, "range": [colors[name] for name in found]},
                "legend": {"title": None},
            },
            "tooltip": [{"field": name, "title": title} for name, title in shown],
        },
    }
