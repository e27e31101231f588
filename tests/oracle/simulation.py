"""A pipeline run action by action: every rank works off its order, and messages between stages take time."""

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from oracle.orders import Order

Kind = tuple[str, int]
"""What is done, for any microbatch: ``("F", stage)``, and likewise B, I and W."""
Span = tuple[float, float]
"""When an action begins and ends."""

DIRECTIONS = {"F": "forward", "B": "backward", "I": "backward"}
"""Which way the messages of an action go; a weight gradient sends none."""


@dataclass(frozen=True)
class Wire:
    """Messages from a stage to another, of every microbatch, in one direction.

    Without a queue a message arrives ``delay_s`` after the end of its action, or before it, where the transfer is the
    last part of the action. With a queue it also waits until the message before it has arrived.
    """

    direction: str
    source: int
    target: int
    delay_s: float
    queued: bool


class Run:
    """One run of a pipeline: ``spans`` are the actions of every rank, in order."""

    def __init__(self, orders: Sequence[Order], seconds: dict[Kind, float], wires: Sequence[Wire]) -> None:
        self._orders = orders
        self._seconds = seconds
        self._outgoing: dict[tuple[str, int], list[Wire]] = defaultdict(list)
        self._awaited: dict[tuple[str, int], int] = defaultdict(int)
        for wire in wires:
            self._outgoing[wire.direction, wire.source].append(wire)
            self._awaited[wire.direction, wire.target] += 1
        self._rank_of = {stage: rank for rank, order in enumerate(orders) for _, stage, _ in order}
        self._arrived: dict[tuple[str, int, int], int] = defaultdict(int)
        self._last_arrival: dict[Wire, float] = defaultdict(float)
        self._busy = [False] * len(orders)
        self._now = 0.0
        self._events: list[tuple[float, int, int, tuple[str, int, int] | None]] = []  # time, tie-break, rank, message
        self._count = 0
        self.spans: list[list[Span]] = [[] for _ in orders]
        self._work()

    @property
    def makespan_s(self) -> float:
        """When the last action ends."""
        return max(spans[-1][1] for spans in self.spans)

    def _work(self) -> None:
        """Take what happens next, the earliest first, until nothing does."""
        for rank in range(len(self._orders)):
            self._begin_if_possible(rank)
        while self._events:
            time, _, rank, message = heapq.heappop(self._events)
            self._now = max(self._now, time)
            if message is None:
                self._busy[rank] = False
            else:
                self._arrived[message] += 1
            self._begin_if_possible(rank)
        assert [len(spans) for spans in self.spans] == [len(order) for order in self._orders], "the pipeline is stuck"

    def _begin_if_possible(self, rank: int) -> None:
        """Begin the rank's next action, if the rank is free and all messages for it are there."""
        position = len(self.spans[rank])
        if self._busy[rank] or position == len(self._orders[rank]):
            return
        kind, stage, microbatch = self._orders[rank][position]
        direction = DIRECTIONS.get(kind, "")
        if self._arrived[direction, stage, microbatch] < self._awaited[direction, stage]:
            return
        self._busy[rank] = True
        end = self._now + self._seconds[kind, stage]
        self.spans[rank].append((self._now, end))
        self._expect(end, rank, None)
        for wire in self._outgoing[direction, stage]:
            start = max(end, self._last_arrival[wire]) if wire.queued else end
            self._last_arrival[wire] = start + wire.delay_s
            self._expect(start + wire.delay_s, self._rank_of[wire.target], (direction, wire.target, microbatch))

    def _expect(self, time: float, rank: int, message: tuple[str, int, int] | None) -> None:
        """Note the end of a rank's action, or a message to it."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, rank, message))


def busy_time(orders: Sequence[Order], seconds: dict[Kind, float]) -> float:
    """Add up the actions of all ranks."""
    return sum(seconds[kind, stage] for order in orders for kind, stage, _ in order)
