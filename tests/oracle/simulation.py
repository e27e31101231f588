"""A pipeline run action by action: every rank works off its list, and messages between ranks take time."""

import heapq
from collections import defaultdict
from dataclasses import dataclass

Kind = tuple[str, int]
"""What is done, for any microbatch: ``("F", stage)`` or ``("B", stage)``."""


@dataclass(frozen=True)
class Wire:
    """A message from the end of one action to another of the same microbatch.

    A delay below zero is a message that leaves before the end: the transfer that ends the action.
    """

    source: Kind
    target: Kind
    delay_s: float


def rank_orders(schedule: str, num_stages: int, microbatches: int) -> list[list[tuple[str, int]]]:
    """Give for every rank its actions in order, as kind and microbatch."""
    forward = [("F", microbatch) for microbatch in range(microbatches)]
    backward = [("B", microbatch) for microbatch in range(microbatches)]
    if schedule == "forward_only":
        return [forward for _ in range(num_stages)]
    if schedule == "gpipe":
        return [forward + backward for _ in range(num_stages)]
    assert schedule == "1f1b"
    orders = []
    for stage in range(num_stages):
        warm_up = min(microbatches, num_stages - 1 - stage)
        order = forward[:warm_up]
        for later, earlier in zip(forward[warm_up:], backward, strict=False):
            order += [later, earlier]
        orders.append(order + backward[microbatches - warm_up :])
    return orders


def most_in_flight(order: list[tuple[str, int]]) -> int:
    """Count the most microbatches that a rank holds at once, from its forward to the end of its backward."""
    if all(kind == "F" for kind, _ in order):
        return 0
    held = most = 0
    for kind, _ in order:
        held += 1 if kind == "F" else -1
        most = max(most, held)
    return most


def run(orders: list[list[tuple[str, int]]], seconds: dict[Kind, float], wires: list[Wire]) -> float:
    """Run the pipeline; give the time at which the last action ends."""
    outgoing: dict[Kind, list[Wire]] = defaultdict(list)
    awaited: dict[Kind, int] = defaultdict(int)
    for wire in wires:
        outgoing[wire.source].append(wire)
        awaited[wire.target] += 1
    arrived: dict[tuple[Kind, int], int] = defaultdict(int)
    position = [0] * len(orders)
    busy = [False] * len(orders)
    events: list[tuple[float, int, int, tuple[Kind, int] | None]] = []  # time, tie-break, rank, arrival or None
    count = 0
    now = 0.0

    def begin_what_can(rank: int) -> None:
        nonlocal count
        if busy[rank] or position[rank] == len(orders[rank]):
            return
        kind, microbatch = orders[rank][position[rank]]
        action = kind, rank
        if arrived[action, microbatch] < awaited[action]:
            return
        busy[rank] = True
        end = now + seconds[action]
        count += 1
        heapq.heappush(events, (end, count, rank, None))
        for wire in outgoing[action]:
            count += 1
            heapq.heappush(events, (end + wire.delay_s, count, wire.target[1], (wire.target, microbatch)))

    for rank in range(len(orders)):
        begin_what_can(rank)
    last_end = 0.0
    while events:
        time, _, rank, arrival = heapq.heappop(events)
        now = max(now, time)
        if arrival is None:
            busy[rank] = False
            position[rank] += 1
            last_end = max(last_end, now)
        else:
            arrived[arrival] += 1
        begin_what_can(rank)
    assert position == [len(order) for order in orders], "the pipeline is stuck"
    return last_end
