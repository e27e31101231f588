"""Plans for torch.distributed.pipelining: which stage has which layers, ranks and orders."""

import json
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from partita.models.actions import Action, write_orders_csv
from partita.models.answer import Candidate
from partita.models.base import Faults, Many, Model, at_most
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.models.machines import MAX_DEVICES
from partita.models.orders import check_orders
from partita.models.plan import GivenPlan, GivenStage
from partita.models.problem import Problem
from partita.models.profile import MAX_LAYERS
from partita.models.quantities import Count, Name, Position
from partita.models.schedule import Schedule
from partita.models.tensor import LayerNames
from partita.models.writers.plan import cluster_devices, recompute_options, stage_layers

Ranks = Annotated[Many[Position], Field(min_length=1), at_most(MAX_LAYERS, "ranks")]


class TorchPlan(Model):
    """A plan as it is built with torch.distributed.

    Attributes
    ----------
    schedule, num_microbatches
        What the orders are those of.
    devices
        The device of every global rank.
    groups
        The global ranks of every pipeline in the order of its stages' ranks, for
        ``new_group(ranks, sort_ranks=False)``; every process makes all groups, in this order. There is one for every
        replica and, in it, for every device of a tensor-parallel group.
    stage_to_rank
        The rank within its pipeline that runs each stage.
    stages, recompute
        The layers of each stage, and the option of those of them that are recomputed.
    orders
        For each rank of a pipeline, its actions as a row of the CSV that ``_load_csv`` reads.
    """

    schedule: str
    num_microbatches: Count
    devices: Annotated[Many[Name], Field(min_length=1), at_most(MAX_DEVICES, "devices")]
    groups: Annotated[Many[Ranks], Field(min_length=1), at_most(MAX_DEVICES, "groups")]
    stage_to_rank: Ranks
    stages: Annotated[Many[LayerNames], Field(min_length=1), at_most(MAX_LAYERS, "stages")]
    recompute: Annotated[Many[dict[Name, Name]], at_most(MAX_LAYERS, "stages")]
    orders: Many[str]

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse orders that cannot run, and stages, ranks and devices that are not those of the orders."""
        faults = Faults()
        try:
            check_orders(faults, ("orders",), self.actions, self.num_microbatches)
        except InvalidInput as error:
            for each in error.faults:
                faults.add(("orders",), each.detail, code=each.code)
        if not faults.count:
            self._check_ranks(faults)
        faults.raise_if_any(type(self).__name__)
        return self

    def _check_ranks(self, faults: Faults) -> None:
        """Compare what is said of stages and ranks with orders that can run."""
        rank_of = {action.stage: rank for rank, order in enumerate(self.actions) for action in order}
        ranks = [rank_of[stage] for stage in range(len(rank_of))]
        if list(self.stage_to_rank) != ranks:
            faults.add(("stage_to_rank",), f"the orders run the stages on ranks {ranks}; write these")
        for name in ("stages", "recompute"):
            if len(getattr(self, name)) != len(ranks):
                faults.add((name,), f"the orders run {len(ranks)} stages; give an item for each")
        for place, (layers, options) in enumerate(zip(self.stages, self.recompute, strict=False)):
            for name in options.keys() - set(layers):
                faults.add(("recompute", place, name), f"stage {place} has no layer of this name; name one of its own")
        numbers = [number for group in self.groups for number in group]
        if any(len(group) != len(self.actions) for group in self.groups):
            faults.add(("groups",), f"the orders have {len(self.actions)} ranks; name so many in every group")
        elif len(set(numbers)) != len(numbers) or max(numbers) >= len(self.devices):
            faults.add(("groups",), f"a rank stands twice, or is none of the {len(self.devices)} that have a device")

    def given(self) -> GivenPlan:
        """Give the stages and their devices, to be priced."""
        return GivenPlan(
            stages=tuple(
                GivenStage(
                    layers=layers,
                    options=options,
                    devices=tuple(self.devices[group[rank]] for group in self.groups),
                )
                for layers, options, rank in zip(self.stages, self.recompute, self.stage_to_rank, strict=True)
            )
        )

    @property
    def actions(self) -> tuple[tuple[Action, ...], ...]:
        """The orders taken apart."""
        rows = validate(Schedule, {"kind": "custom", "orders": "\n".join(self.orders)}).orders
        return rows or ()


def write_torch(problem: Problem, candidate: Candidate, orders: Sequence[Sequence[Action]]) -> str:
    """Write a plan with the orders of its ranks as JSON.

    Raises
    ------
    InvalidInput
        When what is written would not be read as this plan.
    """
    used = {device for stage in candidate.stages for device in stage.devices}
    devices = [device for device in cluster_devices(problem) if device in used]
    number = {device: rank for rank, device in enumerate(devices)}
    of_rank = {stage.rank: stage.devices for stage in candidate.stages}
    columns = [[number[device] for device in of_rank[rank]] for rank in sorted(of_rank)]
    values = {
        "schedule": candidate.schedule.kind,
        "num_microbatches": candidate.num_microbatches,
        "devices": devices,
        "groups": [list(group) for group in zip(*columns, strict=True)],
        "stage_to_rank": [stage.rank for stage in candidate.stages],
        "stages": stage_layers(problem, candidate),
        "recompute": recompute_options(problem, candidate),
        "orders": write_orders_csv(orders).splitlines(),
    }
    text = json.dumps(values, ensure_ascii=False, indent=1) + "\n"
    _check_read_back(text, problem, candidate, orders)
    return text


def is_torch(data: object) -> bool:
    """Tell what ``write_torch`` writes from other JSON values."""
    return isinstance(data, dict) and "stage_to_rank" in data


def read_torch(data: object) -> TorchPlan:
    """Read what ``write_torch`` writes, from JSON values.

    Raises
    ------
    InvalidInput
        When it is not that.
    """
    return validate(TorchPlan, data)


def _check_read_back(text: str, problem: Problem, candidate: Candidate, orders: Sequence[Sequence[Action]]) -> None:
    """Compare what is read from a text with the plan."""
    try:
        plan = read_torch(read_json(text.encode()))
    except InvalidInput as error:
        detail = f"the plan contradicts itself: {error.faults[0].detail}"
        raise InvalidInput.at("/plan", detail, None, "not_expressible") from None
    found = [(stage.layers, stage.options, stage.devices) for stage in plan.given().stages or ()]
    stages, options = stage_layers(problem, candidate), recompute_options(problem, candidate)
    meant = list(zip(stages, options, (stage.devices for stage in candidate.stages), strict=True))
    if found != meant or [list(order) for order in plan.actions] != [list(order) for order in orders]:
        detail = "the text would be read as another plan: a rank has no actions, or devices twice"
        raise InvalidInput.at("/plan/stages", detail, None, "not_expressible")
