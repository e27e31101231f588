"""Why there is no plan, and what would help, in words."""

from collections.abc import Iterator

from partita.models.answer import Infeasibility
from partita.models.infeasibility import Change
from partita.models.objective import Objective
from partita.service.reports.proof import amount, objective_text
from partita.service.reports.wording import percent

MOST_CHANGES = 10
"""Most changes that are listed; the answer has them all."""


def why_not(infeasibility: Infeasibility, objective: Objective) -> Iterator[str]:
    """Explain what cannot be kept, line by line."""
    yield infeasibility.message
    for finding in infeasibility.findings:
        yield f"- {finding.message}"
    if infeasibility.limits_in_force:
        yield f"Limits in force: {', '.join(infeasibility.limits_in_force)}"
    if infeasibility.findings and infeasibility.smallest_change:
        yield f"Needed at least: {infeasibility.smallest_change}"
    if infeasibility.core:
        yield from _core(infeasibility)
        yield from _changes(infeasibility, objective)
    elif infeasibility.minimal:
        yield "Even without all of these limits there is no plan."


def _core(infeasibility: Infeasibility) -> Iterator[str]:
    """List the limits that cannot hold together."""
    enough = "each of them is needed for that" if infeasibility.minimal else "perhaps fewer cannot either: time ran out"
    yield f"These cannot hold together, whatever else is given up; {enough}:"
    for limit in infeasibility.core:
        yield f"- {limit.name}: {limit.words}"


def _changes(infeasibility: Infeasibility, objective: Objective) -> Iterator[str]:
    """List the changes that were found, smallest first."""
    for number, change in enumerate(infeasibility.changes[:MOST_CHANGES]):
        if number == 0:
            yield f"Smallest change that would do: {_told(change, objective)}"
        elif number == 1:
            yield "Others that would do:"
        if number:
            yield f"- {_told(change, objective)}"
    more = len(infeasibility.changes) - MOST_CHANGES
    if more > 0:
        yield f"- and {more} more"
    if not infeasibility.all_tried:
        yield "Not every change could be tried; allow more time with --time-limit."
    elif not infeasibility.changes:
        yield "No single change is enough."


def _told(change: Change, objective: Objective) -> str:
    """Tell one change, how large it is, and what the best plan would then reach."""
    number = isinstance(change.from_value, int | float) and change.to_value is not None
    size = f" ({percent(change.size)})" if number and change.size else ""
    reached = change.objective_value
    then = "" if reached is None else f"; {objective_text(objective).lower()} then {amount(objective, reached)}"
    return f"{change.words}{size}{then}"
