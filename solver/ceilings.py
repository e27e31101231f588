"""The limits of a problem as the largest values of metrics, in the user's units; that on memory is a capacity."""

from dataclasses import dataclass
from typing import Literal

from partita.models.objective import ALIKE, FIELDS
from partita.solver.instance import Instance

OTHERS = {field: metric for metric, field in FIELDS.items() if metric not in (*ALIKE, "peak_memory")}
"""Limits from above, and the metric of each; those of ``ALIKE`` are limits from below."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit.

    Attributes
    ----------
    field
        Its field in ``Limits``, and in ``Metrics``.
    metric
        The metric that is limited from above.
    given
        The limit as it is written.
    most
        The largest value of the metric, in seconds, bytes or devices.
    """

    field: str
    metric: str
    given: float | int
    most: float | int

    @property
    def is_floor(self) -> bool:
        """Whether it is written as the least of a rate."""
        return self.field in ALIKE

    @property
    def unit(self) -> Literal["bytes", "s", "devices"]:
        """The unit of ``most``."""
        if self.metric in ("iteration_time", "bottleneck_time"):
            return "s"
        return "devices" if self.metric == "num_devices" else "bytes"

    @property
    def text(self) -> str:
        """The limit as it is written, with its unit."""
        words = {"tokens_per_second": "tokens/s at least", "microbatches_per_second": "microbatches/s at least"}
        return f"{self.given:g} {words.get(self.field, self.unit)}"


def ceilings(instance: Instance) -> list[Ceiling]:
    """Give the limits that a problem sets, but for those on memory and on the bubble."""
    limits, found = instance.problem.limits, []
    for field, metric in OTHERS.items():
        given = getattr(limits, field)
        if given is not None:
            found.append(Ceiling(field, metric, given, given))
    for field, metric in ALIKE.items():
        given = getattr(limits, field)
        if given is not None:
            amount = instance.tokens if field == "tokens_per_second" else 1
            found.append(Ceiling(field, metric, given, amount / given))
    return found
