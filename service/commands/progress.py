"""How far a search has come, on the terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from partita.models.problem import Problem
from partita.service.reports.proof import amount
from partita.service.reports.wording import counted, percent

if TYPE_CHECKING:
    from partita.service.client.synchronous import Told
    from partita.service.replies import JobDocument
    from partita.solver.frontier import FrontProgress
    from partita.solver.progress import Progress


@dataclass(frozen=True, slots=True)
class Watch:
    """What is told about a search: ``report`` for the solver, ``stop`` to clear the line at once."""

    report: "Callable[[Progress], None] | None"
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class FrontWatch:
    """The same about the search for a front."""

    report: "Callable[[FrontProgress], None] | None"
    stop: Callable[[], None]


@contextmanager
def watching(problem: Problem) -> Iterator[Watch]:
    """Show the progress of a search on standard error, where that is a terminal; nothing is left of it afterwards."""
    with _line(problem) as line:
        if line is None:
            yield Watch(None, lambda: None)
        else:
            yield Watch(lambda state: line.show(state.wall_s, describe(state, problem)), line.stop)


@contextmanager
def watching_front(problem: Problem, wanted: int) -> Iterator[FrontWatch]:
    """Show how many points of a front are found, in the same way."""
    with _line(problem) as line:
        if line is None:
            yield FrontWatch(None, lambda: None)
        else:
            yield FrontWatch(
                lambda state: line.show(state.wall_s, f"{state.found} points, {wanted} at most"), line.stop
            )


@contextmanager
def watching_job(problem: Problem, wanted: int | None = None) -> "Iterator[Told | None]":
    """Show how far a job on a server is, in the same way; ``wanted`` is the most points of a front."""
    with _line(problem) as line:
        if line is None:
            yield None
            return
        since: list[float] = []

        def told(job: "JobDocument") -> None:
            if job.state == "running" and not since:
                since.append(time.monotonic())
            line.show(time.monotonic() - since[0] if since else 0.0, describe_job(job, problem, wanted))

        yield told


@dataclass(frozen=True, slots=True)
class _Line:
    """A line on the terminal: ``show`` takes the seconds since the start and a text."""

    show: Callable[[float, str], None]
    stop: Callable[[], None]


@contextmanager
def _line(problem: Problem) -> Iterator[_Line | None]:
    """Open a line on standard error; None where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("reading", total=problem.search.time_limit_s)
    with bar:
        yield _Line(lambda wall_s, text: bar.update(task, completed=wall_s, description=text), bar.stop)


def describe_job(job: "JobDocument", problem: Problem, wanted: int | None = None) -> str:
    """Say where a job on a server is, and whether it improves, only lives, or shows no sign of life."""
    state = job.progress
    if job.state == "queued":
        return "queued" if not job.ahead else f"queued behind {counted(job.ahead, 'job', 'jobs')}"
    if state is None:
        return job.state if job.state != "running" else "reading"
    parts = [f"{state.points or 0} points, {wanted} at most"] if wanted is not None else [state.phase]
    if state.incumbent is not None:
        parts.append(f"best {amount(problem.objective, state.incumbent)}")
    if state.best_bound is not None:
        parts.append(f"bound {amount(problem.objective, state.best_bound)}")
    if state.relative_gap is not None:
        parts.append(f"gap {percent(state.relative_gap)}")
    if state.activity == "silent":
        parts.append("no sign of life; it is killed at its time limit")
    elif state.activity == "searching" and state.improved_at is not None:
        idle = datetime.fromisoformat(state.alive_at) - datetime.fromisoformat(state.improved_at)
        parts.append(f"alive, nothing better for {idle.total_seconds():.0f} s")
    return ", ".join(parts)


def describe(state: "Progress", problem: Problem) -> str:
    """Say where the search is: its phase, the best plan so far and the bound."""
    parts = [state.phase]
    if state.incumbent is not None:
        parts.append(f"best {amount(problem.objective, state.incumbent)}")
    if state.bound is not None:
        parts.append(f"bound {amount(problem.objective, state.bound)}")
    return ", ".join(parts)
