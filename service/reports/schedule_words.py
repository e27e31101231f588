"""What people call schedules."""

from collections.abc import Sequence

from partita.models.schedule import Schedule


def schedule_name(schedule: Schedule, among: Sequence[Schedule]) -> str:
    """Name a schedule; where others among these are of its kind, so that they can be told apart."""
    alike = [other for other in among if other.kind == schedule.kind]
    if len(alike) < 2:
        return schedule.kind
    if schedule.orders is not None:
        return f"{schedule.kind} {1 + alike.index(schedule)}"
    return f"{schedule.kind} ({schedule.chunks} per rank)"
