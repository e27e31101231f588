"""Which intervals a plan better than a cutoff can still use, where every plan consists of intervals.

An interval of stage k is ruled out when it does not fit into memory, when it alone is busier than the cutoff allows,
or when a path cut exceeds the cutoff whatever the other stages are (see ``rank_network``). What cannot be
reached from both ends is dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from partita.solver.arrays import BoolArray, IntArray
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView, prefix
from partita.solver.path_prices import NEVER, least_transfers
from partita.solver.rank_network import Longer, RankNetwork
from partita.solver.rank_sums import Limit, TwoTracks, two_tracks
from partita.solver.saving_times import NEVER as CANNOT
from partita.solver.sweeping import sweep
from partita.solver.warm_start import Frame

ROUNDS_BY_RANK, CUTS_BY_RANK = 3, 3
"""Rounds of narrowing by what ranks can hold together, and cuts that are looked at for every rank."""

BEYOND = NEVER + 1
"""A busy time that no cutoff allows."""

MOST_INTERVALS = 20_000_000
"""Intervals that are looked at one by one; where more are left, nothing is ruled out."""


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Largest makespan and bottleneck, in ticks, of the plans sought; None where it does not matter."""

    makespan: int | None
    bottleneck: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """Where stages can start.

    Attributes
    ----------
    low, high
        First and last position at which each stage can start, and the end, shape (S + 1,).
    allowed
        For every stage, which intervals it can have, shape (starts, ends) within the windows; None for all.
    longer
        How much longer these take than the work of their groups; None for not at all.
    """

    low: IntArray
    high: IntArray
    allowed: list[BoolArray] | None
    longer: Longer | None = None


def prune(
    view: IntervalView, frame: Frame, cutoffs: Cutoffs, pool: CutPool | None, deadline: Deadline
) -> Window | None:
    """Give where the stages of a plan within the cutoffs can start; None when there is no such plan.

    Raises
    ------
    TimeOver
        When the deadline passes.
    """
    ends = reach(view, frame, cutoffs, pool, deadline)
    if ends is None:
        return None
    low, high = ends
    for _ in range(ROUNDS_BY_RANK if two_tracks(frame.pipeline) == "v" else 0):
        corridor = by_rank(view, frame, cutoffs, pool, (low, high)).corridor()
        if corridor.empty:
            return None
        if (low == corridor.low).all() and (high == corridor.high).all():
            break
        low, high = corridor.low, corridor.high
    if int(((high - low + 1)[:-1] * (high - low + 1)[1:]).sum()) > MOST_INTERVALS:
        return Window(low, high, None)
    network = RankNetwork.of_intervals(low, high, *fitting(view, frame, cutoffs, (low, high), deadline))
    if pool is not None and cutoffs.makespan is not None and len(pool):
        sweep(network, view, pool, cutoffs.makespan, deadline)
    return None if network.empty else _window_of(network)


def most_work(view: IntervalView, frame: Frame, cutoffs: Cutoffs, pool: CutPool | None) -> IntArray:
    """Give the most computing time per microbatch that the cutoffs leave to every stage, shape (S,).

    A path that visits stage k more often than the others is at least as long as all work at the others' least number
    of visits and the surplus of stage k.
    """
    stages = frame.num_stages
    most = np.full(stages, NEVER if cutoffs.bottleneck is None else cutoffs.bottleneck, dtype=np.int64)
    if pool is None or cutoffs.makespan is None or not len(pool):
        return most
    low, high = np.zeros(stages + 1, dtype=np.int64), np.full(stages + 1, view.size, dtype=np.int64)
    spare = cutoffs.makespan - least_transfers(view, pool, low, high)
    for members in pool.graph.pipeline.stages_of:
        for chosen in {(stage,) for stage in members.tolist()} | {tuple(members.tolist())}:
            if len(chosen) < stages:
                most[list(chosen)] = np.minimum(most[list(chosen)], _most_of(view, pool, spare, chosen))
    return most


