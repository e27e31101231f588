"""What a plan is judged by, and what it must not exceed."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from partita.models.base import Faults, Many, Model
from partita.models.quantities import Bytes, Count, PositiveBytes, PositiveSeconds

MetricName = Literal[
    "iteration_time", "tokens_per_second", "peak_memory", "bottleneck_time", "num_devices", "inter_node_bytes"
]
WeightedMetric = Literal[
    "iteration_time_s", "peak_memory_bytes", "bottleneck_time_s", "num_devices", "inter_node_bytes"
]

FIELDS: dict[str, str] = {
    "iteration_time": "iteration_time_s",
    "tokens_per_second": "tokens_per_second",
    "peak_memory": "peak_memory_bytes",
    "bottleneck_time": "bottleneck_time_s",
    "num_devices": "num_devices",
    "inter_node_bytes": "inter_node_bytes",
}
"""The field of ``Metrics`` that holds each metric that an objective may name."""

ALIKE: dict[str, MetricName] = {"tokens_per_second": "iteration_time", "microbatches_per_second": "bottleneck_time"}
"""Metrics that are a constant divided by another one: the larger the one, the smaller the other."""


def _objective_form(value: object) -> str | None:
    """Give the tag of the form in which an objective is written; None where it is none of them."""
    if isinstance(value, dict):
        return "(weights)"
    if isinstance(value, list | tuple):
        return "(list)"
    return "(name)" if isinstance(value, str) else None


def _different(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a metric that orders plans as one before it does: it could never decide."""
    faults = Faults()
    seen: dict[str, str] = {}
    for index, name in enumerate(metrics):
        before = seen.setdefault(ALIKE.get(name, name), name)
        if index and before != name:
            faults.add((index,), f"orders plans just as {before!r} before it does; leave one of them out", name)
        elif metrics.index(name) < index:
            faults.add((index,), f"objective {name!r} is listed twice; list it once", name, "repeated")
    faults.raise_if_any("objective")
    return metrics


Objective = Annotated[
    Annotated[MetricName, Tag("(name)")]
    | Annotated[dict[WeightedMetric, Annotated[float, Field(ge=1e-30, le=1e30)]], Field(min_length=1), Tag("(weights)")]
    | Annotated[Many[MetricName], Field(min_length=1), AfterValidator(_different), Tag("(list)")],
    Discriminator(_objective_form, custom_error_type="objective_form", custom_error_message="none of the forms"),
]
"""One metric by name, the weights of a sum of metrics to be minimized, or a list of metrics: among the plans that are
best by the first, those that are best by the second, and so on."""


def metrics_of(objective: Objective) -> set[str]:
    """Name the metrics that an objective is about."""
    if isinstance(objective, str):
        return {objective}
    if isinstance(objective, tuple):
        return set(objective)
    return {name for name, field in FIELDS.items() if field in objective}


class Limits(Model):
    """What every plan keeps; None for no limit.

    Attributes
    ----------
    peak_memory_bytes, iteration_time_s, bottleneck_time_s, num_devices, inter_node_bytes
        The most: bytes on the fullest device, seconds, devices in use, bytes between nodes in one iteration.
    tokens_per_second, microbatches_per_second
        The least.
    bubble_fraction
        The most, of device time; where every plan keeps the devices busy equally long.
    """

    peak_memory_bytes: PositiveBytes | None = None
    iteration_time_s: PositiveSeconds | None = None
    bottleneck_time_s: PositiveSeconds | None = None
    tokens_per_second: Annotated[float, Field(gt=0, le=1e30)] | None = None
    microbatches_per_second: Annotated[float, Field(gt=0, le=1e30)] | None = None
    num_devices: Count | None = None
    inter_node_bytes: Bytes | None = None
    bubble_fraction: Annotated[float, Field(ge=0, lt=1)] | None = None
