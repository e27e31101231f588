"""An answer as a report for people."""

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from math import isclose
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from partita.models.answer import Answer, Baseline, Candidate, Infeasibility
from partita.models.answer_plan import Metrics, Stage
from partita.models.objective import Objective
from partita.models.problem import Problem
from partita.models.profile import ModelProfile
from partita.service.proof import objective_text, objective_value, proof_sentence
from partita.service.wording import (
    NO_BREAK,
    counted,
    device_ranges,
    first_few,
    node_runs,
    percent,
    seconds,
    significant,
    sized,
    spans,
    unbroken,
)

MOST_SPANS = 3
"""Most ranges of layers that are named for one stage."""
MOST_DEVICES = 4
"""Most ranges of devices that are named for one stage."""
PIPED_WIDTH = 120
"""Columns of a report that goes to a file."""
SAME = 1e-9
"""Two figures that differ by less, relative to the larger, are the same: the rest is rounding."""

BASELINES = {"uniform": "with equal numbers of layers", "balanced_time": "with balanced stage times"}
"""The simple rules in words."""


def print_report(answer: Answer, problem: Problem, file: IO[str], *, title: str | None = None) -> None:
    """Print the whole report.

    Parameters
    ----------
    answer
        What was found.
    problem
        What was asked.
    file
        Where to print; with color where that is a terminal.
    title
        What to call a model that has no name of its own, such as the name of the problem's file.
    """
    terminal, text = file.isatty(), StringIO()
    width = None if terminal else PIPED_WIDTH
    console = Console(
        file=text, width=width, force_terminal=terminal, markup=False, highlight=False, emoji=False, soft_wrap=False
    )
    _print(answer, problem, console, title)
    lines = text.getvalue().replace(NO_BREAK, " ").splitlines()
    file.write("".join(f"{line.rstrip()}\n" for line in lines))


def _print(answer: Answer, problem: Problem, console: Console, title: str | None) -> None:
    """Print all parts in their order."""
    console.print(Text(_headline(answer, problem, title), style="bold"))
    if answer.candidates:
        best = answer.candidates[0]
        console.print(_stage_table(best, problem))
        reserve = max(stage.memory.reserve_bytes for stage in best.stages)
        if reserve:
            console.print(f"Memory includes the reserve of {sized(reserve)}.")
        console.print()
        console.print(_figures(answer, best))
    for text in _explanation(answer, problem):
        console.print(unbroken(text) if isinstance(text, str) else text)
    if len(answer.candidates) > 1:
        console.print()
        console.print(_candidate_table(answer))
    for title, lines in (("Assumptions", answer.assumptions), ("Warnings", answer.warnings)):
        if lines:
            console.print(Text(f"\n{title}", style="bold yellow" if title == "Warnings" else "bold"))
        for line in lines:
            console.print(f"- {line}")


def _headline(answer: Answer, problem: Problem, title: str | None) -> str:
    """Say in one line what was asked and how it ended."""
    stages = f"{counted(len(answer.candidates[0].stages), 'stage')}, " if answer.candidates else ""
    unnamed = problem.model.name == ModelProfile.model_fields["name"].default
    return (
        f"{title if title and unnamed else problem.model.name}: {counted(len(problem.model.layers), 'layer')}, {stages}"
        f"{problem.training.schedule.kind}, "
        f"{counted(problem.training.num_microbatches, 'microbatch', 'microbatches')}, "
        f"{counted(problem.cluster.num_devices, 'device')}: {answer.status.replace('_', ' ')}"
    )


def _stage_table(candidate: Candidate, problem: Problem) -> Table:
    """Show where every layer runs, how long it takes and how full the devices are."""
    recomputes = any(stage.recompute for stage in candidate.stages)
    position = problem.model.layer_index()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("Stage", "Layers", "Count", "Forward", "Backward", "Memory", "of", "Used", "Devices"):
        right = name in ("Stage", "Count", "Forward", "Backward", "Memory", "of", "Used")
        table.add_column(name, justify="right" if right else "left", no_wrap=right, overflow="fold")
    if recomputes:
        table.add_column("Recomputed", justify="right")
    for stage in candidate.stages:
        memory = stage.memory
        cells = [
            str(stage.index),
            _layer_ranges(stage, position),
            str(len(stage.layers)),
            seconds(stage.forward_s),
            seconds(stage.backward_s),
            sized(memory.total_bytes),
            sized(memory.capacity_bytes),
            f"{memory.total_bytes / memory.capacity_bytes:.0%}" if memory.capacity_bytes else "",
            first_few(device_ranges(stage.devices), MOST_DEVICES),
        ]
        full = memory.total_bytes > memory.capacity_bytes
        table.add_row(*cells, *([str(len(stage.recompute))] if recomputes else []), style="red" if full else None)
    return table


