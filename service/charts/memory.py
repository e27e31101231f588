"""What fills every device, item by item, against what it has."""

from partita.models.answer import Candidate
from partita.models.problem import Problem
from partita.service.charts.names import Themes
from partita.service.charts.rows import Row, beside_layer, row_channel, row_step, rows_of, stacked, stacked_layer
from partita.service.charts.style import ITEMS, THEMES, Spec, framed
from partita.service.reports.timeline_words import scenario_words
from partita.service.reports.wording import percent, sized, unit_of_bytes

UNLIKELY = 20.0
"""A capacity so many times what is needed is only written: bars beside it could not be seen."""


def memory_chart(problem: Problem, candidate: Candidate, theme: Themes) -> Spec:
    """Draw what each device of every rank holds when it is fullest."""
    rows = rows_of(candidate)
    needed = [sum(stage.memory.total_bytes for stage in row.stages) for row in rows]
    capacities = [row.stages[0].memory.capacity_bytes for row in rows]
    fullest = max(range(len(rows)), key=lambda number: needed[number])
    near = max(capacities) <= UNLIKELY * max(needed)
    most = max(*needed, *(capacities if near else [0]), 1)
    unit, size = unit_of_bytes(most)
    parts = [part for row in rows for part in _parts(row, size)]
    ends = [_end(row, total, size) for row, total in zip(rows, needed, strict=True)]
    full = _fullness(needed[fullest], capacities[fullest])
    return framed(
        theme,
        title=f"Peak memory {sized(needed[fullest])} of {sized(capacities[fullest])}{scenario_words(candidate)}",
        subtitle=_subtitle(rows, fullest, full, near=near),
        description=f"Memory of each device by rank. The fullest is {rows[fullest].label} with "
        f"{sized(needed[fullest])} of {sized(capacities[fullest])}, {full}.",
        body={
            "height": row_step(len(rows)) * len(rows),
            "encoding": {
                "y": row_channel([row.label for row in rows]),
                "x": {
                    "field": "start",
                    "type": "quantitative",
                    "title": f"Bytes on each device ({unit})",
                    "scale": {"domain": [0, most / size]},
                },
            },
            "layer": [
                *([_bar_layer(parts, theme)] if parts else []),
                *([_capacity_layer(ends, theme)] if near else []),
                beside_layer(ends, theme),
            ],
        },
    )


def _fullness(needed: int, capacity: int) -> str:
    """Say how full a device is."""
    return percent(needed / capacity) if capacity else "of none"


def _subtitle(rows: tuple[Row, ...], fullest: int, full: str, *, near: bool) -> str:
    """Say which device is the fullest, and what the bars and lines are."""
    line = "The upright line is what a device has." if near else "Devices have much more than the bars show."
    each = " Every device of a row holds the same." if any(len(row.stages[0].devices) > 1 for row in rows) else ""
    return f"Fullest: {rows[fullest].label}, {full} of what it has. {line}{each}"


def _parts(row: Row, size: float) -> list[Spec]:
    """Give the data of the items of a rank, of all its stages together."""
    sums = {item: sum(getattr(stage.memory, f"{item}_bytes") for stage in row.stages) for item in ITEMS}
    total = sum(sums.values())
    return [
        {
            "row": row.label,
            "item": item,
            "start": start / size,
            "end": end / size,
            "bytes": sums[item],
            "amount": sized(sums[item]),
            "total": sized(total),
            "in_flight": ", ".join(str(stage.memory.in_flight) for stage in row.stages),
        }
        for item, start, end in stacked({item: float(amount) for item, amount in sums.items()})
    ]


def _end(row: Row, needed: int, size: float) -> Spec:
    """Give the data of what is written beside a row, and of its limit."""
    capacity = row.stages[0].memory.capacity_bytes
    return {
        "row": row.label,
        "start": capacity / size,
        "end": needed / size,
        "total_bytes": needed,
        "capacity_bytes": capacity,
        "text": f"{sized(needed)}, {_fullness(needed, capacity)}",
        "has": sized(capacity),
        "decides": needed > capacity,
    }


def _bar_layer(parts: list[Spec], theme: Themes) -> Spec:
    """Draw the items one after the other."""
    shown = [("row", "Device"), ("item", "Item"), ("amount", "Bytes"), ("total", "of in all")]
    shown.append(("in_flight", "Microbatches in flight"))
    return stacked_layer(parts, "item", ITEMS, shown, theme)


def _capacity_layer(ends: list[Spec], theme: Themes) -> Spec:
    """Draw what every device has."""
    colors = THEMES[theme]
    return {
        "data": {"values": ends},
        "mark": {"type": "tick", "thickness": 2.5, "bandSize": 20},
        "encoding": {
            "color": {"condition": {"test": "datum.decides", "value": colors.decides}, "value": colors.text},
            "tooltip": [{"field": "row", "title": "Device"}, {"field": "has", "title": "Has"}],
        },
    }
