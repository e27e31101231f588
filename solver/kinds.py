"""Times and first plans where nodes have several kinds of device."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, permutations

import numpy as np

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.costs import sum_by
from partita.solver.deadline import Deadline
from partita.solver.figures import Figures
from partita.solver.grouping import Groups
from partita.solver.intervals import Ending, IntervalView
from partita.solver.local_search import stages_of
from partita.solver.plans import Judge, Plan
from partita.solver.seat_space import SeatSpace
from partita.solver.topology import Topology
from partita.solver.unsuited import TooManySteps
from partita.solver.warm_start import Frame, Price, smallest_maximum

Start = tuple[IntArray, IntArray]
"""Where stages start, and the end, shape (S + 1,); the location of every rank."""

MOST_ORDERS = 6
"""Orders of the kinds that are tried for a first plan."""


def slowness(figures: Figures) -> FloatArray:
    """Give how many times its least time any layer takes at least on every kind of device, shape (Q,)."""
    by_kind = figures.by_way[:2].sum(axis=0).min(axis=1)
    least = (figures.forward + figures.backward).astype(np.float64)
    counts = least > 0
    if not counts.any():
        return np.ones(len(by_kind))
    return np.asarray((by_kind[:, counts] / least[counts]).min(axis=1))


def fast_ranks(topology: Topology, figures: Figures, num_ranks: int) -> float:
    """Give how many devices of the fastest kind do as much, at most, as the best so many slots of a cluster."""
    if len(topology.kinds) == 1:
        return float(num_ranks)
    each = np.repeat(1 / slowness(figures)[topology.kind_of], topology.slots)
    return float(np.sort(each)[::-1][:num_ranks].sum())


def orders_of_kinds(topology: Topology, figures: Figures, num_ranks: int) -> Iterator[IntArray]:
    """Give placements of ranks, shape (R,) each: the fastest slots, those of one kind after those of another."""
    slow = slowness(figures)
    slots = np.repeat(np.arange(len(topology.slots)), topology.slots)
    chosen = slots[np.argsort(slow[topology.kind_of[slots]], kind="stable")][:num_ranks]
    kinds = topology.kind_of[chosen]
    for order in islice(permutations(np.unique(kinds).tolist()), MOST_ORDERS):
        yield np.concatenate([np.sort(chosen[kinds == kind]) for kind in order])


def by_time_of_kind(figures: Figures, groups: Groups, kind: IntArray, capacities: IntArray) -> Price:
    """Price intervals by their computing time on the kind of device of every stage, where they fit into its memory.

    Parameters
    ----------
    kind
        Of every stage, shape (S,).
    capacities
        Bytes of every kind, shape (Q,).
    """
    by_kind = figures.by_way[:2].sum(axis=0).min(axis=1).astype(np.int64)
    work = np.array([[0, *np.cumsum(sum_by(groups.group_of, each, len(groups)))] for each in by_kind], dtype=np.int64)

    def price(ending: Ending, memory: IntArray) -> FloatArray:
        end, starts = ending.end, slice(ending.end - memory.shape[1], ending.end)
        loads = (work[:, end, None] - work[:, starts])[kind]
        return np.asarray(np.where(memory <= capacities[kind][:, None], loads, np.inf))

    return price


def plans_by_kind(
    judge: Judge, view: IntervalView, frame: Frame, space: SeatSpace | None, deadline: Deadline
) -> Iterator[Start]:
    """Give plans that leave every kind of device what it can do.

    Parameters
    ----------
    space
        Where it is known, the best of its first plans is given; else one for every order of the kinds.

    Raises
    ------
    TimeOver
        When the deadline passes.
    """
    if space is not None:
        with suppress(TooManySteps):
            starts = list(space.first_plans(deadline))
            judged = judge.judge([Plan(stages_of(cuts), location) for cuts, location in starts]) if starts else []
            fine = [(each.key, number) for number, each in enumerate(judged) if each is not None]
            if fine:
                yield starts[min(fine)[1]]
            return
    topology = judge.instance.topology
    for location in orders_of_kinds(topology, judge.figures, frame.pipeline.num_ranks):
        kind = topology.kind_of[location[frame.pipeline.rank_of]]
        cuts = smallest_maximum(
            view, frame, by_time_of_kind(judge.figures, judge.groups, kind, judge.capacities), deadline
        )
        if cuts is not None:
            yield cuts, location
