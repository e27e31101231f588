"""What a plan is judged by, and what it must not exceed."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from partita.models.base import Model
from partita.models.quantities import PositiveBytes, PositiveSeconds

ObjectiveName = Literal["iteration_time", "tokens_per_second", "peak_memory", "bottleneck_time"]
WeightedMetric = Literal["iteration_time_s", "peak_memory_bytes", "bottleneck_time_s"]


def _objective_form(value: object) -> str | None:
    """Give the tag of the form in which an objective is written; None where it is neither."""
    if isinstance(value, dict):
        return "(weights)"
    return "(name)" if isinstance(value, str) else None


Objective = Annotated[
    Annotated[ObjectiveName, Tag("(name)")]
    | Annotated[
        dict[WeightedMetric, Annotated[float, Field(ge=1e-30, le=1e30)]], Field(min_length=1), Tag("(weights)")
    ],
    Discriminator(_objective_form, custom_error_type="objective_form", custom_error_message="neither form"),
]
"""One metric by name, or the weights of a sum of metrics to be minimized."""


class Limits(Model):
    """What no plan may exceed: bytes on the fullest device, seconds; None for no limit."""

    peak_memory_bytes: PositiveBytes | None = None
    iteration_time_s: PositiveSeconds | None = None
    bottleneck_time_s: PositiveSeconds | None = None
