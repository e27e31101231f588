"""All ways in which the stages of a pipeline can follow each other, rank by rank.

A rank runs one stage or two, each on a track of its own (see ``rank_sums`` for two). A state after r ranks is a
position on every track; a step of rank r leads from a state to a later one and fixes the intervals of its stages. A
plan is a way through all ranks. The length of a path cut adds up over the steps, so the shortest way bounds it from
below, and a step is ruled out when every way through it is too long.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from partita.solver.arrays import BoolArray, IntArray, Times
from partita.solver.deadline import Deadline
from partita.solver.path_prices import Paths, Prices
from partita.solver.rank_sums import Corridor, Limit
from partita.solver.saving_times import NEVER, SavingTimes
from partita.solver.unsuited import TooManySteps


@dataclass(frozen=True, slots=True)
class Costs:
    """What Q weighted paths cost in a network, whole ticks or floats.

    A step of rank r from state i to state j costs ends[r][q, j] - starts[r][q, i]; ``constant``, shape (Q,), comes on
    top of every way. Where recompute makes backward passes longer, ``visits[r]``, shape (Q,), tells how often each
    path pays for that.
    """

    starts: list[Times]
    ends: list[Times]
    constant: Times
    visits: list[Times]
    longer: "Longer | None"

    def part(self, chosen: slice) -> "Costs":
        """Give the costs of some of the paths."""
        starts, ends, visits = ([each[chosen] for each in every] for every in (self.starts, self.ends, self.visits))
        return Costs(starts, ends, self.constant[chosen], visits, self.longer)

    def between(self, rank: int) -> Times:
        """Give what the steps of a rank cost beyond their states, shape (Q, states, states) or of one number."""
        if self.longer is None:
            return np.zeros((1, 1, 1), dtype=self.constant.dtype)
        return self.visits[rank][:, None, None] * self.longer.ticks[rank]


@dataclass(frozen=True, slots=True)
class Longer:
    """How much longer the backward passes of steps take at least because they recompute to fit into memory.

    Attributes
    ----------
    ticks
        Of a microbatch, shape (states, states) for every rank.
    room
        Bytes of a microbatch that a step may keep beyond the least, of the same shapes.
    exact
        Whether the ticks are as exact as they can be counted.
    """

    ticks: list[IntArray]
    room: list[IntArray]
    exact: bool = False

    def map(self, change: Callable[[list[IntArray]], list[IntArray]]) -> "Longer":
        """Give the same for other states."""
        return Longer(change(self.ticks), change(self.room), self.exact)


@dataclass(frozen=True, slots=True)
class Track:
    """The stages that follow each other on one track, one of every rank.

    Attributes
    ----------
    stages
        Of every rank, shape (R,); ascending, or descending where the track goes from the model's end backward.
    places
        The positions of every state after r ranks, r from 0 to R.
    """

    stages: IntArray
    places: list[IntArray]

    @property
    def backward(self) -> bool:
        """Whether the track goes from the model's end to its beginning."""
        return len(self.stages) > 1 and bool(self.stages[1] < self.stages[0])


BACKWARD = 1
"""The pass that recompute makes longer, where it may be chosen."""

FAR = 2**60
"""A length in ticks that no way has."""

BATCH = 4_000_000
"""Paths times steps of a rank that are looked at together."""


MOST_STEPS = 4_000_000
"""Steps of a rank, possible or not, up to which a network is made."""


