"""An objective in the user's units: the value of a plan, and what a counted value or bound means."""

from collections.abc import Sequence
from math import inf

from partita.models.answer import LevelResult
from partita.models.answer_plan import Metrics
from partita.models.objective import FIELDS, MetricName, Objective, WeightedMetric
from partita.solver.figures import ACCURACY, Figures
from partita.solver.instance import Instance
from partita.solver.targets import TIMES, Target, within_rounding
from partita.solver.ties import Level

MAXIMIZED = ("tokens_per_second",)
"""The objectives of which more is better."""


UNITS = {
    "iteration_time": "s",
    "bottleneck_time": "s",
    "peak_memory": "bytes",
    "inter_node_bytes": "bytes",
    "num_devices": "devices",
    "tokens_per_second": "tokens/s",
}
"""Of every metric that an objective may name; a weighted sum has none."""


class Yardstick:
    """Measures plans by one metric, or by one weighted sum of metrics.

    Parameters
    ----------
    objective
        The name of the metric, or the weights of a sum.
    target
        What the solver counts for it.
    instance, figures
        The problem and its ticks.
    """

    def __init__(
        self, objective: MetricName | dict[WeightedMetric, float], target: Target, instance: Instance, figures: Figures
    ):
        self.objective, self.target = objective, target
        self._instance, self._figures = instance, figures

    @property
    def maximizes(self) -> bool:
        """Whether more is better."""
        return self.objective in MAXIMIZED

    @property
    def exact(self) -> bool:
        """Whether values are counted to within ``ACCURACY``, whatever the times."""
        return not any(self.target.counts(metric) for metric in TIMES) and self.target.rounding <= ACCURACY

    def reported(self, metrics: Metrics) -> float | None:
        """Give the value of a plan; None for tokens per second where an iteration takes no time."""
        if isinstance(self.objective, str):
            value = getattr(metrics, FIELDS[self.objective])
            return None if value is None else float(value)
        return float(sum(weight * getattr(metrics, field) for field, weight in self.objective.items()))

    def preference(self, metrics: Metrics) -> float:
        """Give a number that is smaller for a better plan."""
        if self.maximizes:
            return -inf if metrics.tokens_per_second is None else -metrics.tokens_per_second
        return self.reported(metrics) or 0.0

    def words(self, value: float) -> str:
        """Write a value with its unit."""
        unit = UNITS[self.objective] if isinstance(self.objective, str) else ""
        return f"{value:.6g} {unit}".rstrip()

    def value(self, counted: float) -> float | None:
        """Give a counted value in the unit of the objective."""
        if not isinstance(self.objective, str) or self.target.name not in TIMES:
            return float(counted * self.target.unit)
        seconds = self._figures.seconds(counted)
        if self.maximizes:
            return self._instance.tokens / seconds if seconds else None
        return float(seconds)

    def bound(self, counted: int) -> float | None:
        """Give a proven bound in the unit of the objective; None where nothing is proven."""
        if counted <= 0:
            return None
        certain = counted - (0 if self.exact else self._blur) - int(counted * self.target.rounding)
        return self.value(certain) if certain > 0 else None

    @property
    def _blur(self) -> int:
        """Give by how much a counted value can be off where times are too far apart, in its own unit."""
        ticks = int(self._figures.time(self._figures.blur))
        return sum(part.of(ticks) for part in self.target.parts if part.metric in TIMES)

    def meets(self, bound: int, value: int, resolution: int) -> bool:
        """Tell whether a bound proves that nothing is better than a value, both counted."""
        sharp = self.target.rounding <= ACCURACY and (self.exact or self._blur <= ACCURACY * value)
        return sharp and within_rounding(bound) > value - resolution

    def gain(self, before: float, after: float) -> float:
        """Give by how much a value is better than one before it, in the unit of the objective."""
        return after - before if self.maximizes else before - after

    def no_better(self, bound: float | None, value: float | None) -> float | None:
        """Give a bound, or the plan's own value where rounding puts the bound on its other side."""
        if bound is None or value is None:
            return bound
        return max(bound, value) if self.maximizes else min(bound, value)


def yardsticks(
    objective: Objective, levels: tuple[Target, ...], instance: Instance, figures: Figures
) -> list[Yardstick]:
    """Give the yardsticks of an objective, one for each level."""
    named = objective if isinstance(objective, tuple) else (objective,)
    return [Yardstick(name, target, instance, figures) for name, target in zip(named, levels, strict=True)]


def level_results(
    sticks: Sequence[Yardstick], levels: Sequence[Level], metrics: Metrics, first: float | None
) -> tuple[LevelResult, ...]:
    """Give what is known of the best plan at every level of an objective; nothing where there is but one.

    Parameters
    ----------
    sticks, levels
        The yardstick of every level, and what is proven at those after the first.
    metrics, first
        Of the best plan, and the bound at the first level.
    """
    if len(sticks) == 1:
        return ()
    values = [each.reported(metrics) for each in sticks]
    bounds: list[float | None] = [first, *[None] * (len(sticks) - 1)]
    for number, level in enumerate(levels, start=1):
        stick = sticks[number]
        bound = stick.no_better(stick.bound(level.bound), values[number])
        bounds[number] = values[number] if level.proven else bound
    found = []
    for stick, value, bound in zip(sticks, values, bounds, strict=True):
        assert isinstance(stick.objective, str), "only metrics are listed"
        found.append(LevelResult(objective=stick.objective, value=value, best_bound=bound))
    return tuple(found)


def deciding(sticks: Sequence[Yardstick], one: Metrics, other: Metrics) -> Yardstick:
    """Give the first level at which more than rounding tells two plans apart; the first of all where none does."""
    for stick in sticks:
        first, second = stick.preference(one), stick.preference(other)
        if abs(first - second) > ACCURACY * max(abs(first), abs(second)):
            return stick
    return sticks[0]


def better(sticks: Sequence[Yardstick], one: Metrics, other: Metrics) -> bool:
    """Tell whether a plan is better than another by more than rounding, at the level that decides."""
    stick = deciding(sticks, one, other)
    first, second = stick.preference(one), stick.preference(other)
    return second - first > ACCURACY * max(abs(first), abs(second))


def levels_of_another(
    sticks: Sequence[Yardstick], levels: Sequence[LevelResult], metrics: Metrics
) -> tuple[LevelResult, ...]:
    """Give the levels of another plan than the best: bounds hold up to the first level at which it is worse."""
    found, equal = [], True
    for stick, level in zip(sticks if levels else (), levels, strict=True):
        value = stick.reported(metrics)
        found.append(level.model_copy(update={"value": value, "best_bound": level.best_bound if equal else None}))
        best = level.value
        equal &= value is not None and best is not None and abs(value - best) <= ACCURACY * abs(best)
    return tuple(found)


def relative_gap(value: float | None, bound: float | None) -> float | None:
    """Give the distance between a plan and the bound, as a fraction of the plan; None where either is unknown."""
    if value is None or bound is None:
        return None
    return abs(value - bound) / abs(value) if value else 0.0
