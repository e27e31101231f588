"""How a reason why there is no plan is put together."""

from collections.abc import Sequence

from partita.models.answer import Finding, Infeasibility


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
