"""Plans for captured PyTorch modules, as they run; needs torch."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from partita.models.actions import Action
from partita.models.pytorch.split import RunPlan
from partita.models.schedule import Schedule
from partita.solver.pipeline import arrange


def run_plan(
    layers: Sequence[Any],
    cuts: Sequence[int],
    schedule: str | Sequence[Sequence[str]],
    *,
    microbatches: int = 4,
    places: Sequence[int] | None = None,
    recomputed: Mapping[str, str] | None = None,
    policies: Mapping[str, Any] | None = None,
) -> RunPlan:
    """Give a plan that cuts after so many layers, under a schedule by its name or by its orders."""
    bounds = [0, *cuts, len(layers)]
    names = [layer.name for layer in layers]
    stages = tuple(tuple(names[first:until]) for first, until in pairwise(bounds))
    kind = {"kind": schedule} if isinstance(schedule, str) else {"kind": "custom", "orders": schedule}
    pipeline = arrange(Schedule.model_validate(kind), len(stages), microbatches)
    orders = tuple(
        tuple(
            Action.model_validate({"kind": kind, "stage": stage, "microbatch": number}) for kind, stage, number in each
        )
        for each in pipeline.orders
    )
    return RunPlan(stages, orders, tuple(places or range(len(orders))), recomputed or {}, policies or {})


def even(layers: Sequence[Any], num_stages: int) -> list[int]:
    """Give cuts that leave equally many layers on all stages."""
    return [len(layers) * stage // num_stages for stage in range(1, num_stages)]
