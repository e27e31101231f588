"""Values of the objective as they are reported: what a plan reaches, which value is better, and by how much."""

from partita.models.answer_plan import Metrics
from partita.models.objective import Objective


def value_of(objective: Objective, metrics: Metrics) -> float | None:
    """Give the value of a plan's objective; None for tokens per second where an iteration takes no time."""
    values = {
        "iteration_time": metrics.iteration_time_s,
        "tokens_per_second": metrics.tokens_per_second,
        "bottleneck_time": metrics.bottleneck_time_s,
        "peak_memory": metrics.peak_memory_bytes,
    }
    value = values[str(objective)]
    return None if value is None else float(value)


def preference(objective: Objective, metrics: Metrics) -> float:
    """Give a number that is smaller for metrics with a better objective."""
    if objective == "tokens_per_second":
        return metrics.iteration_time_s
    value = value_of(objective, metrics)
    return 0.0 if value is None else value


def gain(objective: Objective, before: float, after: float) -> float:
    """Give by how much a value is better than one before it, in the unit of the objective."""
    return after - before if objective == "tokens_per_second" else before - after


def relative_gap(value: float | None, bound: float | None) -> float | None:
    """Give the distance between a plan and the bound, as a fraction of the plan; None where either is unknown."""
    if value is None or bound is None:
        return None
    return abs(value - bound) / abs(value) if value else 0.0


def no_better(objective: Objective, bound: float | None, value: float | None) -> float | None:
    """Give a bound, or the plan's own value where rounding puts the bound on its other side."""
    if bound is None or value is None:
        return bound
    return max(bound, value) if objective == "tokens_per_second" else min(bound, value)
