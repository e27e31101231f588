"""Orders in which no rank can go on: each waits for a pass that another would run later."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from partita.models.actions import Action
from partita.models.base import Faults

MAX_STUCK_SHOWN = 64
"""Most waiting ranks that a message names."""


class _Stuck(NamedTuple):
    """A rank that cannot go on: the action it waits at, what that waits for, and the rank that would run it."""

    rank: int
    at: Action
    needs: Action
    holder: int

    def __str__(self) -> str:
        return f"rank {self.rank} waits at {self.at} for {self.needs}"


def check_deadlock(
    faults: Faults,
    place: Sequence[str | int],
    orders: Sequence[Sequence[Action]],
    rank_of: Mapping[int, int],
    microbatches: int,
) -> None:
    """Refuse complete orders that come to a halt.

    A forward pass needs that of the stage before, a backward pass that of the stage after, of the same microbatch.

    Parameters
    ----------
    faults
        Where the fault goes.
    place
        The path of the orders.
    orders
        The actions of every rank, each pass once.
    rank_of
        The rank of every stage.
    microbatches
        How many there are.
    """
    reached, needed = _walk(orders, len(rank_of), microbatches)
    if not needed:
        return
    numbers = set(needed.values())
    found = {
        _number(action, microbatches): action
        for rank in needed
        for action in orders[rank][reached[rank] :]
        if action.kind != "W" and _number(action, microbatches) in numbers
    }
    stuck = {}
    for rank, number in sorted(needed.items()):
        stuck[rank] = _Stuck(rank, orders[rank][reached[rank]], found[number], rank_of[found[number].stage])
    shown = ", ".join(str(each) for each in islice(stuck.values(), MAX_STUCK_SHOWN))
    more = f" and {len(stuck) - MAX_STUCK_SHOWN} more ranks wait" if len(stuck) > MAX_STUCK_SHOWN else ""
    detail = f"deadlock: {shown}{more}; reorder so that {_remedy(stuck, len(rank_of))}"
    faults.add(place, detail, code="deadlock")


def _number(action: Action, microbatches: int) -> int:
    """Give the number of a pass that others wait for; a backward pass has one number, whole or split."""
    return 2 * (action.stage * microbatches + action.microbatch) + (action.kind != "F")


def _walk(orders: Sequence[Sequence[Action]], stages: int, microbatches: int) -> tuple[list[int], dict[int, int]]:
    """Run all ranks as far as they get; give their positions and, by rank, the number of the pass that is missing."""
    done = bytearray(2 * stages * microbatches)
    waiting: dict[int, list[int]] = {}
    reached = [0] * len(orders)
    ready = list(range(len(orders)))
    back, ahead = -2 * microbatches, 2 * microbatches
    while ready:
        rank = ready.pop()
        order, position = orders[rank], reached[rank]
        while position < len(order):
            action = order[position]
            kind, stage = action.kind, action.stage
            if kind != "W":
                number = 2 * (stage * microbatches + action.microbatch) + (kind != "F")
                needs = number + (back if kind == "F" else ahead)  # outside of the range at the ends of the pipeline
                if 0 <= needs < len(done) and not done[needs]:
                    waiting.setdefault(needs, []).append(rank)
                    break
                done[number] = 1
                if number in waiting:
                    ready += waiting.pop(number)
            position += 1
        reached[rank] = position
    return reached, {rank: number for number, ranks in waiting.items() for rank in ranks}


def _remedy(stuck: Mapping[int, _Stuck], stages: int) -> str:
    """Name a change of one rank's order that opens a circle of waiting ranks."""
    for held, needed in sorted(_circle(stuck), key=lambda pair: pair[0].rank):
        if needed.microbatch != held.at.microbatch or _depth(needed, stages) < _depth(held.at, stages):
            return f"rank {held.rank} runs {needed} before {held.at}"
    raise AssertionError("some rank of a circle may run what is waited for before what it waits at")


def _circle(stuck: Mapping[int, _Stuck]) -> list[tuple[_Stuck, Action]]:
    """Give the ranks of a circle, each with the action that the one before it waits for."""
    rank = next(iter(stuck))
    passed: dict[int, None] = {}
    while rank not in passed:
        passed[rank] = None
        rank = stuck[rank].holder
    ranks = list(passed)
    return [(stuck[stuck[each].holder], stuck[each].needs) for each in ranks[ranks.index(rank) :]]


def _depth(action: Action, stages: int) -> int:
    """Count the passes of the same microbatch on other stages that come before an action."""
    return action.stage if action.kind == "F" else 2 * stages - 1 - action.stage
