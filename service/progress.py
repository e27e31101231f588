"""How far a search has come, on the terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.models.problem import Problem
from partita.service.proof import amount

if TYPE_CHECKING:
    from partita.solver.planner import Progress


@dataclass(frozen=True, slots=True)
class Watch:
    """What is told about a search: ``report`` for the solver, ``stop`` to clear the line at once."""

    report: "Callable[[Progress], None] | None"
    stop: Callable[[], None]


@contextmanager
def watching(problem: Problem) -> Iterator[Watch]:
    """Show the progress of a search on standard error, where that is a terminal; nothing is left of it afterwards."""
    if not sys.stderr.isatty():
        yield Watch(None, lambda: None)
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
    line = bar.add_task("reading", total=problem.search.time_limit_s)
    with bar:
        yield Watch(
            lambda state: bar.update(line, completed=state.wall_s, description=describe(state, problem)), bar.stop
        )


def describe(state: "Progress", problem: Problem) -> str:
    """Say where the search is: its phase, the best plan so far and the bound."""
    parts = [state.phase]
    if state.incumbent is not None:
        parts.append(f"best {amount(problem.objective, state.incumbent)}")
    if state.bound is not None:
        parts.append(f"bound {amount(problem.objective, state.bound)}")
    return ", ".join(parts)
