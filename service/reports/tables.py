"""The tables of a report: stages, devices, schedules and plans."""

from collections.abc import Mapping, Sequence
from itertools import chain

from rich.table import Table

from partita.models.answer import Answer, Candidate, ScheduleResult
from partita.models.answer_plan import Stage
from partita.models.problem import Problem
from partita.models.schedule import Schedule
from partita.service.reports.configuration_words import configuration_cells
from partita.service.reports.proof import amount, objective_text, objective_value
from partita.service.reports.schedule_words import schedule_name
from partita.service.reports.wording import (
    device_ranges,
    first_few,
    node_runs,
    percent,
    seconds,
    significant,
    sized,
    spans,
)

MOST_SPANS = 3
"""Most ranges of layers that are named for one stage."""
MOST_DEVICES = 4
"""Most ranges of devices that are named for one stage."""
MOST_STAGES = 8
"""Most ranges of stages that are named for one rank."""
KEPT = "Kept: microbatches held when the device is fullest; for W: only what their weight gradient needs."
"""What stands in the column of that name."""

_LEFT = frozenset({"Layers", "Devices", "Stages", "Schedule", "Layers per stage", "Placement", "Status"})
"""The columns of text."""
_WRAPPING = frozenset({"Layers", "Devices", "Layers per stage", "Placement"})
"""The columns whose text may go on in the next line."""


def is_shared(candidate: Candidate) -> bool:
    """Tell whether some rank runs several stages."""
    return len({stage.rank for stage in candidate.stages}) < len(candidate.stages)


def is_split(candidate: Candidate) -> bool:
    """Tell whether the plan's schedule splits backward passes."""
    return candidate.schedule.splits


def stage_table(candidate: Candidate, problem: Problem) -> Table:
    """Show where every layer runs and how long it takes; where no rank has several stages, how full the devices are."""
    ranked = any(stage.rank != stage.index for stage in candidate.stages)
    recomputes = any(stage.recompute for stage in candidate.stages)
    degrees = any(stage.tensor_parallel for stage in candidate.stages)
    position, shared, split = problem.model.layer_index(), is_shared(candidate), is_split(candidate)
    rows = []
    for stage in candidate.stages:
        memory = stage.memory
        cells = {"Stage": str(stage.index)}
        cells |= {"Rank": str(stage.rank)} if ranked else {}
        cells |= {"Layers": _layer_ranges(stage, position), "Count": str(len(stage.layers))}
        cells |= {"Tensor": str(stage.tensor_parallel), "Data": str(stage.data_parallel)} if degrees else {}
        cells |= {"Forward": seconds(stage.forward_s), "Backward": seconds(stage.backward_s)}
        if split:
            waiting = memory.awaiting_weight_gradient
            cells["of it W"] = seconds(stage.weight_gradient_s)
            cells["Kept"] = f"{memory.in_flight} + {waiting} for W" if waiting else str(memory.in_flight)
        cells["Memory"] = sized(memory.total_bytes)
        cells |= {} if shared else _filling(memory.total_bytes, stage)
        cells |= {"Recomputed": str(len(stage.recompute))} if recomputes else {}
        rows.append((cells, not shared and memory.total_bytes > memory.capacity_bytes))
    return table_of(rows)


def rank_table(candidate: Candidate) -> Table:
    """Show what every device has to do for its stages, and how full it is."""
    of_rank: dict[int, list[Stage]] = {}
    for stage in candidate.stages:
        of_rank.setdefault(stage.rank, []).append(stage)
    rows = []
    for rank, stages in sorted(of_rank.items()):
        total = sum(stage.memory.total_bytes for stage in stages)
        runs = spans(stage.index for stage in stages)
        numbers = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
        cells = {
            "Rank": str(rank),
            "Stages": first_few(numbers, MOST_STAGES),
            "Forward": seconds(sum(stage.forward_s for stage in stages)),
            "Backward": seconds(sum(stage.backward_s for stage in stages)),
            "Memory": sized(total),
            **_filling(total, stages[0]),
        }
        rows.append((cells, total > stages[0].memory.capacity_bytes))
    return table_of(rows)


def _filling(total: int, stage: Stage) -> dict[str, str]:
    """Tell how full the devices of a stage are, and which these are."""
    capacity = stage.memory.capacity_bytes
    return {
        "of": sized(capacity),
        "Used": f"{total / capacity:.0%}" if capacity else "",
        "Devices": first_few(device_ranges(stage.devices), MOST_DEVICES),
    }


def _layer_ranges(stage: Stage, position: Mapping[str, int]) -> str:
    """Name the layers of a stage as ranges in the order of the model."""
    names = {position[name]: name for name in stage.layers if name in position}
    ranges = [names[first] if first == last else f"{names[first]} … {names[last]}" for first, last in spans(names)]
    return first_few(ranges, MOST_SPANS)


MOST_CONFIGURATIONS = 20
"""Configurations that are listed, the best first; the answer in JSON has them all."""