def _most_of(view: IntervalView, pool: CutPool, spare: IntArray, stages: tuple[int, ...]) -> int:
    """Give the most computing time that some stages can have together, by what every cut leaves to spare."""
    each = np.full(len(pool), NEVER, dtype=np.int64)
    for work, block, takes in zip(view.passes, pool.passes, view.takes_time, strict=True):
        elsewhere = np.delete(block, stages, axis=1).min(axis=1)
        spare = spare - elsewhere * work[-1]
        if takes:
            each = np.minimum(each, block[:, stages].min(axis=1) - elsewhere)
    useful = (each > 0) & (each < NEVER)
    return int((spare[useful] // each[useful]).min(initial=NEVER))


def reach(
    view: IntervalView, frame: Frame, cutoffs: Cutoffs, pool: CutPool | None, deadline: Deadline
) -> tuple[IntArray, IntArray] | None:
    """Give the first and last position where each stage can start, by what grows with an interval alone."""
    most = most_work(view, frame, cutoffs, pool)
    stages, size = frame.num_stages, view.size
    earliest = np.full((stages, size + 1), size + 1, dtype=np.int64)
    work = view.compute
    widest = np.searchsorted(work, work - most.max())
    for ending in view.endings(deadline):
        end, first = ending.end, min(int(widest[ending.end]), ending.end - 1)
        part = ending.since(first)
        fits = part.state + frame.activations(part) <= frame.capacity
        fits &= work[end] - work[first:end] <= most[:, None]
        found = fits.any(axis=1)
        earliest[found, end] = first + fits.argmax(axis=1)[found]
    high = np.zeros(stages + 1, dtype=np.int64)
    low = np.full(stages + 1, size, dtype=np.int64)
    for stage in range(stages):
        reached = np.flatnonzero(earliest[stage] <= high[stage])
        if not len(reached) and stage >= frame.optional:
            return None
        high[stage + 1] = min(reached[-1] if len(reached) else 0, size - (stages - 1 - stage))
    for stage in range(stages - 1, -1, -1):
        first = int(earliest[stage, low[stage + 1] :].min())
        if first > size and stage > frame.optional:
            return None
        low[stage] = 0 if stage <= frame.optional else max(first, stage - frame.optional)
    if high[stages] < size or (low > high).any():
        return None
    return low, high


def by_rank(
    view: IntervalView, frame: Frame, cutoffs: Cutoffs, pool: CutPool | None, window: tuple[IntArray, IntArray]
) -> TwoTracks:
    """Give the limits of ranks that run two stages each, by memory, bottleneck and cuts, within windows."""
    shape = two_tracks(frame.pipeline)
    assert shape is not None, "only for two stages on every rank"
    limits: list[list[Limit]] = []
    for rank, stages in enumerate(frame.pipeline.stages_of):
        of_rank = memory_limits(view, frame, rank)
        if cutoffs.bottleneck is not None:
            of_rank.append(Limit.plain(view.compute, view.compute, cutoffs.bottleneck))
        if pool is not None and cutoffs.makespan is not None:
            of_rank += _cut_limits(view, pool, cutoffs.makespan, stages, window)
        limits.append(of_rank)
    return TwoTracks(shape, limits, *window)


def memory_limits(view: IntervalView, frame: Frame, rank: int) -> list[Limit]:
    """Bound what a rank holds at each moment, apart from what several layers share."""
    moments = frame.pipeline.moments
    reserve = int(view.instance.topology.reserves.min())
    found = []
    for moment in np.flatnonzero(moments.rank == rank).tolist():
        entries = np.flatnonzero(moments.moment == moment)
        first, second = (
            prefix(view.state + moments.whole[entry] * view.kept + moments.postponed[entry] * view.for_weights)
            for entry in entries.tolist()
        )
        found.append(Limit.plain(first, second, frame.capacity - reserve))
    return found


def _cut_limits(
    view: IntervalView, pool: CutPool, makespan: int, stages: IntArray, window: tuple[IntArray, IntArray]
) -> list[Limit]:
    """Bound the two intervals of a rank by the cuts that leave them least.

    What lies before, between and after them counts as often as a cut visits any stage there at least.
    """
    spare = makespan - least_transfers(view, pool, *window)
    one, two = (int(stage) for stage in stages)
    visits = []
    share = np.zeros(len(pool), dtype=np.float64)
    for work, block in zip(view.passes, pool.passes, strict=True):
        own = block[:, stages]
        outside = [  # never more often than the rank itself, so that limits never fall along their track
            np.minimum(part.min(axis=1, initial=NEVER), own.min(axis=1))
            for part in (block[:, :one], block[:, one + 1 : two], block[:, two + 1 :])
        ]
        visits.append((own, outside))
        share += (own.sum(axis=1) + sum(outside)) * float(work[-1])
    tightest = np.argsort(-share / np.maximum(spare, 1), kind="stable")[:CUTS_BY_RANK]
    found = []
    for cut in tightest.tolist():
        starts, ends = np.zeros((2, 2, view.size + 1), dtype=np.int64)
        most = int(spare[cut])
        for work, (own, (before, between, after)) in zip(view.passes, visits, strict=True):
            starts += np.stack([(own[cut, 0] - before[cut]) * work, (own[cut, 1] - between[cut]) * work])
            ends += np.stack([(own[cut, 0] - between[cut]) * work, (own[cut, 1] - after[cut]) * work])
            most -= int(after[cut] * work[-1])
        found.append(Limit(starts, ends, most))
    return found


def fitting(
    view: IntervalView, frame: Frame, cutoffs: Cutoffs, window: tuple[IntArray, IntArray], deadline: Deadline
) -> tuple[list[BoolArray], Longer | None]:
    """Tell which intervals within the windows fit into memory and the bottleneck's cutoff.

    Gives also how much longer recompute makes them at least; None where it does not.
    """
    stages, (low, high) = frame.num_stages, window
    allowed = [
        np.zeros((high[stage] - low[stage] + 1, high[stage + 1] - low[stage + 1] + 1), dtype=bool)
        for stage in range(stages)
    ]
    for stage in range(frame.optional):  # an empty stage at the front starts and ends at 0
        if low[stage] == 0 and low[stage + 1] == 0:
            allowed[stage][0, 0] = True
    saving = view.saving if len(frame.whole) == 1 and not frame.optional else None
    ticks, room = ([np.zeros(each.shape, dtype=np.int64) for each in allowed] for _ in range(2))
    most = NEVER if cutoffs.bottleneck is None else cutoffs.bottleneck
    for ending in view.endings(deadline):
        end = ending.end
        for stage in np.flatnonzero((low[1:] <= end) & (end <= high[1:])).tolist():
            first, last = int(low[stage]), min(int(high[stage]), end - 1)
            if first > last:
                continue
            part = slice(first, last + 1)
            memory = ending.state[part] + ending.received[part]
            memory += (
                frame.whole[:, stage, None] * ending.kept[part]
                + frame.postponed[:, stage, None] * ending.for_weights[part]
            ).max(axis=0)
            busy, place = ending.busy[part], (slice(last - first + 1), end - low[stage + 1])
            if saving is not None:
                held = int(frame.whole[0, stage])  # nothing is kept where nothing is trained: then there is no limit
                spare = (frame.capacity - memory) // held if held else np.full_like(memory, CANNOT)
                extra = saving.at_least(np.arange(first, last + 1), np.array([end]), spare[:, None])[:, 0]
                room[stage][place], ticks[stage][place] = spare, np.where(extra < CANNOT, extra, 0)
                busy = np.where(extra < CANNOT, busy + extra, BEYOND)
            allowed[stage][place] = (memory <= frame.capacity) & (busy <= most)
    return allowed, None if saving is None else Longer(ticks, room)


def _window_of(network: RankNetwork) -> Window:
    """Give what is left of one track."""
    low, high = network.window()
    (track,) = network.tracks
    offsets = [places - first for places, first in zip(track.places, low.tolist(), strict=True)]
    windows = [np.ix_(*pair) for pair in pairwise(offsets)]

    def spread(values: Sequence[Any]) -> list[Any]:
        found = [
            np.zeros(shape, dtype=each.dtype) for shape, each in zip(pairwise(high - low + 1), values, strict=True)
        ]
        for whole, window, each in zip(found, windows, values, strict=True):
            whole[window] = each
        return found

    return Window(low, high, spread(network.steps), None if network.longer is None else network.longer.map(spread))
