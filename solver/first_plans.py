"""First plans of one number of stages by dynamic programming, improved by moves."""

from contextlib import suppress

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.cuts import CutPool, starting_cuts
from partita.solver.deadline import Deadline, TimeOver
from partita.solver.divisions import balanced_sizes, uniform_sizes
from partita.solver.group_moves import GroupSearch
from partita.solver.kinds import plans_by_kind
from partita.solver.local_search import LocalSearch, stages_of
from partita.solver.plans import Judged, Plan
from partita.solver.seat_space import SeatSpace
from partita.solver.tools import Tools
from partita.solver.warm_start import NO_LIMIT, Frame, Price, by_memory, by_time, smallest_maximum


class FirstPlans:
    """Finds plans to start from, and improves plans.

    Parameters
    ----------
    tools, frame, pool
        Where plans go, the stages, and where path cuts go; None where the makespan does not matter.
    seats
        The plans for several kinds of device, where they are known.
    """

    def __init__(self, tools: Tools, frame: Frame, pool: CutPool | None, seats: SeatSpace | None) -> None:
        self._tools, self._frame, self._pool, self._seats = tools, frame, pool, seats
        self.search = LocalSearch(tools.view, frame, tools.judge, pool, tools.plans)
        self._moves = GroupSearch(tools.judge, tools.plans)
        self._placed: IntArray | None = None

    def find(self, deadline: Deadline) -> None:
        """Find first plans and improve them."""
        tools, frame = self._tools, self._frame
        judge, tactics, view = tools.judge, tools.tactics, tools.view
        if not (tactics.warm_start or tactics.starting_cuts):
            return
        for sizes in (uniform_sizes(view.size, frame.num_stages), balanced_sizes(view.work, frame.num_stages)):
            if not deadline.passed or tools.plans.best(set()) is None:
                starts: IntArray = np.concatenate([[0], np.cumsum(sizes)])
                self._place(starts)
                self._start_from(starts, deadline, improve=False)
        with suppress(TimeOver):
            several = len(judge.instance.topology.kinds) > 1 and judge.metric != "peak_memory" and not frame.optional
            if several and self._start_by_kinds(deadline) and self._seats and not judge.target.counts("peak_memory"):
                return
            first: Price = by_memory if judge.metric == "peak_memory" else by_time
            cuts = smallest_maximum(view, frame, first, deadline)
            if judge.target.counts("peak_memory") and first is by_time:
                self._start_from_cuts(smallest_maximum(view, frame, by_memory, deadline), deadline)
            if cuts is None and self._pool is not None:  # a path cut is valid whether or not its plan fits
                cuts = smallest_maximum(view, frame.within(NO_LIMIT), by_time, deadline)
            self._start_from_cuts(cuts, deadline)

    def _place(self, cuts: IntArray) -> None:
        """Choose where ranks are placed if not otherwise: in order of the nodes, or on few nodes if that is faster.

        Only transfers tell the two apart, so that the first stages for which a plan is judged decide it for all.
        """
        judge = self._tools.judge
        topology, num_ranks = judge.instance.topology, judge.instance.num_ranks(len(cuts) - 1)
        if self._placed is not None or len(topology.kinds) > 1:
            return
        in_order, few = topology.in_order(num_ranks), topology.on_few_nodes(num_ranks)
        if in_order is None or few is None or (in_order == few).all():
            return
        plans = [Plan(stages_of(cuts), location) for location in (in_order, few)]
        first, other = (measures.iteration for measures in judge.measure_all(plans))
        self._placed = few if other < first else in_order

    def _start_by_kinds(self, deadline: Deadline) -> bool:
        """Start from plans that leave every kind of device what it can do; tell whether there were any."""
        tools, found = self._tools, False
        for cuts, location in plans_by_kind(tools.judge, tools.view, self._frame, self._seats, deadline):
            self._start_from(cuts, deadline, location=location)
            found = True
        return found

    def _start_from_cuts(self, cuts: IntArray | None, deadline: Deadline) -> None:
        """Start from a plan of intervals, its empty stages left out, if there is one."""
        if cuts is not None:
            self._start_from(cuts[np.flatnonzero(np.append(np.diff(cuts) > 0, True))], deadline)

    def _start_from(
        self, cuts: IntArray, deadline: Deadline, improve: bool = True, location: IntArray | None = None
    ) -> None:
        """Keep a plan of intervals and its paths, and improve it; its ranks are placed in order if not otherwise."""
        tools, judge = self._tools, self._tools.judge
        if location is None:
            num_ranks = judge.instance.num_ranks(len(cuts) - 1)
            location = judge.instance.topology.in_order(num_ranks) if self._placed is None else self._placed[:num_ranks]
        if location is None:
            return
        plan = Plan(stages_of(cuts), location)
        if self._pool is not None and tools.tactics.starting_cuts and plan.num_stages == self._frame.num_stages:
            starting_cuts(self._pool, judge.measure(plan).row, deadline)
        judged = judge.judge([plan])[0] if tools.tactics.warm_start else None
        if judged is not None:
            tools.plans.add(judged)
            if improve:
                self.improve(judged, True, deadline)

    def improve(self, judged: Judged, of_intervals: bool, deadline: Deadline) -> None:
        """Improve a plan by the moves that suit it: of boundaries where its stages are intervals, and of groups."""
        if of_intervals:
            judged = self.search.improve(judged, deadline)
        if not self._tools.judge.groups.total_order:
            self._moves.improve(judged, deadline)
