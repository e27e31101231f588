"""The steps of a rank, as objects, as text such as 2F0, and as the CSV of torch.distributed.pipelining."""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from partita.models.base import Faults, Many, Model, at_most, fault
from partita.models.errors import short_value
from partita.models.quantities import Position

MAX_ACTIONS = 1_000_000
"""Most actions of one rank."""
MAX_RANKS = 4096

_ACTION = re.compile(r"([0-9]{1,6})([FBIW])([0-9]{1,6})")
_OVERLAPPED = re.compile(r"\(([^()]*)\)OVERLAP_F_B")
_COMMUNICATION = re.compile(r"[0-9]+(?:UNSHARD|RESHARD|REDUCE_GRAD|(?:SEND|RECV)_[FB])[0-9]*")
_FORM = "an action is stage, F, B, I or W, and microbatch, such as '2F0'"


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

    def __str__(self) -> str:
        """Give the short form."""
        return f"{self.stage}{self.kind}{self.microbatch}"


def _read_action(value: object) -> object:
    """Spell out an action written as text."""
    if not isinstance(value, str):
        return value
    match = _ACTION.fullmatch(value)
    if match is None:
        raise fault("action_text", _FORM)
    return {"kind": match[2], "stage": int(match[1]), "microbatch": int(match[3])}


Actions = Annotated[
    Many[Annotated[Action, BeforeValidator(_read_action, json_schema_input_type=Action | str)]],
    Field(fail_fast=True),
    at_most(MAX_ACTIONS, "actions"),
]
"""The actions of one rank, in order."""


MOST_ODD_CELLS = 3
"""After so many cells that are no action a text is not read further: it is something else."""


def read_orders_csv(value: object) -> object:
    """Take orders apart that are written as CSV: one row per rank, one action per cell.

    Empty cells are bubbles and left out; ``(0F1;2B0)OVERLAP_F_B`` is 0F1 and then 2B0. Anything but text is left to
    the next check.
    """
    if not isinstance(value, str):
        return value
    faults = Faults()
    communication: list[str] = []
    orders: list[list[str]] = []
    for row, cells in enumerate(_rows(value.rstrip()), start=1):
        order: list[str] = []
        for column, cell in enumerate(cells, start=1):
            found = _actions_in(cell)
            if found is not None:
                order += found
                continue
            place = f"{short_value(cell.strip())} in row {row}, cell {column}"
            if _COMMUNICATION.fullmatch(cell.strip()):
                communication.append(place)
            else:
                faults.add((), f"{place} is no action; {_FORM}", code="action_text")
        orders.append(order)
        if faults.count >= MOST_ODD_CELLS:
            break
    if communication:
        more = f" and {len(communication) - 1} more cells name" if communication[1:] else " names"
        detail = f"{communication[0]}{more} communication, which follows from the order; give the compute-only order"
        faults.add((), detail, code="communication")
    faults.raise_if_any("orders")
    return orders


def _rows(text: str) -> Iterator[list[str]]:
    """Read CSV; refuse what is none."""
    try:
        yield from csv.reader(text.splitlines(), strict=True)
    except csv.Error as error:
        raise fault("orders_text", f"not CSV ({error}); write one row per rank, such as '0F0,0F1,0B0,0B1'") from None


def _actions_in(cell: str) -> list[str] | None:
    """Give the actions of a cell in their short form, none for a bubble; None where it holds anything else."""
    if _ACTION.fullmatch(cell):
        return [cell]
    overlapped = _OVERLAPPED.fullmatch(cell.strip())
    parts = [part.strip() for part in (overlapped[1] if overlapped else cell).split(";")]
    if parts == [""]:
        return []
    known = all(_ACTION.fullmatch(part) for part in parts)
    return parts if known and (overlapped or len(parts) == 1) else None


def write_orders_csv(orders: Sequence[Sequence[Action]]) -> str:
    """Write orders as the compute-only CSV that torch.distributed.pipelining reads: one row per rank."""
    return "".join(",".join(map(str, order)) + "\n" for order in orders)
