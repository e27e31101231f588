"""Custom orders: every stage on one rank, every pass of every microbatch once, and nothing before what it needs."""

from collections.abc import Mapping, Sequence

from partita.models.actions import Action
from partita.models.base import Faults
from partita.models.deadlock import check_deadlock

Orders = Sequence[Sequence[Action]]

_BITS = {"F": 1, "B": 2, "I": 4, "W": 8}
"""What is done of a microbatch on a stage is the sum of these."""
_BEFORE = {"F": 0, "B": 1, "I": 1, "W": 5}
"""What must be done before each kind of pass, and nothing else."""
_COMPLETE = (3, 13)
"""What is done in the end, where there is a backward pass."""


def check_orders(faults: Faults, place: Sequence[str | int], orders: Orders, num_microbatches: int) -> None:
    """Refuse orders that are no schedule of the microbatches, or in which ranks wait for each other in a circle.

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
    before = faults.count
    most = max((action.microbatch for order in orders for action in order), default=-1) + 1
    if most != num_microbatches and most > 0:
        detail = f"the orders run {most} microbatches; write {most} as num_microbatches, not {num_microbatches}"
        faults.add(place, detail, code="microbatches")
        return
    rank_of: dict[int, int] = {}
    done: dict[int, int] = {}
    for rank, order in enumerate(orders):
        if not order:
            faults.add((*place, rank), f"rank {rank} is without actions; leave it out", code="empty_rank")
        for position, action in enumerate(order):
            wrong = ""
            stage, microbatch, kind = action.stage, action.microbatch, action.kind
            if rank_of.setdefault(stage, rank) != rank:
                wrong = f"stage {stage} already runs on rank {rank_of[stage]}; a stage has one rank"
            else:
                step = stage * num_microbatches + microbatch
                so_far = done.get(step, 0)
                if so_far != _BEFORE[kind]:
                    wrong = _out_of_order(action, so_far)
                done[step] = so_far | _BITS[kind]
            if wrong:
                faults.add((*place, rank, position), wrong, str(action))
    if faults.count == before:
        _check_complete(faults, place, rank_of, done, num_microbatches)
    if faults.count == before:
        check_deadlock(faults, place, orders, rank_of, num_microbatches)


def _out_of_order(action: Action, done: int) -> str:
    """Say what is wrong with a pass after what its rank has done of the microbatch; empty where nothing is."""
    if done & _BITS[action.kind]:
        return "this action stands twice; list it once"
    needs = {"B": "F", "I": "F", "W": "I"}.get(action.kind)
    if needs and not done & _BITS[needs]:
        return f"{action.stage}{needs}{action.microbatch} must come before it on the same rank"
    if action.kind in "BI" and done & (_BITS["B"] | _BITS["I"]):
        return "a backward pass is either whole (B) or split (I and W), not both"
    return ""


def _check_complete(
    faults: Faults, place: Sequence[str | int], rank_of: Mapping[int, int], done: Mapping[int, int], microbatches: int
) -> None:
    """Refuse gaps in the numbers of the stages, and passes that are missing."""
    gap = next((stage for stage in range(len(rank_of)) if stage not in rank_of), None)
    if gap is not None:
        faults.add(place, f"no rank runs stage {gap}; stages are numbered from 0 without gaps")
        return
    complete = _COMPLETE if any(bits != 1 for bits in done.values()) else (1,)
    for stage, rank in rank_of.items():
        for microbatch in range(microbatches):
            bits = done.get(stage * microbatches + microbatch, 0)
            if bits not in complete:
                kind = "F" if not bits else "B" if bits == 1 else "W"
                detail = f"{stage}{kind}{microbatch} is missing; add it"
                faults.add((*place, rank), detail, code="incomplete")
                break
