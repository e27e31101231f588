"""How a reason why there is no plan is put together."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from partita.models.answer import Finding, Infeasibility
from partita.solver.figures import ACCURACY

DIGITS = 6
"""Significant digits of numbers that are not whole."""


def at_least(number: float | int) -> str:
    """Write a number with few digits, rounded up; whole numbers as they are."""
    return _rounded(number, 1 - ACCURACY / 2, ROUND_CEILING)


def at_most(number: float | int) -> str:
    """Write a number with few digits, rounded down; whole numbers as they are."""
    return _rounded(number, 1 + ACCURACY / 2, ROUND_FLOOR)


def _rounded(number: float | int, tolerance: float, side: str) -> str:
    """Round to one side, but for half of what limits tolerate."""
    if isinstance(number, int):
        return str(number)
    return f"{float(Context(prec=DIGITS, rounding=side).create_decimal_from_float(number * tolerance)):.{DIGITS}g}"


def report(message: str, findings: Sequence[Finding], change: str | None) -> Infeasibility:
    """Give the reason with its findings and the smallest change that would help, if one is known."""
    limits = tuple(dict.fromkeys(finding.limit for finding in findings))
    return Infeasibility(message=message, findings=tuple(findings), limits_in_force=limits, smallest_change=change)


def listed(numbers: list[int]) -> str:
    """Write ascending numbers, runs of three or more as "first to last"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(parts)
