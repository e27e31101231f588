"""Which intervals a plan better than a cutoff can still use, where every plan consists of intervals.

An interval of stage k is ruled out when it does not fit into memory, when it alone is busier than the cutoff allows,
or when a path cut exceeds the cutoff whatever the other stages are: before the interval lies the work of its prefix,
after it that of its suffix, each visited at least as often as the path visits the stages there. What cannot be
reached from both ends is dropped, and the rest is looked at again until nothing changes.
"""

from dataclasses import dataclass

import numpy as np

from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.topology import BoolArray, IntArray
from partita.solver.warm_start import Frame

MOST_ROUNDS = 6
"""Rounds of ruling out and dropping."""

MOST_INTERVALS = 20_000_000
"""Intervals that are looked at one by one; where more are left, nothing is ruled out."""

NEVER = np.iinfo(np.int64).max // 4
"""A cutoff that nothing exceeds."""


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
    """

    low: IntArray
    high: IntArray
    allowed: list[BoolArray] | None


def prune(
    view: IntervalView, frame: Frame, cutoffs: Cutoffs, pool: CutPool | None, deadline: Deadline
) -> Window | None:
    """Give where the stages of a plan within the cutoffs can start; None when there is no such plan.

    Raises
    ------
    TimeOver
        When the deadline passes.
    """
    most = most_work(view, frame, cutoffs, pool)
    ends = _reach(view, frame, most, deadline)
    if ends is None:
        return None
    low, high = ends
    if int(((high - low + 1)[:-1] * (high - low + 1)[1:]).sum()) > MOST_INTERVALS:
        return Window(low, high, None)
    allowed = _fitting(view, frame, cutoffs, (low, high), deadline)
    window = _drop_unreachable(Window(low, high, allowed))
    for _ in range(MOST_ROUNDS if pool is not None and cutoffs.makespan is not None else 0):
        if window is None:
            return None
        before = sum(int(each.sum()) for each in window.allowed or ())
        assert pool is not None and cutoffs.makespan is not None
        deadline.check()
        _apply_cuts(view, window, pool, cutoffs.makespan)
        window = _drop_unreachable(window)
        if window is not None and sum(int(each.sum()) for each in window.allowed or ()) == before:
            break
    return window


def most_work(view: IntervalView, frame: Frame, cutoffs: Cutoffs, pool: CutPool | None) -> IntArray:
    """Give the most computing time per microbatch that the cutoffs leave to every stage, shape (S,).

    A path that visits stage k more often than the others is at least as long as all work at the others' least number
    of visits and the surplus of stage k.
    """
    stages = frame.num_stages
    most = np.full(stages, NEVER if cutoffs.bottleneck is None else cutoffs.bottleneck, dtype=np.int64)
    if pool is None or cutoffs.makespan is None or not len(pool) or stages == 1:
        return most
    low, high = np.zeros(stages + 1, dtype=np.int64), np.full(stages + 1, view.size, dtype=np.int64)
    least = least_transfers(view, pool, low, high)
    visits = (pool.rows[:, :stages], pool.rows[:, stages : 2 * stages])
    for stage in range(stages):
        elsewhere = [np.delete(block, stage, axis=1).min(axis=1) for block in visits]
        spare = cutoffs.makespan - least - elsewhere[0] * view.forward[-1] - elsewhere[1] * view.backward[-1]
        surplus = [block[:, stage] - other for block, other in zip(visits, elsewhere, strict=True)]
        each = np.minimum(*surplus) if view.instance.trains else surplus[0]
        if (each > 0).any():
            most[stage] = min(int(most[stage]), int((spare[each > 0] // each[each > 0]).min()))
    return most


def _reach(view: IntervalView, frame: Frame, most: IntArray, deadline: Deadline) -> tuple[IntArray, IntArray] | None:
    """Give the first and last position where each stage can start, by what grows with an interval alone."""
    stages, size = frame.num_stages, view.size
    earliest = np.full((stages, size + 1), size + 1, dtype=np.int64)
    work = view.forward + view.backward
    widest = np.searchsorted(work, work - most.max())
    for ending in view.endings(deadline):
        end, first = ending.end, min(int(widest[ending.end]), ending.end - 1)
        part = ending.since(first)
        fits = part.state + frame.in_flight[:, None] * part.kept <= frame.capacity
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


def _fitting(
    view: IntervalView, frame: Frame, cutoffs: Cutoffs, window: tuple[IntArray, IntArray], deadline: Deadline
) -> list[BoolArray]:
    """Tell which intervals within the windows fit into memory and the bottleneck's cutoff."""
    stages, (low, high) = frame.num_stages, window
    allowed = [
        np.zeros((high[stage] - low[stage] + 1, high[stage + 1] - low[stage + 1] + 1), dtype=bool)
        for stage in range(stages)
    ]
    for stage in range(frame.optional):  # an empty stage at the front starts and ends at 0
        if low[stage] == 0 and low[stage + 1] == 0:
            allowed[stage][0, 0] = True
    most = NEVER if cutoffs.bottleneck is None else cutoffs.bottleneck
    for ending in view.endings(deadline):
        end = ending.end
        for stage in np.flatnonzero((low[1:] <= end) & (end <= high[1:])).tolist():
            first, last = int(low[stage]), min(int(high[stage]), end - 1)
            if first > last:
                continue
            part = slice(first, last + 1)
            memory = ending.state[part] + ending.received[part] + frame.in_flight[stage] * ending.kept[part]
            fits = (memory <= frame.capacity) & (ending.busy[part] <= most)
            allowed[stage][: last - first + 1, end - low[stage + 1]] = fits
    return allowed


