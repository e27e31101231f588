"""Custom orders: every stage on one rank, every pass of every microbatch once, and nothing before what it needs."""

from collections.abc import Sequence
from typing import NamedTuple

from partita.models.base import Faults
from partita.models.schedule import Action

Orders = Sequence[Sequence[Action]]


class _Pass(NamedTuple):
    """A pass of one microbatch on one stage."""

    kind: str
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


def check_orders(faults: Faults, place: Sequence[str | int], orders: Orders, num_microbatches: int) -> None:
    """Refuse orders that are no schedule of the microbatches.

    Whether ranks wait for each other in a circle is not looked at here: that depends on the data between stages.

    Parameters
    ----------
    faults
        Where the faults go.
    place
        The path of the orders.
    orders
        The actions of every rank.
    num_microbatches
        How many microbatches there are.
    """
    rank_of: dict[int, int] = {}
    done: set[_Pass] = set()
    for rank, order in enumerate(orders):
        if not order:
            faults.add((*place, rank), "a rank without actions; leave it out", code="empty_rank")
        for position, action in enumerate(order):
            here = (*place, rank, position)
            step = _Pass(action.kind, action.stage, action.microbatch)
            if rank_of.setdefault(action.stage, rank) != rank:
                detail = f"stage {action.stage} already runs on rank {rank_of[action.stage]}; a stage has one rank"
                faults.add(here, detail, str(step))
                continue
            if action.microbatch >= num_microbatches:
                detail = f"microbatches are numbered 0 to {num_microbatches - 1}"
                faults.add(here, detail, str(step))
            wrong = _out_of_order(step, done)
            if wrong:
                faults.add(here, wrong, str(step))
            done.add(step)
    if faults.count == 0:
        _check_complete(faults, place, rank_of, done, num_microbatches)


def _out_of_order(step: _Pass, done: set[_Pass]) -> str:
    """Say what is wrong with a pass after those that its rank has done; empty where nothing is."""
    if step in done:
        return "this action stands twice; list it once"
    needs = {"B": "F", "I": "F", "W": "I"}.get(step.kind)
    if needs and step._replace(kind=needs) not in done:
        return f"{step._replace(kind=needs)} must come before it on the same rank"
    if (step.kind == "I" and step._replace(kind="B") in done) or (step.kind == "B" and step._replace(kind="I") in done):
        return "a backward pass is either whole (B) or split (I and W), not both"
    return ""


def _check_complete(
    faults: Faults, place: Sequence[str | int], rank_of: dict[int, int], done: set[_Pass], num_microbatches: int
) -> None:
    """Refuse gaps in the numbers of the stages, and passes that are missing."""
    gap = next((stage for stage in range(len(rank_of)) if stage not in rank_of), None)
    if gap is not None:
        faults.add(place, f"no rank runs stage {gap}; stages are numbered from 0 without gaps")
        return
    trains = any(step.kind != "F" for step in done)
    for stage, rank in rank_of.items():
        for microbatch in range(num_microbatches):
            missing = _missing(stage, microbatch, done, trains)
            if missing:
                faults.add((*place, rank), f"{missing} is missing; add it", code="incomplete")
                break


def _missing(stage: int, microbatch: int, done: set[_Pass], trains: bool) -> str:
    """Name the pass of a microbatch that a stage lacks; empty where it has all."""
    forward, whole, inputs, weights = (_Pass(kind, stage, microbatch) for kind in "FBIW")
    if forward not in done:
        return str(forward)
    if not trains or whole in done or (inputs in done and weights in done):
        return ""
    return str(weights) if inputs in done else str(whole)
