"""Moves of stage boundaries that improve a plan; every path that stops a move becomes a cut."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from partita.solver.arrays import IntArray
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.measure import Measures, graph_of
from partita.solver.plans import Judge, Judged, Plan, PlanPool
from partita.solver.warm_start import Frame

LONGEST_BLOCK = 32
"""Most boundaries that move together."""

MOST_MEASURED = 4096
"""Most plans that one search measures."""

BATCH, BATCH_CHOOSING = 64, 8
"""Plans measured at once; where recompute is chosen for each of them, which takes longer. By all scenarios together."""

MOST_CUTS = 400
"""Path cuts that neighbors may add to a pool."""


def stages_of(cuts: IntArray) -> IntArray:
    """Give the stage of every group of a plan whose stage k starts at cuts[k], shape (S + 1,) to (G,)."""
    return np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))


def cuts_of(stage: IntArray, num_stages: int) -> IntArray:
    """Give where every stage starts, and the end, of stages that are intervals."""
    return np.searchsorted(stage, np.arange(num_stages + 1)).astype(np.int64)


LONGEST_PERIOD, REPEATED = 64, 0.8
"""Most groups of one block of a model whose blocks are equal, and which part of all groups then repeats."""


def period_of(work: IntArray) -> int:
    """Give after how many groups the computing times repeat; 1 where they do not, or from one group to the next.

    Parameters
    ----------
    work
        Ticks of every group, shape (G,).
    """
    for period in range(1, min(LONGEST_PERIOD, len(work) // 2) + 1):
        if (work[period:] == work[:-period]).mean() >= REPEATED:
            return period
    return 1


def neighbors(cuts: IntArray, period: int = 1) -> IntArray:
    """Give all plans in which a block of boundaries moves by one, or one boundary by two, shape (N, S + 1).

    A block of boundaries also moves by as many groups as the model's blocks have, which leaves it where tensors are
    small; ``period`` is that number.
    """
    stages = len(cuts) - 1
    rows = []
    for first in range(1, stages):
        for last in range(first + 1, min(stages, first + LONGEST_BLOCK) + 1):
            for step in (-1, 1) if period == 1 else (-1, 1, -period, period):
                moved = cuts.copy()
                moved[first:last] += step
                rows.append(moved)
        for step in (-2, 2):
            moved = cuts.copy()
            moved[first] += step
            rows.append(moved)
    near = np.array(rows, dtype=np.int64).reshape(-1, stages + 1)
    return near[(np.diff(near, axis=1) > 0).all(axis=1)]


class LocalSearch:
    """Improves interval plans of one number of stages.

    Parameters
    ----------
    view, frame, judge
        Costs of intervals, the stages, and what plans are judged by.
    pool
        Path cuts; None where the makespan does not matter.
    plans
        Where every plan measured goes.
    """

    def __init__(self, view: IntervalView, frame: Frame, judge: Judge, pool: CutPool | None, plans: PlanPool) -> None:
        self._view, self._frame, self._judge, self._pool, self._plans = view, frame, judge, pool, plans
        self._measured = 0
        self._period = period_of(view.work)

    def improve(self, start: Judged, deadline: Deadline) -> Judged:
        """Move boundaries while that makes the plan better."""
        best = start
        while not deadline.passed and self._measured < MOST_MEASURED:
            better = next(self._better(best, deadline), None)
            if better is None:
                break
            best = better
        return best

    def _better(self, best: Judged, deadline: Deadline) -> Iterator[Judged]:
        """Go through the neighbors that may be better, the most promising first; give those that are."""
        location = best.plan.location
        near = neighbors(cuts_of(best.plan.stage, best.plan.num_stages), self._period)
        bound = self._least_objective(near)
        for rows in self._in_batches(near[np.argsort(bound, kind="stable")], np.sort(bound) <= best.objective):
            if deadline.passed or self._measured >= MOST_MEASURED:
                return
            judged = self._judge_all(rows, location)
            found = min((each for each in judged if each is not None), key=lambda each: each.key, default=None)
            if found is not None and found.key < best.key:
                yield found

    def _in_batches(self, rows: IntArray, useful: npt.NDArray[np.bool_]) -> Iterator[IntArray]:
        kept = rows[useful]
        instance = self._judge.instance
        size = max(1, (BATCH_CHOOSING if instance.ways.choosable else BATCH) // len(instance.cases))
        for first in range(0, len(kept), size):
            yield kept[first : first + size]

    def _judge_all(self, rows: IntArray, location: IntArray) -> list[Judged | None]:
        """Measure plans, keep them, and keep the paths that decide their makespans."""
        self._measured += len(rows)
        wanted = self._pool is not None and len(self._pool) < MOST_CUTS
        judged = self._judge.judge([Plan(stages_of(row), location) for row in rows], wanted)
        for each in judged:
            self._plans.add(each)
        fine = [each.measures for each in judged if each is not None]
        if self._pool is not None and fine and wanted:
            learn(self._pool, fine)
        return judged

    def learn_from_neighbors(self, plan: Judged, deadline: Deadline) -> None:
        """Add the critical paths of the neighbors whose length is least known, until enough cuts are there."""
        if self._pool is None:
            return
        near = neighbors(cuts_of(plan.plan.stage, plan.plan.num_stages))
        bound = self._least_objective(near)
        for rows in self._in_batches(near[np.argsort(bound, kind="stable")], np.ones(len(near), dtype=bool)):
            if deadline.passed or len(self._pool) >= MOST_CUTS or self._measured >= MOST_MEASURED:
                return
            self._judge_all(rows, plan.plan.location)

    def _least_objective(self, near: IntArray) -> IntArray:
        """Bound the objective of interval plans from below, cheaply."""
        view = self._view
        if self._judge.metric == "iteration_time" and self._pool is not None and len(self._pool):
            graph, size = self._pool.graph, self._frame.num_stages - 1
            times = np.zeros((len(near), graph.num_columns), dtype=np.int64)
            for columns, work in zip(graph.passes(times), view.passes, strict=True):
                columns[...] = np.diff(work[near], axis=1)
            if not view.pays_host:
                for direction in range(graph.num_directions):
                    graph.transfers(times, direction)[:, :size] = view.least[direction][near[:, 1:-1]]
            return np.asarray(self._pool.lengths(times).max(axis=1))
        if self._judge.metric == "bottleneck_time":
            ranks = graph_of(self._judge.instance, near.shape[1] - 1).pipeline.stages_of
            work = np.diff(view.compute[near], axis=1)
            return np.asarray(np.max([work[:, stages].sum(axis=1) for stages in ranks], axis=0))
        return np.zeros(len(near), dtype=np.int64)


def learn(pool: CutPool, measured: Sequence[Measures]) -> int:
    """Add the critical paths of plans of equally many stages; tell how many are new."""
    known = [each.visits for each in measured if each.visits is not None]
    if len(known) == len(measured):
        return pool.add(np.stack(known))
    _, visits = pool.graph.critical_paths(np.stack([each.row for each in measured]))
    return pool.add(visits)
