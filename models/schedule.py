"""In which order a rank runs the forward and backward passes of its microbatches."""

from functools import cached_property
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from partita.models.actions import MAX_RANKS, Action, Actions, read_orders_csv
from partita.models.base import Faults, Many, Model, at_most, fault

__all__ = ["Action", "Schedule", "ScheduleField", "ScheduleKind"]

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
SPLIT = frozenset({"zb_h1", "zb_h2", "zb_v", "dualpipe_v", "interleaved_zb"})
"""Schedules that split some backward passes into input gradient and weight gradient."""
MAX_SCHEDULES = 16
"""Most schedules that one problem compares."""
DEFAULT_CHUNKS = 2
"""Stages per rank of the schedules that leave it open, when none are given."""

Orders = Annotated[
    Many[Actions],
    Field(min_length=1, fail_fast=True),
    at_most(MAX_RANKS, "ranks"),
    BeforeValidator(read_orders_csv, json_schema_input_type=Annotated[Many[Actions], Field(min_length=1)] | str),
]
"""The actions of every rank, as lists or as CSV."""


class Schedule(Model):
    """A schedule by its name, or the orders themselves.

    Attributes
    ----------
    kind
        The name.
    chunks_per_rank
        Stages per rank, for the schedules that leave it open; None means 2 there.
    orders
        The actions of every rank, in order; with ``custom`` only. As lists, or as the compute-only CSV of
        torch.distributed.pipelining.
    """

    kind: ScheduleKind
    chunks_per_rank: Annotated[int, Field(ge=1, le=64)] | None = None
    orders: Orders | None = None

    @cached_property
    def chunks(self) -> int:
        """Stages per rank (for ``custom``: the most that any rank runs)."""
        if self.orders is not None:
            return max(1, max(len({action.stage for action in order}) for order in self.orders))
        if self.kind in ONE_CHUNK:
            return 1
        return DEFAULT_CHUNKS if self.chunks_per_rank is None else self.chunks_per_rank

    @cached_property
    def stages(self) -> int | None:
        """Stages of the whole pipeline where the schedule itself says how many: with ``custom`` only."""
        if self.orders is None:
            return None
        return len({action.stage for order in self.orders for action in order})

    @cached_property
    def splits(self) -> bool:
        """Whether some backward passes are split into input gradient and weight gradient."""
        if self.orders is not None:
            return any(action.kind == "W" for order in self.orders for action in order)
        return self.kind in SPLIT

    @cached_property
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
        raise fault("schedule_form", "expected the name of a schedule, an object with its kind, or a list of these")
    if value == "custom":
        raise fault("schedule_kind", "a custom schedule is written {'kind': 'custom', 'orders': …}")
    if value not in get_args(ScheduleKind):
        raise fault("schedule_kind", f"unknown schedule; known are {', '.join(get_args(ScheduleKind))}")
    return {"kind": value}


_OneSchedule = Annotated[Schedule, BeforeValidator(read_schedule, json_schema_input_type=ScheduleKind | Schedule)]


def _check_different(schedules: tuple[Schedule, ...]) -> tuple[Schedule, ...]:
    """Refuse a schedule listed twice, however it is written, and schedules that do not do the same work."""
    faults = Faults()
    for index, schedule in enumerate(schedules):
        for number, other in enumerate(schedules[:index]):
            if (schedule.kind, schedule.chunks, schedule.orders) == (other.kind, other.chunks, other.orders):
                detail = f"the same schedule as number {number} ({schedule.kind}); list it once"
                faults.add((index,), detail, schedule.kind, "repeated")
                break
        if schedule.trains != schedules[0].trains:
            detail = (
                f"{schedule.kind} has {_passes(schedule)}, but {schedules[0].kind} has {_passes(schedules[0])}: they "
                "do not do the same work and cannot be compared; take one of them out"
            )
            faults.add((index,), detail, schedule.kind)
    faults.raise_if_any("schedules")
    return schedules


def _passes(schedule: Schedule) -> str:
    return "backward passes" if schedule.trains else "no backward pass"


def _schedule_form(value: object) -> str:
    """Give the tag of the branch of ``ScheduleField`` that a value belongs to."""
    return "(list)" if isinstance(value, list | tuple) else "(one)"


ScheduleField = Annotated[
    Annotated[_OneSchedule, Tag("(one)")]
    | Annotated[
        Many[_OneSchedule],
        Field(min_length=1),
        AfterValidator(_check_different),
        at_most(MAX_SCHEDULES, "schedules"),
        Tag("(list)"),
    ],
    Discriminator(_schedule_form),
]
"""A schedule, or its name; or a list of different ones to compare."""
