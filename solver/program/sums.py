"""What is minimized, and weighted sums that are limited (C19)."""

from math import ceil

from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.program.scale import TARGET_TICKS, Scale, power
from partita.solver.targets import MOST_UNITS, TIMES, WEIGHTED, Target


class SumRows:
    """Adds targets over the metrics of a program.

    Parameters
    ----------
    program, scale
        Where the rows go, and the units of times and bytes.
    metrics
        The variables of the metrics.
    """

    def __init__(self, program: Program, scale: Scale, metrics: dict[str, Variable]) -> None:
        self._program, self._scale, self._metrics = program, scale, metrics
        self._sums: dict[Target, tuple[Variable, int]] = {}

    def minimize(self, target: Target) -> int:
        """Set the objective; give how many ticks, bytes, devices or units of a sum are one unit of it."""
        if target.name == WEIGHTED:
            variable, unit = self._sum(target, MOST_UNITS)
            self._program.minimize(variable)
            return unit
        self._program.minimize(self._metrics[target.name])
        return self._unit_of(target.name)

    def add_limit(self, target: Target, most: int) -> None:
        """Limit a weighted sum."""
        self._sum(target, most)

    def _unit_of(self, metric: str) -> int:
        """Give how many ticks, bytes or devices one unit of a metric's variable is."""
        if metric in TIMES:
            return self._scale.ticks
        return 1 if metric == "num_devices" else self._scale.bytes

    def _largest(self, metric: str) -> int:
        """Give the largest value that a metric's variable can have, in ticks, bytes or devices."""
        most: int = ceil(self._metrics[metric].upBound * self._unit_of(metric))
        return most

    def _sum(self, target: Target, most: int) -> tuple[Variable, int]:
        """Give the variable of a weighted sum of at most so much, and how much one unit of it is (C19)."""
        if target in self._sums:
            return self._sums[target]
        shares = {part: part.of(self._largest(part.metric)) for part in target.parts}
        most = min(most, sum(shares.values()))
        unit = 1 if self._scale.integer else power(most, TARGET_TICKS)
        number = len(self._sums)
        total = self._program.quantity(f"sum_{number}", 0, most if unit == 1 else most / unit)
        row = Linear().add(total)
        for part, largest in shares.items():
            metric, each = self._metrics[part.metric], self._unit_of(part.metric)
            if not self._scale.integer:
                row.add(metric, -(part.times / part.over) * (each / unit))
            elif part.over == 1:
                row.add(metric, -part.times)
            else:
                share = self._program.quantity(f"part_{number}_{part.metric}", 0, min(most, largest))
                rounded = Linear().add(share, part.over).add(metric, -part.times)
                self._program.at_least("part", rounded, 0)
                row.add(share, -1)
        self._program.at_least("sum", row, 0)
        self._sums[target] = total, unit
        return total, unit


def add_devices(program: Program, number: int) -> Variable:
    """Give the devices in use as a variable: all plans of a configuration use equally many."""
    return program.quantity("num_devices", number, number)
