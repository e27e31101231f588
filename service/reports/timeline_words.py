"""What all forms of a timeline call things."""

from math import fsum

from partita.models.answer import Candidate
from partita.models.naming import quoted
from partita.service.reports.wording import device_ranges, first_few, percent
from partita.solver.timeline import Action, Timeline, Transfer

KINDS = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}
"""The kinds of action in words."""
MOST_DEVICES = 2
"""Most ranges of devices that name a rank."""
MOST_SHARES = 3
"""Most parts of the critical path that are named."""


def scenario_words(candidate: Candidate) -> str:
    """Go on with which scenario is shown, and whether it is the longest; with nothing where there are not several."""
    if candidate.scenario is None:
        return ""
    longest = ", the longest" if candidate.scenario == candidate.longest else ""
    return f", scenario {quoted(candidate.scenario)}{longest}"


def rank_name(devices: tuple[str, ...]) -> str:
    """Name a rank by its devices."""
    return first_few(device_ranges(devices), MOST_DEVICES)


def link_name(transfer: Transfer) -> str:
    """Name the way of a transfer by its links and by the stages at its ends."""
    return f"{' + '.join(transfer.path)}, stage {transfer.from_stage} to {transfer.to_stage}"


def critical_sentence(timeline: Timeline) -> str:
    """Say which stages and transfers the critical path spends its time in, the longest first."""
    found: dict[str, list[float]] = {}
    for piece in timeline.critical_path:
        found.setdefault(_part(piece.of), []).append(piece.end_s - piece.start_s)
    shares = [(name, fsum(times) / timeline.makespan_s) for name, times in found.items()] if timeline.makespan_s else []
    shares = sorted((each for each in shares if each[1] > 0), key=lambda each: -each[1])
    if not shares:
        return "The critical path takes no time."
    parts = [f"{percent(share)} in {name}" for name, share in shares[:MOST_SHARES]]
    if len(shares) > MOST_SHARES + 1:
        rest = shares[MOST_SHARES:]
        parts.append(f"{percent(fsum(share for _, share in rest))} in {len(rest)} other parts")
    elif len(shares) > MOST_SHARES:
        parts.append(f"{percent(shares[-1][1])} in {shares[-1][0]}")
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    sent = fsum(piece.end_s - piece.start_s for piece in timeline.critical_path if isinstance(piece.of, Transfer))
    rest_of = f"; transfers are {percent(sent / timeline.makespan_s)} of it" if sent > 0 else ""
    included = "; the stages' times include their transfers" if timeline.blocking else rest_of
    return f"The critical path spends {listed}{included}."


def _part(event: Action | Transfer) -> str:
    """Name the part of the pipeline that an action or a transfer belongs to."""
    if isinstance(event, Action):
        return f"stage {event.stage}"
    return f"transfers from stage {event.from_stage} to {event.to_stage}"
