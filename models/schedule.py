"""In which order a rank runs the forward and backward passes of its microbatches."""

import re
from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from partita.models.base import Faults, Many, Model, at_most, fault
from partita.models.quantities import Position

ScheduleKind = Literal[
    "forward_only",
    "gpipe",
    "1f1b",
    "interleaved_1f1b",
    "zb_h1",
    "zb_h2",
    "zb_v",
    "dualpipe_v",
    "interleaved_zb",
    "looped_bfs",
    "custom",
]

ONE_CHUNK = frozenset({"forward_only", "gpipe", "1f1b", "zb_h1", "zb_h2"})
"""Schedules in which every rank runs one stage."""
TWO_CHUNKS = frozenset({"zb_v", "dualpipe_v"})
"""Schedules in which every rank runs two stages."""
DEFAULT_CHUNKS = 2
"""Stages per rank of the schedules that leave it open, when none are given."""

_ACTION = re.compile(r"([0-9]{1,6})([FBIW])([0-9]{1,6})")


class Action(Model):
    """One step of a rank; ``2F0`` is short for the forward pass of microbatch 0 on stage 2.

    Attributes
    ----------
    kind
        F forward, B whole backward, I input gradient, W weight gradient.
    stage, microbatch
        Counted from 0.
    """

    kind: Literal["F", "B", "I", "W"]
    stage: Position
    microbatch: Position


def _read_action(value: object) -> object:
    """Spell out an action written as text."""
    if not isinstance(value, str):
        return value
    match = _ACTION.fullmatch(value)
    if match is None:
        raise fault("action_text", "an action is stage, F, B, I or W, and microbatch, such as '2F0'")
    return {"kind": match[2], "stage": int(match[1]), "microbatch": int(match[3])}


Actions = Annotated[
    Many[Annotated[Action, BeforeValidator(_read_action, json_schema_input_type=Action | str)]],
    Field(fail_fast=True),
    at_most(1_000_000, "actions"),
]


class Schedule(Model):
    """A schedule by its name, or the orders themselves.

    Attributes
    ----------
    kind
        The name.
    chunks_per_rank
        Stages per rank, for the schedules that leave it open; None means 2 there.
    orders
        The actions of every rank, in order; with ``custom`` only.
    """

    kind: ScheduleKind
    chunks_per_rank: Annotated[int, Field(ge=1, le=64)] | None = None
    orders: Annotated[Many[Actions], Field(min_length=1, fail_fast=True), at_most(4096, "ranks")] | None = None

    @property
    def chunks(self) -> int:
        """Stages per rank (for ``custom``: the most that any rank runs)."""
        if self.orders is not None:
            return max(1, max(len({action.stage for action in order}) for order in self.orders))
        if self.kind in ONE_CHUNK:
            return 1
        return DEFAULT_CHUNKS if self.chunks_per_rank is None else self.chunks_per_rank

    @property
    def trains(self) -> bool:
        """Whether there is a backward pass."""
        if self.orders is not None:
            return any(action.kind != "F" for order in self.orders for action in order)
        return self.kind != "forward_only"

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        given = self.chunks_per_rank
        if self.kind == "custom" and self.orders is None:
            faults.add(("orders",), "a custom schedule needs its orders: the actions of every rank", code="missing")
        if self.kind != "custom" and self.orders is not None:
            faults.add(("orders",), f"orders belong to the kind 'custom', not to {self.kind!r}", self.orders)
        if given is not None and self.kind == "custom":
            faults.add(("chunks_per_rank",), "a custom schedule says it by its orders; leave it out", given)
        if given is not None and self.kind in ONE_CHUNK and given != 1:
            faults.add(("chunks_per_rank",), f"{self.kind} runs one stage on every rank; leave it out", given)
        if given is not None and self.kind in TWO_CHUNKS and given != DEFAULT_CHUNKS:
            faults.add(("chunks_per_rank",), f"{self.kind} runs two stages on every rank; leave it out", given)
        faults.raise_if_any("Schedule")
        return self


def read_schedule(value: object) -> object:
    """Spell out a schedule written as its name alone."""
    if isinstance(value, dict | Schedule):
        return value
    if not isinstance(value, str):
        raise fault("schedule_form", "expected the name of a schedule, or an object with its kind")
    if value == "custom":
        raise fault("schedule_kind", "a custom schedule is written {'kind': 'custom', 'orders': …}")
    if value not in get_args(ScheduleKind):
        raise fault("schedule_kind", f"unknown schedule; known are {', '.join(get_args(ScheduleKind))}")
    return {"kind": value}


ScheduleField = Annotated[Schedule, BeforeValidator(read_schedule, json_schema_input_type=ScheduleKind | Schedule)]
"""A schedule, or its name."""
