"""The front of two metrics as a table for people."""

from collections.abc import Iterator
from typing import IO

from rich.console import Console
from rich.text import Text

from partita.models.front import Front, Region
from partita.models.problem import Problem
from partita.service.reports.configuration_words import configuration_cells
from partita.service.reports.printing import console_for
from partita.service.reports.proof import METRICS, metric_amount
from partita.service.reports.reasons import why_not
from partita.service.reports.report import named_model
from partita.service.reports.schedule_words import schedule_name
from partita.service.reports.tables import table_of
from partita.service.reports.wording import counted, unbroken

ENDINGS = {
    "complete": "Proven: these are all; no plan is better in one of the two and at least as good in the other.",
    "sample": "Proven, each of them; the front holds more plans than were asked for.",
    "partial": "Proven, each of them; the time ran out before the rest of the front was.",
    "no_solution": "No point of the front was proven in time; allow more time with --time-limit.",
}
"""What is known of a front, by its status."""


def print_front(front: Front, problem: Problem, file: IO[str], *, title: str | None) -> None:
    """Print a front: a line for every point, and what is known of the rest.

    Parameters
    ----------
    front, problem
        What was found and what was asked.
    file
        Where to print; with color where that is a terminal.
    title
        What to call a model that has no name of its own; None for the name that all such models have.
    """
    with console_for(file) as console:
        _print(front, problem, console, title)


def _print(front: Front, problem: Problem, console: Console, title: str | None) -> None:
    console.print(Text(front_headline(front, problem, title), style="bold"))
    if front.points:
        schedules = problem.training.schedules
        rows = []
        for point in front.points:
            cells = {"Plan": str(point.plan.rank)}
            cells |= {METRICS[m]: metric_amount(m, value) for m, value in zip(front.metrics, point.values, strict=True)}
            cells |= {"Schedule": schedule_name(point.plan.schedule, schedules)} if len(schedules) > 1 else {}
            cells |= configuration_cells(point.plan, [each.plan for each in front.points])
            cells["Layers per stage"] = " ".join(str(len(stage.layers)) for stage in point.plan.stages)
            rows.append((cells, False))
        console.print(table_of(rows))
    heading = front_refusal(front)
    console.print() if heading is None else console.print(f"\n{heading}")
    for line in front_explanation(front, problem):
        console.print(unbroken(line))
    if heading is None:
        _print_notes(front, console)


def _print_notes(front: Front, console: Console) -> None:
    """Print what the figures rest on."""
    for name, lines in (("Assumptions", front.assumptions), ("Warnings", front.warnings)):
        if lines:
            console.print(f"\n{name}")
        for line in lines:
            console.print(unbroken(f"- {line}"))


def front_headline(front: Front, problem: Problem, title: str | None) -> str:
    """Say in one line what was asked and how it ended; ``title`` as in ``print_front``."""
    first, second = (METRICS[metric].lower() for metric in front.metrics)
    found = counted(len(front.points), "point")
    return f"{named_model(problem, title)}: {first} against {second}, {found}: {front.status.replace('_', ' ')}"


def front_refusal(front: Front) -> str | None:
    """Say in two words that there is no plan, as a heading of the explanation; None where there may be one."""
    return None if front.infeasibility is None else "No plan"


def front_explanation(front: Front, problem: Problem) -> Iterator[str]:
    """Say what is known of the front and where more of it may lie, or why there is no plan."""
    if front.infeasibility is not None:
        yield from why_not(front.infeasibility, problem.objective)
        return
    yield ENDINGS[front.status]
    yield from (f"- not explored: {_range(region)}" for region in front.unexplored)


def _range(region: Region) -> str:
    """Write the values in which further points may lie."""
    ends = [
        f"{word} {metric_amount(region.metric, value)}"
        for word, value in (("from", region.least), ("to", region.most))
        if value is not None
    ]
    return f"{METRICS[region.metric].lower()} {' '.join(ends) or 'of any value'}"
