"""An answer as a report for people."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isclose
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from partita.models.answer import Answer, Baseline, Candidate
from partita.models.answer_plan import Metrics
from partita.models.choices import choice_of
from partita.models.objective import Objective
from partita.models.problem import Problem
from partita.models.profile import ModelProfile
from partita.service.reports.comparison_words import comparison_sentences
from partita.service.reports.configuration_words import configuration_text
from partita.service.reports.printing import console_for
from partita.service.reports.proof import objective_text, objective_value, proof_sentence
from partita.service.reports.reasons import why_not
from partita.service.reports.schedule_words import schedule_name
from partita.service.reports.tables import (
    KEPT,
    candidate_table,
    is_shared,
    is_split,
    rank_table,
    scenario_table,
    schedule_table,
    stage_table,
)
from partita.service.reports.wording import SAME, counted, percent, seconds, significant, sized, unbroken

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
    with console_for(file) as console:
        _print(answer, problem, console, title)


def _print(answer: Answer, problem: Problem, console: Console, title: str | None) -> None:
    """Print all parts in their order."""
    console.print(Text(headline(answer, problem, title), style="bold"))
    if answer.candidates:
        best = answer.candidates[0]
        _print_plan(best, problem, console)
        console.print()
        console.print(_grid(figures(answer, problem, best)))
    if answer.candidates and answer.candidates[0].scenarios:
        console.print()
        console.print(scenario_table(answer.candidates[0]))
    heading = refusal(answer)
    console.print() if heading is None else console.print(Text(f"\n{heading}", style="bold red"))
    for text in explanation(answer, problem):
        console.print(unbroken(text))
    if answer.schedules:
        console.print()
        console.print(schedule_table(answer, problem.training.schedules))
    if len(answer.candidates) > 1:
        console.print()
        console.print(candidate_table(answer, problem.training.schedules))
    for title, lines in (("Assumptions", answer.assumptions), ("Warnings", answer.warnings)):
        if lines:
            console.print(Text(f"\n{title}", style="bold yellow" if title == "Warnings" else "bold"))
        for line in lines:
            console.print(f"- {line}")


def _print_plan(plan: Candidate, problem: Problem, console: Console) -> None:
    """Print stages and devices, and what has to be known to read the tables."""
    console.print(stage_table(plan, problem))
    if is_split(plan):
        console.print(KEPT)
    if is_shared(plan):
        console.print("Memory: a stage's share of its device.\n")
        console.print(rank_table(plan))
    if plan.scenario is not None:
        console.print(f"Stages are those of scenario {plan.scenario!r}, the longest.")
    reserve = max(stage.memory.reserve_bytes for stage in plan.stages)
    if reserve:
        console.print(f"Memory includes the reserve of {sized(reserve)}.")


def _devices(answer: Answer, problem: Problem) -> str:
    """Say how many devices there are, and how many the best plan uses where it leaves some idle."""
    every = counted(problem.cluster.num_devices, "device")
    stages = answer.candidates[0].stages if answer.candidates else ()
    used = len({device for stage in stages for device in stage.devices})
    return every if used in (0, problem.cluster.num_devices) else f"{used} of {every}"


def headline(answer: Answer, problem: Problem, title: str | None) -> str:
    """Say in one line what was asked and how it ended."""
    stages = f"{counted(len(answer.candidates[0].stages), 'stage')}, " if answer.candidates else ""
    return (
        f"{named_model(problem, title)}: {counted(len(problem.model.layers), 'layer')}, {stages}"
        f"{_schedule_text(answer, problem)}, "
        f"{_batch_text(answer, problem)}, "
        f"{_devices(answer, problem)}: {answer.status.replace('_', ' ')}"
    )


def named_model(problem: Problem, title: str | None) -> str:
    """Give the name of the model, or the title where it has none of its own."""
    unnamed = problem.model.name == ModelProfile.model_fields["name"].default
    return title if title and unnamed else problem.model.name


def _schedule_text(answer: Answer, problem: Problem) -> str:
    """Name the schedule of the best plan, and how many were compared."""
    schedules = problem.training.schedules
    if len(schedules) == 1:
        return schedules[0].kind
    compared = counted(len(schedules), "schedule")
    return f"{schedule_name(answer.candidates[0].schedule, schedules)} of {compared}" if answer.candidates else compared


def _batch_text(answer: Answer, problem: Problem) -> str:
    """Say how many microbatches the best plan has, and how many configurations were compared."""
    training = problem.training
    schedule = training.schedules[0]
    compared = len({replace(choice_of(each), schedule=schedule) for each in answer.schedules})
    number = training.num_microbatches if isinstance(training.num_microbatches, int) else None
    if number is None and answer.candidates:
        number = answer.candidates[0].num_microbatches
    text = "microbatches to choose" if number is None else counted(number, "microbatch", "microbatches")
    if compared < 2:
        return text
    degrees = configuration_text(answer.candidates[0], answer.schedules) if answer.candidates else ""
    return ", ".join(each for each in (text, degrees, f"the best of {compared} configurations") if each)


def _grid(rows: Iterable[tuple[str, str]]) -> Table:
    """Show figures beside their names."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, text in rows:
        grid.add_row(name, unbroken(text))
    return grid