def schedule_table(answer: Answer, schedules: Sequence[Schedule]) -> Table:
    """Show what was found in each of the configurations compared, the best of them.

    Parameters
    ----------
    answer
        What was found.
    schedules
        The schedules in the order of the problem, which their names depend on.
    """
    rows = []
    for result in answer.schedules[:MOST_CONFIGURATIONS]:
        found, bound = result.objective_value, result.best_bound
        cells = {"Schedule": schedule_name(result.schedule, schedules)} if len(schedules) > 1 else {}
        cells |= configuration_cells(result, answer.schedules)
        cells |= {
            objective_text(answer.objective): "" if found is None else amount(answer.objective, found),
            "Bound": "" if bound is None else amount(answer.objective, bound),
            "Status": _status(result, answer, schedules, short=bool(configuration_cells(result, answer.schedules))),
        }
        rows.append((cells, False))
    return table_of(rows)


def _status(result: ScheduleResult, answer: Answer, schedules: Sequence[Schedule], *, short: bool) -> str:
    """Say how the search under a schedule ended; ``short`` where other columns take the room."""
    if result.status == "cut_off":
        return "cut off" if short else f"cut off: cannot beat {schedule_name(answer.schedules[0].schedule, schedules)}"
    if result.status == "no_solution":
        return "no plan was found in time"
    found, bound = result.objective_value, result.best_bound
    if result.status != "feasible" or found is None or bound is None:
        return result.status
    return f"feasible, at most {percent(abs(found - bound) / abs(found))} from its best" if found else "feasible"


def scenario_table(candidate: Candidate) -> Table:
    """Show what a plan costs in every scenario."""
    rows = []
    for each in candidate.scenarios:
        metrics = each.metrics
        cells = {
            "Scenario": each.name,
            "Share": percent(each.share),
            "Iteration time": seconds(metrics.iteration_time_s),
        }
        cells["Tokens/s"] = "" if metrics.tokens_per_second is None else significant(metrics.tokens_per_second)
        cells["Bubble"] = "" if metrics.bubble_fraction is None else percent(metrics.bubble_fraction)
        cells["Peak memory"] = sized(metrics.peak_memory_bytes)
        rows.append((cells, False))
    return table_of(rows)


def candidate_table(answer: Answer, schedules: Sequence[Schedule]) -> Table:
    """Show all candidates by their main figures, and by their schedules where there are several."""
    sizes = [" ".join(str(len(stage.layers)) for stage in candidate.stages) for candidate in answer.candidates]
    names = [schedule_name(candidate.schedule, schedules) for candidate in answer.candidates]
    degrees = [configuration_cells(candidate, answer.schedules or answer.candidates) for candidate in answer.candidates]
    plans = [(name, size, *cells.values()) for name, size, cells in zip(names, sizes, degrees, strict=True)]
    placements = _placements(answer.candidates, plans)
    rows = []
    for number, candidate in enumerate(answer.candidates):
        cells = {"Plan": str(candidate.rank)}
        cells |= {"Schedule": names[number]} if len(schedules) > 1 else {}
        cells |= degrees[number]
        cells[objective_text(answer.objective)] = objective_value(answer.objective, candidate.metrics)
        cells["Iteration time"] = seconds(candidate.metrics.iteration_time_s)
        fits = fits_into_memory(candidate)
        cells["Peak memory"] = sized(candidate.metrics.peak_memory_bytes) + ("" if fits else ", too much")
        cells["Layers per stage"] = sizes[number]
        cells |= {"Placement": placements[number]} if placements else {}
        rows.append((cells, not fits))
    return table_of(rows)


def fits_into_memory(candidate: Candidate) -> bool:
    """Tell whether every device has room for all its stages."""
    needed: dict[int, int] = {}
    for stage in candidate.stages:
        needed[stage.rank] = needed.get(stage.rank, 0) + stage.memory.total_bytes
    return all(needed[stage.rank] <= stage.memory.capacity_bytes for stage in candidate.stages)


def _placements(candidates: Sequence[Candidate], plans: Sequence[tuple[str, ...]]) -> list[str]:
    """Tell plans whose other cells are equal apart: by the nodes in the order of the ranks, or else by the devices."""
    if len(set(plans)) == len(plans):
        return []
    devices = [_devices(candidate) for candidate in candidates]
    nodes = [node_runs(chain.from_iterable(found)) for found in devices]
    distinct = len(set(zip(plans, nodes, strict=True))) == len(plans)
    return nodes if distinct else [" ".join(",".join(device_ranges(each)) for each in found) for found in devices]


def _devices(candidate: Candidate) -> list[Sequence[str]]:
    """Give the devices of every rank, in the order of the ranks."""
    of_rank = {stage.rank: stage.devices for stage in candidate.stages}
    return [of_rank[rank] for rank in sorted(of_rank)]


def table_of(rows: Sequence[tuple[Mapping[str, str], bool]]) -> Table:
    """Make a table of rows by the names of their columns; a row may be marked as breaking a limit."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in rows[0][0]:
        left = name in _LEFT
        table.add_column(name, justify="left" if left else "right", no_wrap=name not in _WRAPPING, overflow="fold")
    for cells, marked in rows:
        table.add_row(*cells.values(), style="red" if marked else None)
    return table
