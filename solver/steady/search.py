"""The dynamic program over cuts, devices and replicas, and the exact choices that close it.

State: the layers that are left to stages from here on are those after a cut; they use k devices and have D replicas in
all. ``F[cut, state]`` is the smallest bottleneck of these stages. A stage before them has y = 1 + ceil(D / d)
microbatches in flight, so that everything about it is known. The program runs with the lower bounds of the stages; the
stages on the way it finds are made exact, until it finds a way of exact stages only, which then is the best.
"""

from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.deadline import Deadline, TimeOver
from partita.solver.steady.menu import Menu
from partita.solver.steady.stages import Stages, in_flight

EXACT = 1e-12
"""Times that differ by less than this fraction are the same: they are sums of the same numbers in another order."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One stage on a way: a possible stage, the row of its tensor-parallel degree, replicas, microbatches in flight."""

    stage: int
    row: int
    replicas: int
    flight: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: the best way with its kinds of recompute by stage, and a bound on all others.

    ``bound`` is infinite where there is no plan at all.
    """

    way: tuple[Choice, ...] | None
    recompute: tuple[tuple[int, ...], ...]
    value: float
    bound: float
    rounds: int


class Program:
    """The dynamic program of one problem.

    Parameters
    ----------
    stages
        Figures of all possible stages.
    """

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        cuts = stages.cuts
        self._ending = np.searchsorted(cuts.last, np.arange(len(cuts) + 1))
        self._steps = _Steps(stages.menu)

    def table(self, compute: FloatArray, most: float, deadline: Deadline) -> FloatArray:
        """Give F, shape (cuts, states), for computing times of shape (T, P, Y + 1); infinite beyond ``most``."""
        cuts, steps = self._stages.cuts, self._steps
        best = np.full((len(cuts), steps.count), np.inf)
        best[-1, 0] = 0.0
        for cut in range(len(cuts) - 1, 0, -1):
            reached = np.isfinite(best[cut])
            if not reached.any():
                continue
            deadline.check()
            own = np.arange(self._ending[cut], self._ending[cut + 1])
            first = cuts.first[own][:, None]
            for step in steps.all:
                live = np.flatnonzero(reached[step.before])
                if not len(live):
                    continue
                needed = compute[step.row][own[:, None], step.flight[live]]
                seconds = self._stages.seconds(needed, step.row, own, step.replicas)
                longest = np.maximum(seconds, best[cut, step.before[live]])
                longest[longest > most * (1 + EXACT)] = np.inf
                where = (first, step.after[live])
                best[where] = np.minimum(best[where], longest)
        return best

    def way(self, table: FloatArray, compute: FloatArray) -> tuple[Choice, ...] | None:
        """Give the stages of a best way, with the fewest devices, then the fewest replicas; None for none."""
        cuts, least = self._stages.cuts, table[0].min()
        if not np.isfinite(least):
            return None
        state = int(np.flatnonzero(table[0] <= least * (1 + EXACT))[0])
        cut, way = 0, []
        while cut < len(cuts) - 1:
            found = self._step_from(cut, state, float(least) * (1 + EXACT), table, compute)
            way.append(found[0])
            cut, state = found[1:]
        return tuple(way)

    def _step_from(
        self, cut: int, state: int, most: float, table: FloatArray, compute: FloatArray
    ) -> tuple[Choice, int, int]:
        """Give a stage that starts at a cut, and the cut and state after it, such that nothing takes longer."""
        cuts = self._stages.cuts
        starting = np.flatnonzero(cuts.first == cut)
        for step in self._steps.all:
            where = np.flatnonzero(step.after == state)
            if not len(where):
                continue
            before, flight = int(step.before[where[0]]), int(step.flight[where[0]])
            needed = compute[step.row][starting, flight]
            seconds = self._stages.seconds(needed, step.row, starting, step.replicas)
            fits = np.flatnonzero(np.maximum(seconds, table[cuts.last[starting], before]) <= most)
            if len(fits):
                stage = int(starting[fits[0]])
                return Choice(stage, step.row, step.replicas, flight), int(cuts.last[stage]), before
        raise AssertionError("a state that can be reached has a stage that leads to it")


@dataclass(frozen=True, slots=True)
class _Step:
    """A stage of so many replicas at the degree of a row: the states before and after it, microbatches in flight."""

    row: int
    replicas: int
    before: IntArray
    after: IntArray
    flight: IntArray


class _Steps:
    """All states (devices, replicas), ascending, and the steps between them."""

    def __init__(self, menu: Menu) -> None:
        most = min(menu.devices, menu.microbatches)
        shapes = [(row, d, d * t, d) for row, t in enumerate(menu.tensor) for d in menu.data]
        states = {(0, 0)}
        latest = {(0, 0)}
        while latest:
            latest = {
                (k + width, total + d)
                for k, total in latest
                for _, d, width, _ in shapes
                if k + width <= menu.devices and total + d <= most
            } - states
            states |= latest
        listed = sorted(states)
        number = {state: place for place, state in enumerate(listed)}
        self.count = len(listed)
        self.all: list[_Step] = []
        for row, d, width, _ in shapes:
            ends = [(k, total) for k, total in listed if (k + width, total + d) in number]
            if ends:
                before = np.array([number[each] for each in ends], dtype=np.int64)
                after = np.array([number[k + width, total + d] for k, total in ends], dtype=np.int64)
                flight = np.array([in_flight(total, d) for _, total in ends], dtype=np.int64)
                self.all.append(_Step(row, d, before, after, flight))


def search(stages: Stages, limit: float, relative_gap: float, deadline: Deadline) -> Found:
    """Search until the best plan is proven, the gap is small enough, or the time is over."""
    program = Program(stages)
    way: tuple[Choice, ...] | None = None
    value, bound, rounds = np.inf, 0.0, 0
    recompute: tuple[tuple[int, ...], ...] = ()
    try:
        first: FloatArray | None = stages.upper
        while True:
            compute = stages.lower if first is None else first
            table = program.table(compute, min(limit, value), deadline)
            found = program.way(table, compute)
            if first is None:
                bound = max(bound, float(table[0].min()))
            first = None
            rounds += 1
            if found is not None:
                for choice in found:
                    stages.settle(choice.row, choice.stage, choice.flight, deadline)
                reached = max(_value(stages, choice) for choice in found)
                if reached < value and reached <= limit * (1 + EXACT):
                    way, value = found, reached
                    recompute = tuple(stages.chosen[each.row, each.stage, each.flight] for each in found)
            if bound >= value * (1 - EXACT) or bound == np.inf or value - bound <= relative_gap * value:
                break
    except TimeOver:
        pass
    return Found(way, recompute, float(value), float(min(bound, value) if way else bound), rounds)


def _value(stages: Stages, choice: Choice) -> float:
    """Give the time of a stage that is settled."""
    compute = stages.lower[choice.row, [choice.stage], choice.flight]
    return float(stages.seconds(compute, choice.row, np.array([choice.stage]), choice.replicas)[0])
