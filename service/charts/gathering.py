"""Gathers the bars of a timeline that has too many of them to be told apart into steps of equal length."""

from itertools import groupby

from partita.service.charts.style import Spec

ALL_STEPS = 20_000
"""Steps of all rows together, most of which join with their neighbors."""
FEWEST_STEPS, MOST_STEPS = 40, 800
"""Steps of a row; more could not be told apart on a screen."""
SHADES = 10
"""How finely it is told how much of a step is busy."""


def steps_of(rows: int) -> int:
    """Give how many steps each of so many rows is divided into."""
    return min(MOST_STEPS, max(FEWEST_STEPS, ALL_STEPS // rows))


def gathered(bars: list[Spec], end: float, steps: int) -> list[Spec]:
    """Give, row by row, what takes most of each step, and how much of it is busy; equal neighbors are one bar.

    Parameters
    ----------
    bars
        The data of single bars: ``row``, ``kind``, ``start``, ``end`` and ``critical``.
    end, steps
        Where the last step ends, and how many there are.

    Returns
    -------
    The same fields and ``busy``, the share of the time, 0 to 1; steps in which nothing runs are left out. A step is
    critical where any of its bars of that kind is.
    """
    step = end / steps
    shares: dict[str, list[dict[str, float]]] = {}
    critical: set[tuple[str, int, str]] = set()
    for bar in bars:
        row = shares.setdefault(bar["row"], [{} for _ in range(steps)])
        first = min(steps - 1, int(bar["start"] / step))
        for place in range(first, min(steps, int(bar["end"] / step) + 1)):
            part = min(bar["end"], (place + 1) * step) - max(bar["start"], place * step)
            if part > 0:
                row[place][bar["kind"]] = row[place].get(bar["kind"], 0.0) + part / step
                if bar["critical"]:
                    critical.add((bar["row"], place, bar["kind"]))
    return [bar for row, places in shares.items() for bar in _joined(row, places, critical, step)]


def _joined(row: str, places: list[dict[str, float]], critical: set[tuple[str, int, str]], step: float) -> list[Spec]:
    """Join steps of a row that look the same."""

    def look(place: int) -> tuple[str, float, bool] | None:
        parts = places[place]
        busy = round(min(1.0, sum(parts.values())) * SHADES) / SHADES
        if not busy:
            return None
        kind = max(parts, key=lambda name: parts[name])
        return kind, busy, (row, place, kind) in critical

    found = []
    for looks, run in groupby(range(len(places)), key=look):
        members = list(run)
        if looks is not None:
            kind, busy, is_critical = looks
            ends = {"start": members[0] * step, "end": (members[-1] + 1) * step}
            found.append({"row": row, "kind": kind, "busy": busy, "critical": is_critical, **ends})
    return found
