"""Which stages every group can still be on, given what the sought plan may cost.

Without such knowledge a group can be on any stage. Pins fix it. In a total order the windows of ``pruning`` narrow it;
in a graph with branches the work and memory of all that must come before and after a group do.
"""

from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import BoolArray, IntArray
from partita.solver.grouping import Groups
from partita.solver.pruning import Window

Threshold = tuple[int, int]
"""A group and a stage: the group is on that stage or later."""

MOST_ANCESTRY = 4000
"""Up to so many groups the ancestors of all are found."""


@dataclass(frozen=True)
class Domains:
    """What is left to decide.

    Attributes
    ----------
    earliest, latest
        First and last stage of every group, shape (G,).
    successors
        Order between groups without what follows from the rest.
    implications
        Pairs of thresholds of which the first implies the second.
    """

    earliest: IntArray
    latest: IntArray
    successors: tuple[tuple[int, ...], ...]
    implications: tuple[tuple[Threshold, Threshold], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether some group has no stage left."""
        return bool((self.earliest > self.latest).any())


@dataclass(frozen=True)
class Ancestry:
    """What must come before and after every group.

    Attributes
    ----------
    before, after
        Boolean, shape (G, G), a row for every group.
    successors
        The order between groups without the pairs that follow from others.
    """

    before: BoolArray
    after: BoolArray
    successors: tuple[tuple[int, ...], ...]


def find_ancestry(groups: Groups) -> Ancestry | None:
    """Find what must come before and after every group; None where there are too many groups."""
    size = len(groups)
    if size > MOST_ANCESTRY:
        return None
    after = np.zeros((size, size), dtype=bool)
    reduced: list[tuple[int, ...]] = [()] * size
    for group in range(size - 1, -1, -1):
        direct = []
        for other in groups.successors[group]:  # ascending, so that shorter ways come first
            if not after[group, other]:
                direct.append(other)
                after[group] |= after[other]
                after[group, other] = True
        reduced[group] = tuple(direct)
    return Ancestry(after.T.copy(), after, tuple(reduced))


def any_stage(groups: Groups, num_stages: int, ancestry: Ancestry | None) -> Domains:
    """Give every group every stage."""
    return Domains(
        earliest=np.zeros(len(groups), dtype=np.int64),
        latest=np.full(len(groups), num_stages - 1, dtype=np.int64),
        successors=groups.successors if ancestry is None else ancestry.successors,
    )


def pinned(domains: Domains, pins: dict[int, int]) -> Domains:
    """Restrict pinned groups to their stages; a pin beyond the last stage leaves the group none."""
    earliest, latest = domains.earliest.copy(), domains.latest.copy()
    for group, stage in pins.items():
        earliest[group] = max(earliest[group], stage)
        latest[group] = min(latest[group], stage)
    return Domains(earliest, latest, domains.successors, domains.implications)


def within_window(groups: Groups, window: Window) -> Domains:
    """Translate where stages can start into what is left to decide."""
    stages = len(window.low) - 1
    position = np.arange(len(groups))[:, None]
    earliest = (window.high[None, 1:stages] <= position).sum(axis=1)
    latest = (window.low[None, 1:stages] <= position).sum(axis=1)
    return Domains(earliest, latest, groups.successors, tuple(_implications(window)))


def _implications(window: Window) -> list[tuple[Threshold, Threshold]]:
    """Tell how the start of a stage restricts the start of the next one.

    Where stage k starts at position p or before, stage k + 1 starts at the last end of such an interval or before;
    and likewise from the other side.
    """
    found: list[tuple[Threshold, Threshold]] = []
    if window.allowed is None:
        return found
    for stage in range(1, len(window.allowed) - 1):
        allowed = window.allowed[stage]
        start, end = int(window.low[stage]), int(window.low[stage + 1])
        ends = np.arange(allowed.shape[1])
        last = np.maximum.accumulate(np.where(allowed, ends, -1).max(axis=1))
        for row in np.flatnonzero(last < allowed.shape[1] - 1).tolist():
            if last[row] >= 0:
                found.append(((start + row, stage), (end + int(last[row]), stage + 1)))
        nowhere = allowed.shape[1]
        first = np.minimum.accumulate(np.where(allowed, ends, nowhere).min(axis=1)[::-1])[::-1]
        for row in np.flatnonzero(first > 0).tolist():
            if first[row] < nowhere and start + row > 0:
                found.append(((end + int(first[row]) - 1, stage + 1), (start + row - 1, stage)))
    return found


def within_work(ancestry: Ancestry, work: IntArray, most_work: IntArray, state: IntArray, capacity: int) -> Domains:
    """Restrict every group by the work and memory of all that comes before and after it.

    Parameters
    ----------
    ancestry
        The order of the groups.
    work, state
        Computing time and bytes of every group, shape (G,).
    most_work
        The most computing time of every stage, shape (S,).
    capacity
        Bytes that a stage can hold.
    """
    stages = len(most_work)
    by_time = np.cumsum(np.minimum(most_work, work.sum()))
    by_memory = capacity * np.arange(1, stages + 1, dtype=np.float64)
    by_time_behind = np.cumsum(np.minimum(most_work, work.sum())[::-1])

    def needed(related: BoolArray, time_room: IntArray) -> IntArray:
        load = related @ work + work
        held = related @ state.astype(np.float64) + state
        return np.maximum(np.searchsorted(time_room, load), np.searchsorted(by_memory, held))

    earliest = needed(ancestry.before, by_time)
    latest = stages - 1 - needed(ancestry.after, by_time_behind)
    return Domains(earliest, latest, ancestry.successors)
