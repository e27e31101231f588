"""The pictures by their names, without the code that makes them."""

from dataclasses import dataclass
from typing import Literal

Themes = Literal["light", "dark"]
Shown = Literal["plan", "answer", "front"]


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture: its title, a sentence about what it shows, and of what it is one.

    Attributes
    ----------
    title, summary
        For people.
    shows
        ``plan``: one plan of an answer or front. ``answer``: all plans of an answer. ``front``: all points of a front.
    """

    title: str
    summary: str
    shows: Shown = "plan"


ZOOM = "Ctrl and the wheel zoom, dragging moves, a double click shows all."
"""Said of the pictures that can be zoomed where they are drawn in a browser."""

CHARTS: dict[str, Chart] = {
    "layers": Chart(
        "Layers and stages",
        f"Every layer as wide as its time, colored by stage; below each cut the bytes that cross it. {ZOOM}",
    ),
    "times": Chart(
        "Time per stage",
        "What keeps the devices of every stage busy for one microbatch, and which one is the bottleneck.",
    ),
    "memory": Chart(
        "Memory per device",
        "What fills each device when it is fullest, against what it has.",
    ),
    "timeline": Chart(
        "Timeline",
        f"Every microbatch of one iteration: where devices wait, and the critical path outlined. {ZOOM}",
    ),
    "placement": Chart(
        "Placement",
        f"Which node and devices run each stage, and what crosses the links between them. {ZOOM}",
    ),
    "comparison": Chart(
        "Plans compared",
        "All plans and what simple rules would have given, against the proven bound.",
        "answer",
    ),
    "front": Chart(
        "Pareto front",
        "Every plan than which no other is better in one metric and at least as good in the other.",
        "front",
    ),
}
"""All pictures."""


def charts_of(kind: Literal["plan", "frontier"]) -> tuple[str, ...]:
    """Give the pictures that there are of the answer to a kind of job."""
    whole = "answer" if kind == "plan" else "front"
    return tuple(name for name, chart in CHARTS.items() if chart.shows in ("plan", whole))
