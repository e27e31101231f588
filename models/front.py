"""The Pareto front of two metrics: what is asked, and the answer."""

from collections.abc import Collection, Sequence
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from partita.models.answer import Candidate, Effort, Infeasibility
from partita.models.base import Faults, Many, Model
from partita.models.objective import ALIKE, FIELDS, MetricName
from partita.models.problem import Problem

FrontMetric = Literal[
    "iteration_time_s",
    "tokens_per_second",
    "bottleneck_time_s",
    "microbatches_per_second",
    "peak_memory_bytes",
    "num_devices",
    "inter_node_bytes",
]
MAX_POINTS = 1000

MINIMIZED: dict[str, MetricName] = {FIELDS[name]: ALIKE.get(name, name) for name in get_args(MetricName)} | ALIKE
"""What is minimized for each metric of a front."""

SAME_ITERATIONS = ("iteration_time_s", "inter_node_bytes")
SAME_MICROBATCHES = ("bottleneck_time_s", "microbatches_per_second")
"""Metrics by which plans are compared only where their iterations, or their microbatches, have as many samples."""

FrontStatus = Literal["complete", "sample", "partial", "infeasible", "no_solution"]


class FrontRequest(Model):
    """What front is asked for.

    Attributes
    ----------
    problem
        Whose plans are compared; its objective is not used, its limits hold, and ``search.time_limit_s`` is the time
        for the whole front.
    metrics
        Two different metrics; of rates more is better, of all others less.
    points
        The most plans to give; where the front holds more, they are spread over it.
    """

    problem: Problem
    metrics: Annotated[Many[FrontMetric], Field(min_length=2, max_length=2)] = ("iteration_time_s", "peak_memory_bytes")
    points: Annotated[int, Field(ge=2, le=MAX_POINTS)] = 20

    @model_validator(mode="after")
    def _check(self) -> Self:
        first, second = self.metrics
        faults = Faults()
        if MINIMIZED[first] == MINIMIZED[second]:
            detail = (
                f"{second!r} orders plans just as {first!r} does, so one plan is the best by both; give another one"
            )
            faults.add(("metrics", 1), detail, second)
        training = self.problem.training
        if not training.per_stage_degrees:
            _check_comparable(faults, self.metrics, training.iteration_samples(), "iterations", SAME_ITERATIONS)
            _check_comparable(faults, self.metrics, training.samples_at_once(), "microbatches", SAME_MICROBATCHES)
        faults.raise_if_any("FrontRequest")
        return self


def _check_comparable(
    faults: Faults, metrics: Sequence[str], samples: Sequence[int], what: str, same: Collection[str]
) -> None:
    """Refuse metrics by which plans for different numbers of samples cannot be compared."""
    for place, metric in enumerate(metrics):
        if len(samples) > 1 and metric in same:
            detail = (
                f"the choices of batches and replicas make {what} of {samples[0]} to {samples[-1]} samples over all "
                f"replicas, which cannot be compared by {metric!r}; take 'tokens_per_second'"
            )
            faults.add(("metrics", place), detail, metric, "batch")


class FrontPoint(Model):
    """A plan than which no other is better in one metric and at least as good in the other.

    Attributes
    ----------
    values
        Of the two metrics.
    bounds
        What is proven of each: no plan that keeps the other value is better than this.
    plan
        The plan; its rank is its place in the front.
    """

    values: Annotated[Many[float], Field(min_length=2, max_length=2)]
    bounds: Annotated[Many[float | None], Field(min_length=2, max_length=2)]
    plan: Candidate


class Region(Model):
    """Where further points of a front may lie: values of one metric from ``least`` to ``most``, each None for any."""

    metric: FrontMetric
    least: float | None
    most: float | None


class Front(Model):
    """The Pareto front of two metrics.

    Attributes
    ----------
    status
        ``complete``: every point of the front is here. ``sample``: as many as were asked for, spread over it.
        ``partial``: the time ran out; what is here is proven. ``infeasible``: there is no plan. ``no_solution``: the
        time ran out before any point was proven.
    metrics
        The two metrics.
    points
        The plans, best by the first metric first. Plans with the same values are one point.
    unexplored
        Where further points may lie.
    infeasibility
        Why there is no plan; None unless the status is ``infeasible``.
    assumptions, warnings
        What the figures rest on; what looks like a mistake.
    solver
        The effort; the only part that may differ between two runs of one problem.
    problem, problem_digest
        The problem, where asked for, and its digest.
    version
        The version of Partita.
    """

    status: FrontStatus
    metrics: Annotated[Many[FrontMetric], Field(min_length=2, max_length=2)]
    points: Many[FrontPoint] = ()
    unexplored: Many[Region] = ()
    infeasibility: Infeasibility | None = None
    assumptions: Many[str] = ()
    warnings: Many[str] = ()
    solver: Effort | None = None
    problem: Problem | None = None
    problem_digest: str
    version: str
