"""What is minimized, in whole numbers: a metric counted in ticks, bytes or devices, or a weighted sum of several.

The parts of a weighted sum are counted in one unit, chosen so that they add up to the user's sum to within
``ACCURACY``: a part is ceil(times * value / over) units. Every backend and the judge count them in the same way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil

from partita.models.errors import InvalidInput
from partita.models.objective import ALIKE, FIELDS, Objective
from partita.solver.figures import ACCURACY
from partita.solver.measure import Measures

TIMES = ("iteration_time", "bottleneck_time")
"""The metrics counted in ticks; the others are whole numbers of bytes or devices."""

WEIGHTED = "weighted"
"""The name of a target that is a sum."""

FINENESS = 1e-11
"""The part of the least sum that one unit should be."""

CLOSE = (1e-10, 3e-10, 6e-10)
"""The relative errors that a weight in this unit may have; the first that lets 64 bits hold the sum is taken."""

MOST_UNITS = 2**61
"""No product of a weighted sum's rows exceeds this, so that 64 bits hold their sums."""


@dataclass(frozen=True, slots=True)
class Part:
    """A metric's share in a target: ceil(times * value / over)."""

    metric: str
    times: int = 1
    over: int = 1

    def of(self, value: int) -> int:
        """Give the share of a value of the metric."""
        return -(-self.times * value // self.over)

    def most(self, share: int) -> int:
        """Give the largest value of the metric with at most this share."""
        return share * self.over // self.times


@dataclass(frozen=True, slots=True)
class Target:
    """What is minimized.

    Attributes
    ----------
    name
        The metric, or ``weighted``.
    parts
        What is added up; one part, the metric itself, where the target is a metric.
    unit
        What one unit is worth in the user's weighted sum.
    rounding
        By which fraction the sum can be off, apart from the ticks.
    """

    name: str
    parts: tuple[Part, ...]
    unit: float = 1.0
    rounding: float = 0.0

    def counts(self, metric: str) -> bool:
        """Tell whether a metric matters."""
        return any(part.metric == metric for part in self.parts)

    def value(self, counted: Mapping[str, int]) -> int:
        """Give the value of a plan with these metrics, or of the least metrics a bound."""
        return sum(part.of(counted[part.metric]) for part in self.parts)

    def equal_to(self, value: int) -> int:
        """Give the largest value that equals this one but for the rounding to ticks; bytes and devices are exact."""
        return within_rounding(value) if any(part.metric in TIMES for part in self.parts) else value

    def most(self, value: int, least: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """Give the largest value of every metric in a plan of at most this value, the others being ``least``."""
        spare = value - self.value(least)
        for part in self.parts:
            yield part.metric, part.most(spare + part.of(least[part.metric]))


def within_rounding(value: int) -> int:
    """Give the largest value that equals this one to within ``ACCURACY``."""
    return value + int(value * ACCURACY)


def single(metric: str) -> Target:
    """Give the target that is a metric."""
    return Target(metric, (Part(metric),))


MEMORY = single("peak_memory")


def aims_at_memory(objective: Objective) -> bool:
    """Tell whether what is minimized first is peak memory alone."""
    first = objective[0] if isinstance(objective, tuple) else objective
    return first == "peak_memory" if isinstance(first, str) else set(first) == {"peak_memory_bytes"}


def counted(measures: Measures) -> dict[str, int]:
    """Give all metrics of a plan measured in ticks."""
    return {
        "iteration_time": int(measures.iteration),
        "bottleneck_time": int(measures.bottleneck),
        "peak_memory": measures.peak_memory,
        "num_devices": measures.num_devices,
        "inter_node_bytes": measures.inter_node_bytes,
    }


@dataclass(frozen=True, slots=True)
class Span:
    """Between which values a metric of any plan lies, and how many of the user's units one count of it is."""

    least: int
    most: int
    each: float


def make_targets(objective: Objective, span: Callable[[str], Span]) -> tuple[Target, ...]:
    """Give what is minimized, and among equals what next.

    Parameters
    ----------
    objective
        As asked.
    span
        Gives the span of a metric, over all schedules and numbers of stages of the problem.
    """
    if isinstance(objective, str):
        return (single(ALIKE.get(objective, objective)),)
    if isinstance(objective, tuple):
        return tuple(single(ALIKE.get(name, name)) for name in objective)
    weights = {name: weight for name, field in FIELDS.items() for key, weight in objective.items() if key == field}
    return (weighted_sum(weights, {name: span(name) for name in weights}),)


def weighted_sum(weights: Mapping[str, float], spans: Mapping[str, Span]) -> Target:
    """Give the target of a weighted sum, its unit as fine as 64 bits allow, up to ``FINENESS``.

    Parameters
    ----------
    weights
        Of every metric, per second, byte or device.
    spans
        Of the same metrics.

    Raises
    ------
    InvalidInput
        At ``/objective``, when the parts are too far apart for 64 bits.
    """
    worth = {metric: Fraction(weight) * Fraction(spans[metric].each) for metric, weight in weights.items()}
    if len(worth) == 1:
        ((metric, each),) = worth.items()
        return Target(metric, (Part(metric),), float(each))
    # What is at least added up tells how fine the unit must be; where that is nothing, it is as fine as it can be.
    least = sum((each * spans[metric].least for metric, each in worth.items()), Fraction(0))
    largest = sum((each * spans[metric].most for metric, each in worth.items()), Fraction(0))
    finest = max(worth, key=lambda metric: (spans[metric].most, metric))  # its ratio to the unit is exact
    start = Fraction(FINENESS) * least / worth[finest] if least else largest / worth[finest] / MOST_UNITS
    start = Fraction(int(start)) if start >= 1 else 1 / Fraction(ceil(1 / start))
    found: Target | None = None
    for steps, close in product((start * 2**power for power in range(64)), CLOSE):
        unit = steps * worth[finest]
        parts = tuple(Part(metric, *_ratio(each / unit, close)) for metric, each in worth.items())
        if not _fit(parts, spans):
            continue
        target = Target(WEIGHTED, parts, float(unit), _rounding(parts, worth, unit, least or largest))
        if found is None or target.rounding < found.rounding:
            found = target
        if found.rounding <= ACCURACY or target.rounding > 4 * found.rounding:  # coarser units round more
            break
    if found is None:
        detail = (
            "the weights are too far apart: the smallest parts of the sum cannot be counted beside the largest; bring "
            "them closer together, or write a list of metrics"
        )
        raise InvalidInput.at("/objective", detail, None, "too_far_apart")
    return found


def _fit(parts: Sequence[Part], spans: Mapping[str, Span]) -> bool:
    """Tell whether neither the parts of any plan nor their sum overflow."""
    most = [(part, spans[part.metric].most) for part in parts]
    return all(part.times * value + part.over <= MOST_UNITS for part, value in most) and all(
        part.of(value) <= MOST_UNITS // len(parts) for part, value in most
    )


def _ratio(exact: Fraction, close: float) -> tuple[int, int]:
    """Give the smallest numerator and denominator that are close to a ratio."""
    margin = Fraction(close) * exact
    near = _simplest(exact - margin, exact + margin)
    return near.numerator, near.denominator


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """Give the fraction between two positive ones that has the smallest numerator and denominator."""
    whole = ceil(low)
    if whole <= high:
        return Fraction(whole)
    below = whole - 1  # both have this whole part; what is left is turned over
    return below + 1 / _simplest(1 / (high - below), 1 / (low - below))


def _rounding(parts: Sequence[Part], worth: Mapping[str, Fraction], unit: Fraction, least: Fraction) -> float:
    """Bound the relative error of a sum: of its weights, and of a unit for each part that is rounded up."""
    inexact = max(abs(Fraction(p.times, p.over) * unit - worth[p.metric]) / worth[p.metric] for p in parts)
    units = sum(part.over > 1 for part in parts)
    return float(inexact + units * unit / least)
