"""A timeline as text: a line for every rank, time from left to right, and the figures in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import IO

from rich.cells import cell_len
from rich.text import Text

from partita.models.answer import Candidate
from partita.service.reports.printing import console_for
from partita.service.reports.timeline_words import KINDS, critical_sentence, rank_name, scenario_words
from partita.service.reports.wording import counted, percent, seconds, unbroken
from partita.solver.timeline import Action, Timeline

LEAST_CELLS = 20
"""Columns of time in the narrowest terminal."""
IDLE, LATER, IDLE_ROW = ".", "'", "idle"
STYLES = {
    "F": ("black on bright_blue", "white on blue"),
    "B": ("black on bright_green", "black on green"),
    "I": ("black on bright_cyan", "black on cyan"),
    "W": ("black on bright_yellow", "black on yellow"),
}
"""Colors by kind of action on a terminal, for the first stage of a rank and for its later ones."""
CRITICAL_STYLE = "bold underline"

Cell = Action | None
"""What a column of a rank's line shows: an action, or that the rank waits."""


def print_timeline(timeline: Timeline, candidate: Candidate, file: IO[str]) -> None:
    """Print a timeline, with color where the file is a terminal."""
    with console_for(file) as console:
        for line in _lines(timeline, candidate, console.width):
            console.print(unbroken(line) if isinstance(line, str) else line)


def _lines(timeline: Timeline, candidate: Candidate, width: int) -> Iterator[str | Text]:
    """Give the lines in their order."""
    names = [rank_name(memory.devices) for memory in timeline.memory]
    margin = min(max(cell_len(name) for name in [*names, IDLE_ROW]) + 1, max(len(IDLE_ROW) + 1, width // 3))
    grid = _Grid(timeline, max(LEAST_CELLS, width - margin))
    later = _later_stages(candidate)
    yield Text(_headline(timeline, candidate), style="bold")
    for name, row in zip(names, grid.rows, strict=True):
        yield Text(_fitted(name, margin)) + _drawn(row, later)
    yield Text(IDLE_ROW.ljust(margin) + grid.idle())
    yield Text(" " * margin + _axis(timeline.makespan_s, grid.width))
    yield _legend(timeline, later)
    yield ""
    yield _figures(timeline, candidate)
    yield critical_sentence(timeline)


def _fitted(name: str, width: int) -> str:
    """Make a name as wide as the margin, a space included; of a long one the end is shown: it has the number."""
    shown = name
    while cell_len(shown) > width - 1:
        shown = "…" + shown.removeprefix("…")[1:]
    return shown + " " * (width - cell_len(shown))


def _headline(timeline: Timeline, candidate: Candidate) -> str:
    microbatches = 1 + max(action.microbatch for action in timeline.actions)
    return (
        f"{candidate.schedule.kind}: {counted(len(candidate.stages), 'stage')} on "
        f"{counted(timeline.num_ranks, 'rank')}, {counted(microbatches, 'microbatch', 'microbatches')}"
        f"{scenario_words(candidate)}"
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """The cells of a rank, and which part of each the rank is busy, 0 to 1."""

    cells: list[Cell]
    busy: list[float]


class _Grid:
    """A timeline cut into columns of equal time."""

    def __init__(self, timeline: Timeline, width: int) -> None:
        self.width = width
        of_rank: list[list[Action]] = [[] for _ in timeline.memory]
        for action in timeline.actions:
            of_rank[action.rank].append(action)
        column_s = timeline.makespan_s / width
        self.rows = [_row(own, width, column_s) for own in of_rank]

    def idle(self) -> str:
        """Tell for every column how many tenths of the ranks wait; a blank where fewer than half a tenth do."""
        shares = [1 - sum(row.busy[column] for row in self.rows) / len(self.rows) for column in range(self.width)]
        return "".join(" " if round(10 * share) <= 0 else str(min(9, round(10 * share))) for share in shares)


def _row(actions: list[Action], width: int, column_s: float) -> _Row:
    """Give what fills most of every column; a column in which the rank waits for more than half of it is idle."""
    most: list[float] = [0.0] * width
    busy: list[float] = [0.0] * width
    cells: list[Cell] = [None] * width
    for action in actions if column_s > 0 else ():
        first = min(width - 1, int(action.start_s / column_s))
        last = min(width - 1, int(action.end_s / column_s))
        for column in range(first, last + 1):
            begin, end = max(action.start_s, column * column_s), min(action.end_s, (column + 1) * column_s)
            part = max(0.0, end - begin) / column_s
            busy[column] += part
            if part > most[column]:
                most[column], cells[column] = part, action
    return _Row([cell if busy[column] >= 0.5 else None for column, cell in enumerate(cells)], busy)


def _later_stages(candidate: Candidate) -> frozenset[int]:
    """Give the stages that are not the first of their rank."""
    first: dict[int, int] = {}
    return frozenset(
        stage.index for stage in candidate.stages if first.setdefault(stage.rank, stage.index) < stage.index
    )


def _drawn(row: _Row, later: frozenset[int]) -> Text:
    """Draw the line of a rank."""
    text = Text()
    for action, run in groupby(row.cells):
        length = len(list(run))
        if action is None:
            text.append(IDLE * length, style="dim")
        else:
            style = STYLES[action.kind][action.stage in later]
            text.append(
                _label(action, length, later=action.stage in later),
                style=f"{style} {CRITICAL_STYLE}" if action.critical else style,
            )
    return text


def _label(action: Action, length: int, *, later: bool) -> str:
    """Name an action in so many columns: as long a name as fits, filled up."""
    kind, fill = (action.kind, "=") if action.critical else (action.kind.lower(), "-")
    names = (f"{kind}{action.microbatch}{LATER * later}", f"{kind}{action.microbatch}", kind)
    return next(name for name in names if len(name) <= length).ljust(length, fill)


def _axis(makespan_s: float, width: int) -> str:
    """Write the times at the left, the middle and the right."""
    first, half, last = "0 s", seconds(makespan_s / 2), seconds(makespan_s)
    line = list(" " * width)
    line[: len(first)] = first
    line[width - len(last) :] = last
    begin = width // 2
    if len(first) < begin and begin + len(half) + 1 < width - len(last):
        line[begin : begin + len(half)] = half
    return "".join(line)


def _legend(timeline: Timeline, later: frozenset[int]) -> Text:
    """Explain the signs and colors that occur."""
    occurring = {action.kind for action in timeline.actions}
    text = Text()
    for kind in (kind for kind in KINDS if kind in occurring):
        text.append(kind.lower(), style=STYLES[kind][0]).append(f" {KINDS[kind]}, ")
    text.append("the microbatch, - goes on; ").append(f"{LATER} later stage of its rank; " if later else "")
    text.append("capitals and =", style=CRITICAL_STYLE).append(": critical path; ")
    return text.append(IDLE, style="dim").append(f" waits; {IDLE_ROW}: how many tenths of the ranks do")


def _figures(timeline: Timeline, candidate: Candidate) -> str:
    """Say how long it takes and how much of it is idle."""
    text = f"Makespan {seconds(timeline.makespan_s)}"
    if timeline.once_s:
        text += f", then {seconds(timeline.once_s)} once per iteration"
    bubble = candidate.as_shown.metrics.bubble_fraction
    return f"{text}." if bubble is None else f"{text}; bubble {percent(bubble)} of device time."