def _layer_ranges(stage: Stage, position: Mapping[str, int]) -> str:
    """Name the layers of a stage as ranges in the order of the model."""
    names = {position[name]: name for name in stage.layers if name in position}
    ranges = [names[first] if first == last else f"{names[first]} … {names[last]}" for first, last in spans(names)]
    return first_few(ranges, MOST_SPANS)


def _figures(answer: Answer, best: Candidate) -> Table:
    """Show what the plan costs, and what the simple rules would have cost."""
    metrics = best.metrics
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_row("Iteration time", f"{seconds(metrics.iteration_time_s)}, predicted")
    for name, baseline in answer.baselines.items():
        grid.add_row(f"  {BASELINES.get(name, name)}", unbroken(_comparison(baseline, metrics, answer.objective)))
    if metrics.tokens_per_second is not None:
        grid.add_row("Throughput", f"{significant(metrics.tokens_per_second)} tokens/s")
    if metrics.bubble_fraction is not None:
        grid.add_row("Bubble", f"{percent(metrics.bubble_fraction)} of device time")
    grid.add_row("Bottleneck", f"{seconds(metrics.bottleneck_time_s)} per microbatch")
    grid.add_row("Peak memory", sized(metrics.peak_memory_bytes))
    grid.add_row("Between nodes", f"{sized(metrics.inter_node_bytes)} per iteration")
    return grid


def _comparison(baseline: Baseline, metrics: Metrics, objective: Objective) -> str:
    """Compare a baseline with the plan, by iteration time and by what was asked for."""
    theirs, ours = baseline.metrics.iteration_time_s, metrics.iteration_time_s
    memory = "" if baseline.fits else f", but it does not fit: it needs {sized(baseline.metrics.peak_memory_bytes)}"
    if objective != "iteration_time":
        memory = f"; {objective_text(objective).lower()} {objective_value(objective, baseline.metrics)}{memory}"
    if isclose(theirs, ours, rel_tol=SAME):
        return f"{seconds(theirs)}, the same{memory}"
    if not ours:
        return f"{seconds(theirs)}{memory}"
    word = "longer" if theirs > ours else "shorter"
    return f"{seconds(theirs)}, {percent(abs(theirs - ours) / ours)} {word}{memory}"


def _explanation(answer: Answer, problem: Problem) -> Iterator[str | Text]:
    """Say how good the plan is proven to be, or why there is none."""
    if answer.infeasibility is not None:
        yield Text("\nNo plan" if not answer.candidates else "\nThis plan breaks limits", style="bold red")
        yield from _why(answer.infeasibility)
    elif answer.status == "no_solution":
        limit = seconds(problem.search.time_limit_s)
        yield f"\nNo plan was found within {limit}, and none was ruled out; allow more time with --time-limit."
    elif answer.candidates:
        yield f"\n{proof_sentence(answer)}"


def _why(infeasibility: Infeasibility) -> Iterator[str]:
    """Explain what cannot be kept."""
    yield infeasibility.message
    for finding in infeasibility.findings:
        yield f"- {finding.message}"
    if infeasibility.limits_in_force:
        yield f"Limits in force: {', '.join(infeasibility.limits_in_force)}"
    if infeasibility.smallest_change:
        yield f"Smallest change that would do: {infeasibility.smallest_change}"


def _candidate_table(answer: Answer) -> Table:
    """Show all candidates by their main figures."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    columns = dict.fromkeys(("Rank", objective_text(answer.objective), "Iteration time", "Peak memory"))
    for name in columns:
        table.add_column(name, justify="right", overflow="fold")
    sizes = [" ".join(str(len(stage.layers)) for stage in candidate.stages) for candidate in answer.candidates]
    table.add_column("Layers per stage", overflow="fold")
    placements = _placements(answer.candidates, sizes)
    if placements:
        table.add_column("Placement", overflow="fold")
    for number, candidate in enumerate(answer.candidates):
        cells = {
            "Rank": str(candidate.rank),
            "Iteration time": seconds(candidate.metrics.iteration_time_s),
            "Peak memory": sized(candidate.metrics.peak_memory_bytes),
            objective_text(answer.objective): objective_value(answer.objective, candidate.metrics),
        }
        table.add_row(*(cells[name] for name in columns), sizes[number], *placements[number : number + 1])
    return table


def _placements(candidates: Sequence[Candidate], sizes: Sequence[str]) -> list[str]:
    """Tell plans with equal sizes apart: by the nodes in the order of the stages, or else by the devices."""
    if len(set(sizes)) == len(sizes):
        return []
    devices = [[device for stage in candidate.stages for device in stage.devices] for candidate in candidates]
    nodes = [node_runs(found) for found in devices]
    distinct = len(set(zip(sizes, nodes, strict=True))) == len(sizes)
    return nodes if distinct else [" ".join(found) for found in devices]