def least_transfers(view: IntervalView, pool: CutPool, low: IntArray, high: IntArray) -> IntArray:
    """Give the least that the transfers of every cut can cost, shape (cuts,).

    Every boundary costs at least a transfer on the best path; and of any c + 1 stages in a row, where c is the most
    stages that a node can hold, two neighbors are on different nodes.
    """
    forward, backward, extra = _boundary_prices(view, low, high)
    stages = pool.graph.num_stages
    on_forward, on_backward = _boundary_coefficients(pool)
    base = on_forward @ forward + on_backward @ backward
    crossing = on_forward * extra[0] + on_backward * extra[1]
    return base + _least_crossings(crossing, view.instance.topology.most_on_a_node, stages)


def _boundary_coefficients(pool: CutPool) -> tuple[IntArray, IntArray]:
    """Give every cut's coefficients of the transfers between neighbors, shape (cuts, S - 1) each."""
    stages, pairs = pool.graph.num_stages, len(pool.graph.pairs)
    first = 2 * stages
    return pool.rows[:, first : first + stages - 1], pool.rows[:, first + pairs : first + pairs + stages - 1]


def _boundary_prices(view: IntervalView, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Give every boundary's least price in either pass, and what a crossing between nodes adds at least."""
    added = view.between - view.least
    count = len(low) - 2
    prices = np.zeros((4, max(count, 0)), dtype=np.int64)
    for boundary in range(count):
        part = slice(int(low[boundary + 1]), int(high[boundary + 1]) + 1)
        prices[:2, boundary] = view.least[:, part].min(axis=1)
        prices[2:, boundary] = added[:, part].min(axis=1)
    return prices[0], prices[1], prices[2:]


def _least_crossings(price: IntArray, most: int, stages: int) -> IntArray:
    """Give the least total of crossings such that no more than ``most`` stages in a row are on one node."""
    if stages <= most:
        return np.zeros(len(price), dtype=np.int64)
    best = np.full((len(price), most + 1), NEVER, dtype=np.int64)  # by the stages in a row so far
    best[:, 1] = 0
    for boundary in range(stages - 1):
        following = np.full_like(best, NEVER)
        following[:, 1] = best[:, 1:].min(axis=1) + price[:, boundary]
        following[:, 2:] = best[:, 1:-1]
        best = following
    return np.asarray(best[:, 1:].min(axis=1))


def _apply_cuts(view: IntervalView, window: Window, pool: CutPool, makespan: int) -> None:
    """Rule out the intervals with which some path is longer than the cutoff."""
    assert window.allowed is not None
    stages = pool.graph.num_stages
    low, high = window.low, window.high
    spare = makespan - least_transfers(view, pool, low, high)
    prices = _boundary_prices(view, low, high)
    boundary = _boundary_coefficients(pool)
    for stage in range(stages):
        starts = slice(int(low[stage]), int(high[stage]) + 1)
        ends = slice(int(low[stage + 1]), int(high[stage + 1]) + 1)
        before = np.zeros((len(pool), window.allowed[stage].shape[0]), dtype=np.int64)
        after = np.zeros((len(pool), window.allowed[stage].shape[1]), dtype=np.int64)
        for pass_, (work, block) in enumerate(
            ((view.forward, pool.rows[:, :stages]), (view.backward, pool.rows[:, stages : 2 * stages]))
        ):
            own = block[:, stage, None]
            prefix = block[:, :stage].min(axis=1, initial=NEVER)[:, None] if stage else 0
            suffix = block[:, stage + 1 :].min(axis=1, initial=NEVER)[:, None] if stage < stages - 1 else 0
            before += (prefix - own) * work[starts]
            after += (own - suffix) * work[ends] + suffix * work[-1]
            if stage > 0:
                before += boundary[pass_][:, stage - 1, None] * (view.least[pass_, starts] - prices[pass_][stage - 1])
            if stage < stages - 1:
                after += boundary[pass_][:, stage, None] * (view.least[pass_, ends] - prices[pass_][stage])
        after -= spare[:, None]
        worst = np.full(window.allowed[stage].shape, -NEVER, dtype=np.int64)
        for cut in range(len(pool)):
            np.maximum(worst, before[cut, :, None] + after[cut], out=worst)
        window.allowed[stage] &= worst <= 0


def _drop_unreachable(window: Window) -> Window | None:
    """Drop the positions that no chain of allowed intervals passes through; None when there is no chain."""
    allowed = window.allowed
    assert allowed is not None
    reached: list[BoolArray] = [np.ones(1, dtype=bool)]
    for each in allowed:
        reached.append(np.asarray((reached[-1][:, None] & each).any(axis=0)))
    useful: list[BoolArray] = [np.ones(1, dtype=bool)]
    for each in reversed(allowed):
        useful.append(np.asarray((each & useful[-1][None, :]).any(axis=1)))
    through = [a & b for a, b in zip(reached, reversed(useful), strict=True)]
    if not all(each.any() for each in through):
        return None
    firsts = np.array([int(each.argmax()) for each in through])
    lasts = np.array([len(each) - 1 - int(each[::-1].argmax()) for each in through])
    kept = []
    for stage, each in enumerate(allowed):
        part = each & through[stage][:, None] & through[stage + 1][None, :]
        kept.append(part[firsts[stage] : lasts[stage] + 1, firsts[stage + 1] : lasts[stage + 1] + 1].copy())
    return Window(window.low + firsts, window.low + lasts, kept)
