"""First plans by dynamic programming over intervals of groups in their topological order."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.deadline import Deadline
from partita.solver.intervals import Ending, IntervalView
from partita.solver.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Frame:
    """The stages that plans are sought for.

    Attributes
    ----------
    pipeline
        The ranks of the S stages.
    optional
        So many stages at the front may be empty: the plan then has fewer stages.
    whole, postponed
        Microbatches that every stage keeps when it is fullest, whole and for their weight gradients, shape (Y, S)
        each: one of Y moments is the fullest.
    capacity
        Bytes that a stage may use.
    """

    pipeline: Pipeline
    optional: int
    whole: IntArray
    postponed: IntArray
    capacity: int

    @property
    def num_stages(self) -> int:
        """S."""
        return self.pipeline.num_stages

    def within(self, capacity: int) -> "Frame":
        """Give the same stages with another capacity."""
        return replace(self, capacity=capacity)

    def memory(self, ending: Ending) -> IntArray:
        """Give the bytes of every interval on every stage, shape (S, starts)."""
        return ending.state + ending.received + self.activations(ending)

    def activations(self, ending: Ending) -> IntArray:
        """Give the bytes that every interval keeps for backward passes on every stage, shape (S, starts)."""
        most: IntArray = self.whole[0, :, None] * ending.kept
        for moment, (whole, postponed) in enumerate(zip(self.whole, self.postponed, strict=True)):
            if moment or postponed.any():
                size = whole[:, None] * ending.kept + postponed[:, None] * ending.for_weights
                most = np.maximum(most, size) if moment else size
        return most


Price = Callable[[Ending, IntArray], FloatArray | IntArray]
"""What an interval costs on every stage, shape (S, starts); the largest cost of a plan is minimized.

Called with the intervals of one ending and their memory on every stage, shape (S, starts).
"""


def by_time(ending: Ending, memory: IntArray) -> IntArray:
    """Price an interval by its busy time."""
    return np.broadcast_to(ending.busy, memory.shape)


def by_memory(ending: Ending, memory: IntArray) -> IntArray:
    """Price an interval by its memory."""
    return memory


NO_LIMIT = np.iinfo(np.int64).max
"""Memory without end."""


def smallest_maximum(view: IntervalView, frame: Frame, price: Price, deadline: Deadline) -> IntArray | None:
    """Cut the order into stages that fit, so that the largest price of a stage is as small as possible.

    Returns
    -------
    array of shape (S + 1,) or None
        Where every stage starts, and the end; empty stages start and end at 0. None when no such cut exists.

    Raises
    ------
    TimeOver
        When the deadline passes.
    """
    stages, size = frame.num_stages, view.size
    best = np.full((stages + 1, size + 1), np.inf)
    best[: frame.optional + 1, 0] = 0.0
    came_from = np.zeros((stages + 1, size + 1), dtype=np.int32)
    widest = _widest_start(view, frame)
    for ending in view.endings(deadline):
        end, first = ending.end, int(widest[ending.end])
        part = ending.since(first)
        memory = frame.memory(part)
        cost = np.where(memory <= frame.capacity, price(part, memory), np.inf)
        reached = np.maximum(best[:stages, first:end], cost)
        came_from[1:, end] = first + reached.argmin(axis=1)
        best[1:, end] = reached.min(axis=1)
    if not np.isfinite(best[stages, size]):
        return None
    cuts = [size]
    for stage in range(stages, 0, -1):
        cuts.append(int(came_from[stage, cuts[-1]]) if cuts[-1] else 0)
    return np.array(cuts[::-1], dtype=np.int64)


LONGEST_EXACT = 3000
"""Up to so many groups intervals of any length are considered."""


def _widest_start(view: IntervalView, frame: Frame) -> IntArray:
    """Give the earliest start considered for every end; long chains consider stages of up to 8 times the mean work."""
    if view.size <= LONGEST_EXACT or frame.num_stages < 16:
        return np.zeros(view.size + 1, dtype=np.int64)
    work = view.compute
    start = np.searchsorted(work, work - 8 * work[-1] // frame.num_stages)
    latest = np.maximum(np.arange(view.size + 1, dtype=np.int64) - 1, 0)
    return np.asarray(np.minimum(start, latest), dtype=np.int64)