class RankNetwork:
    """States and steps.

    Attributes
    ----------
    tracks
        One, or two that belong to each other.
    steps
        Which steps rank r can take, shape (states after r, states after r + 1).
    longer
        How much longer they take than their states tell; None for not at all.
    """

    def __init__(self, tracks: list[Track], steps: list[BoolArray], longer: Longer | None = None) -> None:
        self.tracks, self.steps, self.longer = tracks, steps, longer

    @classmethod
    def of_intervals(
        cls, low: IntArray, high: IntArray, allowed: list[BoolArray], longer: Longer | None
    ) -> "RankNetwork":
        """Make the network of one stage on every rank.

        Parameters
        ----------
        low, high
            First and last position at which every stage can start, and the end, shape (S + 1,).
        allowed
            For every stage, which intervals it can have, shape (starts, ends).
        longer
            How much longer these take than the work of their groups; None for not at all.
        """
        places = [np.arange(first, last + 1) for first, last in zip(low, high, strict=True)]
        network = cls([Track(np.arange(len(allowed)), places)], list(allowed), longer)
        network.drop_dead_ends()
        return network

    @classmethod
    def within(cls, looped: bool, corridor: Corridor, limits: Sequence[Sequence[Limit]], start: int) -> "RankNetwork":
        """Make the network of a corridor.

        Parameters
        ----------
        limits
            Of every rank, as for ``TwoTracks``.
        start
            Where stage R starts, if the pipeline is looped.

        Raises
        ------
        TooManySteps
            When there are more than can be looked at one by one.
        """
        ranks, size = len(limits), int(corridor.high[-1])
        first, second = [np.zeros(1, dtype=np.int64)], [np.array([start if looped else size])]
        for place, near, far in corridor.pairs:
            counts = far - near + 1
            offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            first.append(np.repeat(near, counts) + offset)
            second.append(np.repeat(place, counts))
        if looped:
            first.append(np.array([start]))
            second.append(np.array([size]))
        else:
            meeting = np.arange(corridor.low[ranks], corridor.high[ranks] + 1)
            first.append(meeting)
            second.append(meeting)
        if max(len(a) * len(b) for a, b in pairwise(first)) > MOST_STEPS:
            raise TooManySteps
        steps = []
        for rank in range(ranks):
            a, b = first[rank][:, None], second[rank][:, None]
            later_a, later_b = first[rank + 1][None, :], second[rank + 1][None, :]
            possible = (a < later_a) & ((b < later_b) if looped else (later_b < b))
            for limit in limits[rank]:
                on, off = (limit.ends[1], limit.starts[1]) if looped else (-limit.starts[1], -limit.ends[1])
                possible &= limit.ends[0, later_a] + on[later_b] <= limit.starts[0, a] + off[b] + limit.most
            steps.append(possible)
        others = np.arange(ranks, 2 * ranks)
        network = cls([Track(np.arange(ranks), first), Track(others if looped else others[::-1], second)], steps)
        network.drop_dead_ends()
        return network

    @property
    def ranks(self) -> int:
        """R."""
        return len(self.steps)

    @property
    def empty(self) -> bool:
        """Whether there is no way through."""
        return not all(step.any() for step in self.steps)

    @property
    def size(self) -> int:
        """How many steps there are."""
        return sum(int(step.sum()) for step in self.steps)

    def drop_dead_ends(self) -> None:
        """Drop the states that no way passes through."""
        alive = [np.ones(len(each), dtype=bool) for each in self.tracks[0].places]
        for rank in range(self.ranks):
            alive[rank + 1] &= self.steps[rank][alive[rank]].any(axis=0)
        for rank in range(self.ranks - 1, -1, -1):
            alive[rank] &= self.steps[rank][:, alive[rank + 1]].any(axis=1)

        def living(steps: list[Any]) -> list[Any]:
            return [each[alive[rank]][:, alive[rank + 1]] for rank, each in enumerate(steps)]

        self.steps = living(self.steps)
        self.longer = None if self.longer is None else self.longer.map(living)
        self.tracks = [
            replace(track, places=[each[kept] for each, kept in zip(track.places, alive, strict=True)])
            for track in self.tracks
        ]

    def without(self, rank: int, states: BoolArray) -> "RankNetwork":
        """Give the network without some states after a rank, given as true for those that stay."""
        steps = list(self.steps)
        if rank > 0:
            steps[rank - 1] = steps[rank - 1] & states[None, :]
        if rank < self.ranks:
            steps[rank] = steps[rank] & states[:, None]
        other = RankNetwork(self.tracks, steps, self.longer)
        other.drop_dead_ends()
        return other

    def sharpened(self, saving: SavingTimes) -> "RankNetwork":
        """Give the network with exact times of its steps where recompute makes them longer."""
        assert self.longer is not None and len(self.tracks) == 1
        (track,), steps = self.tracks, []
        ticks = [each.copy() for each in self.longer.ticks]
        for rank, step in enumerate(self.steps):
            steps.append(step.copy())
            for state in np.flatnonzero(step.any(axis=1)).tolist():
                following = np.flatnonzero(step[state])
                ends, room = track.places[rank + 1][following], self.longer.room[rank][state, following]
                exact = saving.exactly(int(track.places[rank][state]), ends, room)
                steps[rank][state, following] = exact < NEVER
                ticks[rank][state, following] = np.where(exact < NEVER, exact, 0)
        other = RankNetwork(self.tracks, steps, Longer(ticks, self.longer.room, exact=True))
        other.drop_dead_ends()
        return other

    def window(self) -> tuple[IntArray, IntArray]:
        """Give the first and last position at which every stage starts, and the end, shape (S + 1,) each."""
        low = self._starts([int(each.argmin()) for each in track.places] for track in self.tracks)
        high = self._starts([int(each.argmax()) for each in track.places] for track in self.tracks)
        return low, high

    def costs(self, paths: Paths, prices: Prices) -> Costs:
        """Price the steps for paths."""
        starts: list[Times] = [np.zeros((), dtype=paths.passes.dtype)] * self.ranks
        ends = list(starts)
        for track in self.tracks:
            for rank, stage in enumerate(track.stages.tolist()):
                before, after = track.places[rank : rank + 2]
                first, last = int(min(before.min(), after.min())), int(max(before.max(), after.max()))
                between = slice(first, last + 1)
                work = paths.passes[:, :, stage] @ prices.work[:, between]
                begun = work
                if stage > 0:
                    dear = prices.least[:, between] - prices.cheapest[:, stage - 1, None]
                    begun = work - paths.transfers[:, :, stage - 1] @ dear
                if track.backward:  # a step leads to the interval's start
                    begun, work = -work, -begun
                starts[rank] = starts[rank] + begun[:, before - first]
                ends[rank] = ends[rank] + work[:, after - first]
        visits = [paths.passes[:, BACKWARD, stage] for stage in self.tracks[0].stages.tolist()]
        return Costs(starts, ends, paths.base, visits, self.longer)

    def lengths(self, paths: Paths, prices: Prices, states: Sequence[int], crosses: BoolArray | None = None) -> Times:
        """Give the length of every path on a way, shape (Q,); parameters as of ``Prices.lengths``."""
        lengths = prices.lengths(paths, self.places(states), crosses)
        if self.longer is not None:
            found = [int(each[pair]) for each, pair in zip(self.longer.ticks, pairwise(states), strict=True)]
            lengths = lengths + paths.passes[:, BACKWARD] @ np.array(found, dtype=np.int64)
        return lengths

    def reached(self, costs: Costs) -> list[Times]:
        """Give the length of the shortest ways to every state after r ranks, shape (Q, states) each."""
        lengths: list[Times] = [np.zeros_like(costs.starts[0])]
        for rank, step in enumerate(self.steps):
            before = (lengths[-1] - costs.starts[rank])[:, :, None] + costs.between(rank)
            lengths.append(np.where(step, before, _far(before)).min(axis=1) + costs.ends[rank])
        return lengths

    def remaining(self, costs: Costs) -> list[Times]:
        """Give the length of the shortest ways from every state after r ranks to the end, shape (Q, states) each."""
        lengths: list[Times] = [np.zeros_like(costs.ends[-1])]
        for rank in range(self.ranks - 1, -1, -1):
            after = (lengths[-1] + costs.ends[rank])[:, None, :] + costs.between(rank)
            lengths.append(np.where(self.steps[rank], after, _far(after)).min(axis=2) - costs.starts[rank])
        return lengths[::-1]

    def shortest_way(self, costs: Costs) -> tuple[float, list[int]]:
        """Give the length of the shortest way of the one path that is priced, and its states."""
        reached = self.reached(costs)
        state = int(reached[-1][0].argmin())
        length, states = float(reached[-1][0, state] + costs.constant[0]), [state]
        for rank in range(self.ranks - 1, -1, -1):
            before = (reached[rank][0] - costs.starts[rank][0])[:, None] + costs.between(rank)[0]
            before = np.broadcast_to(before, self.steps[rank].shape)[:, state]
            state = int(np.where(self.steps[rank][:, state], before, _far(before)).argmin())
            states.append(state)
        return length, states[::-1]

    def rule_out(self, costs: Costs, most: float, deadline: Deadline) -> Times:
        """Rule out the steps through which every way of some path is longer than ``most``.

        Gives the lengths of the shortest ways, shape (Q,). Dead ends are left in place.

        Raises
        ------
        TimeOver
            When the deadline passes.
        """
        kept = [step.copy() for step in self.steps]
        size = max(1, BATCH // max(step.size for step in self.steps))
        shortest = []
        for number in range(0, len(costs.constant), size):
            deadline.check()
            part = costs.part(slice(number, number + size))
            reached, left = self.reached(part), self.remaining(part)
            shortest.append(reached[-1].min(axis=1) + part.constant)
            for rank in range(self.ranks):
                before = reached[rank] - part.starts[rank] + part.constant[:, None]
                after = part.ends[rank] + left[rank + 1]
                kept[rank] &= (before[:, :, None] + part.between(rank) + after[:, None, :] <= most).all(axis=0)
        self.steps = kept
        return np.concatenate(shortest)

    def places(self, states: Sequence[int]) -> IntArray:
        """Give where every stage starts, and the end, for a way, shape (S + 1,)."""
        return self._starts(states for _ in self.tracks)

    def _starts(self, states: Iterable[Sequence[int]]) -> IntArray:
        """Give where every stage starts, and the end, for a state after every rank on every track."""
        starts = np.zeros(len(self.tracks) * self.ranks + 1, dtype=np.int64)
        for track, chosen in zip(self.tracks, states, strict=True):
            passed = [int(places[state]) for places, state in zip(track.places, chosen, strict=True)]
            starts[track.stages] = passed[1:] if track.backward else passed[:-1]
            starts[-1] = max(starts[-1], passed[0], passed[-1])
        return starts


def _far(values: Times) -> float | int:
    """Give a length beyond all others, of the same type; sums of several stay within it."""
    return np.inf if values.dtype.kind == "f" else FAR
