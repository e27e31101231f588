"""Which numbers of stages and of microbatches a schedule can run."""

from collections.abc import Callable

from partita.models.schedule import ScheduleKind
from partita.models.training import MAX_MICROBATCHES

IN_ROUNDS = frozenset({"interleaved_1f1b", "interleaved_zb"})
"""Schedules that run the microbatches in rounds of equal size, of at least as many as there are ranks."""


def microbatches_fault(kind: ScheduleKind, ranks: int, microbatches: int) -> str | None:
    """Say why a schedule cannot run so many microbatches on so many ranks, and the nearest numbers that it can.

    Parameters
    ----------
    kind
        The name of the schedule.
    ranks
        Ranks of the pipeline, at least 1.
    microbatches
        Microbatches of an iteration, at least 1.
    """
    if _runs(kind, ranks, microbatches):
        return None
    where = f"{kind} on {ranks} rank{'' if ranks == 1 else 's'}"
    if kind in IN_ROUNDS:
        reason = (
            f"{where} runs rounds of equal size, of at least {ranks} microbatches: {microbatches} do not divide into "
            f"{microbatches // ranks} rounds"
        )
    else:
        reason = f"{where} needs at least {2 * ranks} microbatches, not {microbatches}"
    return f"{reason}; {nearest(microbatches, MAX_MICROBATCHES, lambda number: _runs(kind, ranks, number))}"


def stages_fault(kind: ScheduleKind, chunks: int, stages: int, microbatches: int, highest: int) -> str | None:
    """Say why a schedule with so many stages on every rank cannot have so many in all, and the nearest numbers.

    Parameters
    ----------
    kind
        The name of the schedule.
    chunks
        Stages on every rank, at least 1 (``Schedule.chunks``).
    stages
        Stages of the whole pipeline, at least 1.
    microbatches
        Microbatches of an iteration; the numbers named can run them.
    highest
        The most stages that the numbers named may have.
    """
    if kind == "custom" or stages % chunks == 0:
        return None
    reason = f"{kind} runs {chunks} stages on every rank, and {stages} is no multiple of {chunks}"
    return f"{reason}; {nearest(stages, highest, lambda number: can_run(kind, chunks, number, microbatches))}"


def can_run(kind: ScheduleKind, chunks: int, stages: int, microbatches: int) -> bool:
    """Tell whether a schedule can run so many microbatches on so many stages; for ``custom`` its orders say so."""
    return kind == "custom" or (stages % chunks == 0 and _runs(kind, stages // chunks, microbatches))


def nearest(number: int, highest: int, works: Callable[[int], bool]) -> str:
    """Say which numbers from 1 to ``highest`` next to one that does not work do, below it and above it."""
    below = next((other for other in range(min(number, highest), 0, -1) if works(other)), None)
    above = next((other for other in range(number + 1, highest + 1) if works(other)), None)
    if below is not None and above is not None:
        return f"the nearest numbers that work are {below} and {above}"
    if below is None and above is None:
        return "no number works here"
    return f"the nearest number that works is {above if below is None else below}"


def _runs(kind: ScheduleKind, ranks: int, microbatches: int) -> bool:
    """Tell whether a schedule can run so many microbatches on so many ranks."""
    if kind in IN_ROUNDS:
        return microbatches % max(1, microbatches // ranks) == 0
    return kind != "dualpipe_v" or microbatches >= 2 * ranks
