"""All ways in which stages can follow each other on places that are not alike: where they start, and where they run.

A state after r ranks is a position and a seat (see ``seats``); a step of rank r fixes its interval, its kind of device
and the way from the rank before. A plan is a way through all ranks. The length of a path cut adds up over the steps, so
the shortest way bounds it from below, and a step is ruled out when every way through it is too long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from partita.solver.arrays import BoolArray, IntArray, Times
from partita.solver.deadline import Deadline
from partita.solver.kind_prices import KindPaths, KindPrices
from partita.solver.rank_network import BATCH
from partita.solver.seats import Seating
from partita.solver.unsuited import TooManySteps


@dataclass(frozen=True, slots=True)
class States:
    """Positions and seats after so many ranks, shape (states,) each."""

    place: IntArray
    seat: IntArray


@dataclass(frozen=True, slots=True)
class Steps:
    """What one rank can do: departures, D in all, each with one or more ends.

    Attributes
    ----------
    source, turn
        The state before, and the turn taken, of every departure, shape (D,), ascending by state.
    departure, target
        Of every step, shape (E,), ascending by the state after.
    """

    source: IntArray
    turn: IntArray
    departure: IntArray
    target: IntArray

    def __len__(self) -> int:
        """Give E."""
        return len(self.target)

    @property
    def begun(self) -> IntArray:
        """The state before every step, shape (E,)."""
        return self.source[self.departure]

    def kept(self, steps: BoolArray) -> "Steps":
        """Give some of the steps, and the departures that are left with any."""
        departure, target = self.departure[steps], self.target[steps]
        left = np.zeros(len(self.source), dtype=bool)
        left[departure] = True
        return Steps(self.source[left], self.turn[left], (np.cumsum(left) - 1)[departure], target)

    def renumbered(self, before: BoolArray, after: BoolArray) -> "Steps":
        """Give the steps with states numbered anew, without some that no step uses."""
        source, target = (np.cumsum(before) - 1)[self.source], (np.cumsum(after) - 1)[self.target]
        return Steps(source, self.turn, self.departure, target)


@dataclass(frozen=True, slots=True)
class Way:
    """A way through a network: where stages start, and the end, shape (S + 1,); the turn of every rank."""

    starts: IntArray
    turns: tuple[int, ...]


class SeatNetwork:
    """States and steps.

    Parameters
    ----------
    seating, prices
        The seats and turns, and what they cost.
    states, steps
        After r ranks, r from 0 to R; of every rank.
    """

    def __init__(self, seating: Seating, prices: KindPrices, states: list[States], steps: list[Steps]) -> None:
        self.seating, self.prices, self.states, self.steps = seating, prices, states, steps
        self._orders: dict[int, IntArray] = {}

    @classmethod
    def of_intervals(
        cls,
        seating: Seating,
        prices: KindPrices,
        window: tuple[IntArray, IntArray],
        allowed: Sequence[Sequence[BoolArray]],
        most_steps: int,
    ) -> "SeatNetwork":
        """Make the network of one stage on every rank.

        Parameters
        ----------
        window
            First and last position at which every stage can start, and the end, shape (S + 1,) each.
        allowed
            For every kind of device and stage, which intervals it can have, shape (starts, ends).
        most_steps
            How many steps are too many.

        Raises
        ------
        TooManySteps
            When there are more.
        """
        low, widths = window[0], (window[1] - window[0] + 1).tolist()
        states = [
            States(np.tile(first + np.arange(width), count), np.repeat(np.arange(count), width))
            for first, width, count in zip(low.tolist(), widths, seating.counts, strict=True)
        ]
        steps, left = [], most_steps
        for rank, turns in enumerate(seating.turns):
            width, following = widths[rank : rank + 2]
            departures, targets = [], []
            for kind, of_stage in enumerate(allowed):
                mine = np.flatnonzero(turns.kind == kind)[:, None]
                starts, ends = np.nonzero(of_stage[rank])
                left -= len(mine) * len(starts)
                if left < 0:
                    raise TooManySteps
                departures.append((mine * width + starts).ravel())
                targets.append((turns.target[mine] * following + ends).ravel())
            turn, start = np.divmod(np.arange(len(turns.source) * width), width)
            steps.append(_in_order(turns.source[turn] * width + start, turn, departures, targets))
        network = cls(seating, prices, states, steps)
        network.drop_dead_ends()
        return network

    @property
    def ranks(self) -> int:
        """R."""
        return len(self.steps)

    @property
    def empty(self) -> bool:
        """Whether there is no way through."""
        return not all(len(step) for step in self.steps)

    @property
    def size(self) -> int:
        """How many steps there are."""
        return sum(len(step) for step in self.steps)

    def drop_dead_ends(self) -> None:
        """Drop the steps and states that no way passes through."""
        alive = [np.zeros(len(each.place), dtype=bool) for each in self.states]
        alive[0][:] = True
        for rank, step in enumerate(self.steps):
            alive[rank + 1][step.target[alive[rank][step.begun]]] = True
        for rank in range(self.ranks - 1, -1, -1):
            step = self.steps[rank]
            self.steps[rank] = step.kept(alive[rank][step.begun] & alive[rank + 1][step.target])
            alive[rank][:] = False
            alive[rank][self.steps[rank].source] = True
        self.steps = [step.renumbered(*alive[rank : rank + 2]) for rank, step in enumerate(self.steps)]
        self.states = [States(each.place[kept], each.seat[kept]) for each, kept in zip(self.states, alive, strict=True)]
        self._orders.clear()

    def only(self, kept: Mapping[int, BoolArray]) -> "SeatNetwork":
        """Give the network with some of the steps of some ranks, true for those that stay."""
        other = SeatNetwork(self.seating, self.prices, list(self.states), list(self.steps))
        for rank, steps in kept.items():
            other.steps[rank] = self.steps[rank].kept(steps)
        other.drop_dead_ends()
        return other

    def window(self) -> tuple[IntArray, IntArray]:
        """Give the first and last position at which every stage starts, and the end, shape (S + 1,) each."""
        low, high = zip(*((int(each.place.min()), int(each.place.max())) for each in self.states), strict=True)
        return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)

    def kinds(self, rank: int) -> IntArray:
        """Give the kind of device of every step of a rank, shape (E,)."""
        step = self.steps[rank]
        return self.seating.turns[rank].kind[step.turn][step.departure]

    def intervals(self, rank: int) -> tuple[IntArray, IntArray]:
        """Give the start and the end of every step of a rank, shape (E,) each."""
        step = self.steps[rank]
        return self.states[rank].place[step.begun], self.states[rank + 1].place[step.target]

    def allowed(self) -> list[list[BoolArray]]:
        """Tell for every kind of device and stage which intervals within the window are left, shape (starts, ends)."""
        low, high = self.window()
        kinds = len(self.prices.work)
        found = [[np.zeros(shape, dtype=bool) for shape in pairwise((high - low + 1).tolist())] for _ in range(kinds)]
        for rank in range(self.ranks):
            on, (starts, ends) = self.kinds(rank), self.intervals(rank)
            for kind, of_stage in enumerate(found):
                mine = on == kind
                of_stage[rank][starts[mine] - low[rank], ends[mine] - low[rank + 1]] = True
        return found

    def rule_out(self, paths: KindPaths, most: float, deadline: Deadline) -> Times:
        """Rule out the steps through which every way of some path is longer than ``most``.

        Gives the lengths of the shortest ways, shape (Q,). Dead ends are left in place.

        Raises
        ------
        TimeOver
            When the deadline passes.
        """
        kept = [np.ones(len(step), dtype=bool) for step in self.steps]
        size = max(1, BATCH // max(len(step) for step in self.steps))
        shortest = []
        for number in range(0, len(paths), size):
            deadline.check()
            begun, ended = self._costs(paths.part(slice(number, number + size)))
            reached, left = self._reached(begun, ended), self._remaining(begun, ended)
            shortest.append(reached[-1].min(axis=0))
            for rank, step in enumerate(self.steps):
                before, after = reached[rank][step.source] - begun[rank], left[rank + 1] + ended[rank]
                kept[rank] &= (before[step.departure] + after[step.target]).max(axis=1) <= most
        self.steps = [step.kept(each) for step, each in zip(self.steps, kept, strict=True)]
        self._orders.clear()
        return np.concatenate(shortest)

    def shortest_way(self, path: KindPaths) -> tuple[float, Way]:
        """Give the length of the shortest way of the one path that is priced, and that way."""
        begun, ended = ([each[:, 0] for each in part] for part in self._costs(path))
        reached = self._reached(begun, ended)
        values = [(reached[rank][step.source] - begun[rank])[step.departure] for rank, step in enumerate(self.steps)]
        return float(reached[-1].min()), self._back(int(reached[-1].argmin()), values)

    def lengths(self, paths: KindPaths, way: Way) -> Times:
        """Give the length of every path on a way, shape (Q,)."""
        turns = list(zip(self.seating.turns, way.turns, strict=True))
        kinds = np.array([each.kind[turn] for each, turn in turns], dtype=np.int64)
        rides = np.array([each.ride[turn] for each, turn in turns], dtype=np.int64)
        return self.prices.lengths(paths, way.starts, kinds, rides)

    def smallest_maximum(self, costs: Sequence[Times]) -> tuple[int, Way]:
        """Give the least cost of the dearest step of a way, and that way; every rank's steps cost ``costs``."""
        reached: Times = np.zeros(1, dtype=np.int64)
        values = []
        for step, cost in zip(self.steps, costs, strict=True):
            values.append(np.maximum(reached[step.begun], cost))
            reached = np.minimum.reduceat(values[-1], _firsts(step.target))
        return int(reached.min()), self._back(int(reached.argmin()), values)

    def _back(self, state: int, values: Sequence[Times]) -> Way:
        """Give the way to a state after all ranks by steps of least value, shape (E,) for each rank."""
        places, turns = [int(self.states[-1].place[state])], []
        for rank in range(self.ranks - 1, -1, -1):
            step = self.steps[rank]
            first, last = np.searchsorted(step.target, [state, state + 1])
            departure = step.departure[first + values[rank][first:last].argmin()]
            state = int(step.source[departure])
            turns.append(int(step.turn[departure]))
            places.append(int(self.states[rank].place[state]))
        return Way(np.array(places[::-1], dtype=np.int64), tuple(turns[::-1]))

    def _costs(self, paths: KindPaths) -> tuple[list[Times], list[Times]]:
        """Give what the departures of every rank take off the paths, and what the states after it add.

        Shapes are (D, Q) and (states, Q) for each rank.
        """
        begun, ended = [], []
        for rank, step in enumerate(self.steps):
            turns, place = self.seating.turns[rank], self.states[rank].place[step.source]
            kind, first = turns.kind[step.turn], int(place.min())
            tables = self.prices.starts(paths, rank, slice(first, int(place.max()) + 1))
            begun.append(tables[kind, turns.ride[step.turn], place - first])
            place = self.states[rank + 1].place
            arriving, first = np.zeros(len(place), dtype=np.int64), int(place.min())
            arriving[step.target] = kind[step.departure]
            tables = self.prices.ends(paths, rank, slice(first, int(place.max()) + 1))
            ended.append(tables[arriving, place - first])
        return begun, ended

    def _reached(self, begun: list[Times], ended: list[Times]) -> list[Times]:
        """Give the length of the shortest ways to every state after r ranks, shape (states, ...) each."""
        lengths: list[Times] = [np.zeros((1, *begun[0].shape[1:]), dtype=begun[0].dtype)]
        for rank, step in enumerate(self.steps):
            before = lengths[-1][step.source] - begun[rank]
            lengths.append(np.minimum.reduceat(before[step.departure], _firsts(step.target), axis=0) + ended[rank])
        return lengths

    def _remaining(self, begun: list[Times], ended: list[Times]) -> list[Times]:
        """Give the length of the shortest ways from every state after r ranks to the end, shape (states, ...) each."""
        lengths: list[Times] = [np.zeros_like(ended[-1])]
        for rank in range(self.ranks - 1, -1, -1):
            step, order = self.steps[rank], self._by_departure(rank)
            after = (lengths[-1] + ended[rank])[step.target[order]]
            before = np.minimum.reduceat(after, _firsts(step.departure[order]), axis=0) - begun[rank]
            lengths.append(np.minimum.reduceat(before, _firsts(step.source), axis=0))
        return lengths[::-1]

    def _by_departure(self, rank: int) -> IntArray:
        """Give the steps of a rank in the order of their departures."""
        if rank not in self._orders:
            self._orders[rank] = np.argsort(self.steps[rank].departure, kind="stable")
        return self._orders[rank]


def _in_order(source: IntArray, turn: IntArray, departures: list[IntArray], targets: list[IntArray]) -> Steps:
    """Put departures in the order of their states before, and steps in that of the states after."""
    departure, target = np.concatenate(departures), np.concatenate(targets)
    by_source, by_target = np.argsort(source, kind="stable"), np.argsort(target, kind="stable")
    number = np.empty_like(by_source)
    number[by_source] = np.arange(len(by_source))
    return Steps(source[by_source], turn[by_source], number[departure[by_target]], target[by_target])


def _firsts(ascending: IntArray) -> IntArray:
    """Give where each new value begins."""
    return np.flatnonzero(np.diff(ascending, prepend=-1))