def figures(answer: Answer, problem: Problem, plan: Candidate) -> Iterator[tuple[str, str]]:
    """Say what a plan costs and what the simple rules would have cost, each with its name, indented where a part."""
    metrics = plan.metrics
    over = {"expected": " on average", "worst": " at worst"}[problem.over_scenarios] if plan.scenarios else ""
    yield "Iteration time", f"{seconds(metrics.iteration_time_s)}{over}, {_how(plan)}"
    if metrics.queued_iteration_time_s is not None and metrics.queueing_gap is not None:
        queued, gap = seconds(metrics.queued_iteration_time_s), metrics.queueing_gap
        waiting = "the same" if gap < SAME else f"{percent(gap)} of it by waiting"
        yield "  with queues for links", f"{queued}, {waiting}"
    for name, baseline in answer.baselines.items():
        yield f"  {BASELINES.get(name, name)}", _comparison(baseline, metrics, answer.objective)
    if metrics.tokens_per_second is not None:
        yield "Throughput", f"{significant(metrics.tokens_per_second)} tokens/s"
    if metrics.bubble_fraction is not None:
        yield "Bubble", f"{percent(metrics.bubble_fraction)} of device time"
    rate = metrics.microbatches_per_second
    steady = "" if rate is None else f": {significant(rate)} microbatches/s in steady state"
    yield "Bottleneck", f"{seconds(metrics.bottleneck_time_s)} per microbatch{steady}"
    yield "Peak memory", sized(metrics.peak_memory_bytes)
    sent = " between stages, in each replica" if plan.data_parallel > 1 else ""
    yield "Between nodes", f"{sized(metrics.inter_node_bytes)} per iteration{sent}"


def _how(plan: Candidate) -> str:
    """Say where an iteration time comes from."""
    steady = any(stage.tensor_parallel for stage in plan.stages)
    return "in steady state, without filling and draining" if steady else "predicted"


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


def refusal(answer: Answer) -> str | None:
    """Say in two words that limits cannot be kept, as a heading of the explanation; None where they are."""
    if answer.infeasibility is None:
        return None
    return "This plan breaks limits" if answer.candidates else "No plan"


def explanation(answer: Answer, problem: Problem) -> Iterator[str]:
    """Say how good the plan is proven to be, or why there is none."""
    if answer.infeasibility is not None:
        yield from why_not(answer.infeasibility, answer.objective)
    elif answer.status == "no_solution":
        limit = seconds(problem.search.time_limit_s)
        yield f"No plan was found within {limit}, and none was ruled out; allow more time with --time-limit."
    elif answer.candidates:
        yield proof_sentence(answer)
    if answer.comparison is not None:
        yield from comparison_sentences(answer, answer.comparison)
