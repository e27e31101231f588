"""What tells a plan from the best one, in a few words."""

from collections.abc import Iterator, Sequence

from partita.models.answer import Candidate
from partita.models.choices import Configured
from partita.models.schedule import Schedule
from partita.service.reports.configuration_words import configuration_cells
from partita.service.reports.schedule_words import schedule_name
from partita.service.reports.wording import counted

FEW_STAGES = 16
"""Numbers of layers are listed for up to so many stages."""


def sizes_text(sizes: Sequence[int]) -> str:
    """Write how many layers every stage has; only how many stages there are, where these are many."""
    return f"layers {' '.join(map(str, sizes))}" if len(sizes) <= FEW_STAGES else counted(len(sizes), "stage")


def differences(
    plan: Candidate, best: Candidate, among: Sequence[Configured], schedules: Sequence[Schedule]
) -> Iterator[str]:
    """Name what a plan has otherwise than the best.

    Parameters
    ----------
    plan, best
        Both plans.
    among
        What was compared: configurations are told apart where these differ.
    schedules
        Those of the problem, on which their names depend.
    """
    if plan.schedule != best.schedule:
        yield schedule_name(plan.schedule, schedules)
    cells, theirs = configuration_cells(plan, among), configuration_cells(best, among)
    yield from (f"{column.lower()} {text}" for column, text in cells.items() if text != theirs[column])
    sizes, others = ([len(stage.layers) for stage in each.stages] for each in (plan, best))
    moved = _moved(sizes, others)
    if len(sizes) <= FEW_STAGES and sizes != others:
        yield sizes_text(sizes)
    elif len(sizes) != len(others):
        yield counted(len(sizes), "stage")
    elif moved:
        yield f"{counted(moved, 'boundary', 'boundaries')} moved"
    elif [stage.layers for stage in plan.stages] != [stage.layers for stage in best.stages]:
        yield "other layers on some stages"
    recomputed = _recomputed(plan)
    if recomputed != _recomputed(best):
        yield f"{counted(len(recomputed), 'layer')} recomputed" if recomputed else "nothing recomputed"
    if len(sizes) == len(others) and [each.devices for each in plan.stages] != [each.devices for each in best.stages]:
        yield "other devices"


def _moved(sizes: Sequence[int], others: Sequence[int]) -> int:
    """Count the boundaries between stages that lie elsewhere."""
    return len({sum(sizes[:cut]) for cut in range(len(sizes))} - {sum(others[:cut]) for cut in range(len(others))})


def _recomputed(plan: Candidate) -> dict[str, str]:
    """Give which layers are recomputed, and by which option where there is a choice."""
    return {layer: stage.options.get(layer, "") for stage in plan.stages for layer in stage.recompute}
