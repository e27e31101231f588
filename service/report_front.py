"""The front of two metrics as a table for people."""

from collections.abc import Iterator
from io import StringIO
from typing import IO

from rich.console import Console
from rich.text import Text

from partita.models.front import Front, FrontMetric, Region
from partita.models.problem import Problem
from partita.models.profile import ModelProfile
from partita.service.report import PIPED_WIDTH
from partita.service.report_tables import table_of
from partita.service.schedule_words import schedule_name
from partita.service.wording import NO_BREAK, counted, seconds, significant, sized

TEXTS: dict[FrontMetric, str] = {
    "iteration_time_s": "Iteration time",
    "tokens_per_second": "Tokens per second",
    "bottleneck_time_s": "Bottleneck time",
    "microbatches_per_second": "Microbatches per second",
    "peak_memory_bytes": "Peak memory",
    "num_devices": "Devices",
    "inter_node_bytes": "Between nodes",
}
"""The metrics in words."""

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
    terminal, text = file.isatty(), StringIO()
    width = None if terminal else PIPED_WIDTH
    console = Console(file=text, width=width, force_terminal=terminal, markup=False, highlight=False, emoji=False)
    unnamed = problem.model.name == ModelProfile.model_fields["name"].default
    named = title if title and unnamed else problem.model.name
    first, second = (TEXTS[metric].lower() for metric in front.metrics)
    found = counted(len(front.points), "point")
    headline = f"{named}: {first} against {second}, {found}: {front.status.replace('_', ' ')}"
    console.print(Text(headline, style="bold"))
    if front.points:
        schedules = problem.training.schedules
        rows = []
        for point in front.points:
            cells = {"Plan": str(point.plan.rank)}
            cells |= {TEXTS[m]: amount(m, value) for m, value in zip(front.metrics, point.values, strict=True)}
            cells |= {"Schedule": schedule_name(point.plan.schedule, schedules)} if len(schedules) > 1 else {}
            cells["Layers per stage"] = " ".join(str(len(stage.layers)) for stage in point.plan.stages)
            rows.append((cells, False))
        console.print(table_of(rows))
    for line in _explanation(front):
        console.print(line)
    lines = text.getvalue().replace(NO_BREAK, " ").splitlines()
    file.write("".join(f"{line.rstrip()}\n" for line in lines))


def amount(metric: FrontMetric, value: float) -> str:
    """Write a value of a metric with its unit."""
    if metric.endswith("_s"):
        return seconds(value)
    if metric.endswith("_bytes"):
        return sized(value)
    return str(round(value)) if metric == "num_devices" else significant(value)


def _explanation(front: Front) -> Iterator[str]:
    """Say what is known of the front, where more of it may lie, and what the figures rest on."""
    if front.infeasibility is not None:
        yield f"\nNo plan: {front.infeasibility.message}"
        yield from (f"- {finding.message}" for finding in front.infeasibility.findings)
        return
    yield f"\n{ENDINGS[front.status]}"
    yield from (f"- not explored: {_range(region)}" for region in front.unexplored)
    for name, lines in (("Assumptions", front.assumptions), ("Warnings", front.warnings)):
        if lines:
            yield f"\n{name}"
        yield from (f"- {line}" for line in lines)


def _range(region: Region) -> str:
    """Write the values in which further points may lie."""
    ends = [
        f"{word} {amount(region.metric, value)}"
        for word, value in (("from", region.least), ("to", region.most))
        if value is not None
    ]
    return f"{TEXTS[region.metric].lower()} {' '.join(ends) or 'of any value'}"
