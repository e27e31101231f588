"""What all pictures have in common: colors, themes, the frame of a specification, and text that hides without room."""

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from partita.service.charts.names import Themes
from partita.service.reports.wording import NO_BREAK, unbroken

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
INK = "#1c1f24"
"""Of text on the pale colors, in both themes."""
KINDS = {
    "forward": "#8ab8ea",
    "backward": "#f3b877",
    "input gradient": "#e59a8f",
    "weight gradient": "#f0e08c",
    "recompute": "#c3a9e0",
    "transfer": "#c4c8cc",
}
"""Colors of what devices and links do; they differ in lightness too, so that the color-blind tell them apart."""
ITEMS = {
    "weights": "#6fa8dc",
    "gradients": "#a9d3f5",
    "optimizer": "#3f74a8",
    "buffers": "#8d8f94",
    "activations": "#f3b877",
    "communication": "#f6eeb4",
    "workspace": "#c3a9e0",
    "reserve": "#d5d8db",
}
"""Colors of what fills a device."""
STAGES = ("#8ab8ea", "#f3b877", "#a5d8b8", "#e3a3c6", "#f0e08c", "#b0a6e6", "#8fd0da", "#d3b79a")
"""Colors of stages, in turn."""
CRITICAL = "#b5121b"
"""Of what decides, drawn on the pale colors: the critical path."""
WRAP = 120
"""Letters of a line of a subtitle."""
FONT_SIZE, LETTER = 10, 6.2
"""Of text inside marks, in pixels; ``LETTER`` is what most letters take at most."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colors of what is not data: background, text, lines that stay behind, and what decides, on the background."""

    background: str
    text: str
    quiet: str
    line: str
    decides: str


THEMES: dict[Themes, Theme] = {
    "light": Theme(background="#ffffff", text="#1c1f24", quiet="#5a6068", line="#d9dce0", decides=CRITICAL),
    "dark": Theme(background="#15181d", text="#e8eaed", quiet="#a3aab3", line="#3a4048", decides="#ff7a70"),
}
"""Both themes; data has the same colors in either."""
UNWRITABLE = {
    code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
}
"""How letters are written that XML cannot hold, or that are no letters."""
PADDING = 8
"""Around the whole picture, in pixels."""
NARROW = "(isFinite(containerSize()[0]) && containerSize()[0] < 640)"
"""The test, as an expression, of whether there is a container and it is as narrow as a phone."""
ZOOM: Spec = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.ctrlKey || event.metaKey]"},
    "bind": "scales",
}
"""The parameter that zooms and moves along the x axis; the wheel alone goes on scrolling the page around it."""
TITLE_LIMIT = f"isFinite(containerSize()[0]) ? containerSize()[0] - {2 * PADDING} : 0"
"""How long a line of the title may be, in pixels, as an expression; a longer one would take its room from the plot."""


def shortened(text: str, most: int) -> str:
    """Leave out the middle of a text that has more than so many letters."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[head + 1 - most :]}"


def short_labels(most: int, narrow: int) -> Spec:
    """Give the members of an axis that leave out the middle of labels with more letters, fewer where it is narrow."""
    head, tail = (f"floor(({NARROW} ? {narrow} : {most}) / 2){less}" for less in (" - 1", ""))
    cut = f"slice(datum.label, 0, {head}) + '…' + slice(datum.label, -{tail})"
    test = f"length(datum.label) > ({NARROW} ? {narrow} : {most})"
    return {"labelExpr": f"{test} ? {cut} : datum.label", "labelLimit": 0}


def stage_color(stage: int) -> str:
    """Give the color of a stage."""
    return STAGES[stage % len(STAGES)]


def framed(theme: Themes, *, title: str, subtitle: str, description: str, body: Spec) -> Spec:
    """Give a whole specification: as wide as its container, with the colors of a theme.

    Parameters
    ----------
    theme
        Its name.
    title, subtitle
        Written above the picture; the subtitle in several lines where it is long.
    description
        What the picture says, for those who do not see it.
    body
        Data, height and layers.
    """
    colors = THEMES[theme]
    axis = {
        "tickCount": 10,
        "labelColor": colors.quiet,
        "titleColor": colors.text,
        "titleFontWeight": "normal",
        "grid": False,
    }
    return {
        "$schema": SCHEMA,
        "description": description,
        "title": {"text": title, "subtitle": _lines(subtitle), "anchor": "start", "limit": {"expr": TITLE_LIMIT}},
        "width": "container",
        "background": colors.background,
        "padding": PADDING,
        **body,
        "config": {
            "view": {"stroke": None},
            "axis": {**axis, **{f"{part}Color": colors.line for part in ("domain", "tick", "grid")}},
            "legend": {"labelColor": colors.text, "titleColor": colors.text, "orient": "bottom", "columns": 8},
            "title": {"color": colors.text, "subtitleColor": colors.quiet, "subtitlePadding": 4, "offset": 10},
        },
    }


def writable(value: Any) -> Any:
    """Give a specification in which letters of names that XML, and so SVG, cannot hold are written as their codes."""
    if isinstance(value, str):
        return value if value.isprintable() else value.translate(UNWRITABLE)
    if isinstance(value, dict):
        return {name: writable(member) for name, member in value.items()}
    return [writable(each) for each in value] if isinstance(value, list | tuple) else value


def _lines(text: str) -> list[str]:
    """Break a text into lines, but not between a number and its unit."""
    return [line.replace(NO_BREAK, " ") for line in wrap(unbroken(text), WRAP)]


def written_where_room(*texts: str, start: str = "start", end: str = "end") -> Spec:
    """Give the channel that writes the first of some texts that has room between two places on the x axis, or none.

    Parameters
    ----------
    texts
        Fields with texts, the longest first.
    start, end
        Fields with the places.
    """
    expression = "''"
    for field in reversed(texts):
        needed = f"length(toString(datum.{field})) * {LETTER} + 2"
        expression = f"{width_of(start, end)} >= {needed} ? toString(datum.{field}) : {expression}"
    return {"value": {"expr": expression}}


def width_of(start: str = "start", end: str = "end") -> str:
    """Give the expression for the pixels between two places on the x axis, by the fields that hold them."""
    return f"(scale('x', datum.{end}) - scale('x', datum.{start}))"
