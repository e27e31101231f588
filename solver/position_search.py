"""Branch and bound over where stages start in a chain of equal groups, for two stages on every rank.

However long such a chain is, a node is a linear program of a few columns. The plan nearest to its solution is measured;
it is the best one, or its path becomes a cut in all nodes that are left.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.branching import Trials
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.linear_bound import Box, Relaxed
from partita.solver.path_prices import price
from partita.solver.position_program import FRACTION, MAKESPAN, MEMORY, MOST, Division, PositionProgram
from partita.solver.program.placement import one_placement
from partita.solver.pruning import Cutoffs, reach
from partita.solver.rank_sums import two_tracks
from partita.solver.unsuited import Unsuited
from partita.solver.warm_start import Frame

TRIED = 50
"""Nodes of which the plan nearest to a solution in fractions is measured too."""

REPORTED = 64
"""Nodes after which the bound is given, and a plan is sought straight away."""

PROMISING = {MAKESPAN: {8: 0.1, REPORTED: 0.02}, MEMORY: {REPORTED: 0.05}}
"""The largest gap with which the search goes on, by what is minimized and after how many nodes.

Where it is larger fractions gain much over whole groups, and the other searches are faster.
"""

KNOWN = 4
"""Divisions of a kind after which their gain is foretold from those before."""

MOST_USELESS = 200
"""Plans that teach nothing before the search gives up: limits that the program does not know rule them out."""


@dataclass(order=True, slots=True)
class _Node:
    """A box that is left, with what is proven of it; of equal ones the deepest comes first.

    Attributes
    ----------
    bound
        The least that a plan in it can have in the column that is minimized.
    above
        Minus the number of boxes that it was divided from.
    number
        Tells nodes apart, in the order in which they were made.
    box
        Where its plans are.
    """

    bound: int
    above: int
    number: int
    box: Box = field(compare=False)


class _Gains:
    """How much the bound rose by dividing in some way, for every part of the solution that was moved."""

    def __init__(self) -> None:
        self._sums: dict[int, tuple[int, float, float]] = {}

    def note(self, division: Division, gains: tuple[float, float]) -> None:
        """Add what both sides of a division have gained."""
        number, one, two = self._sums.get(division.what, (0, 0.0, 0.0))
        parts = (gain / moved for gain, moved in zip(gains, division.moved, strict=True))
        self._sums[division.what] = number + 1, one + next(parts), two + next(parts)

    def foretold(self, division: Division) -> tuple[float, float] | None:
        """Give what both sides will gain; None where too little is known."""
        number, one, two = self._sums.get(division.what, (0, 0.0, 0.0))
        if number < KNOWN:
            return None
        return one / number * division.moved[0], two / number * division.moved[1]


class PositionSearch:
    """Raises the bound of a configuration.

    Parameters
    ----------
    view, frame, pool, trials, allowed
        As of ``Search``.
    objective
        ``MAKESPAN`` or ``MEMORY``.
    most_nodes
        Nodes that are looked at before the search gives up; None for any number.
    """

    def __init__(
        self,
        view: IntervalView,
        frame: Frame,
        pool: CutPool,
        trials: Trials,
        allowed: Callable[[int], Cutoffs],
        objective: int = MAKESPAN,
        most_nodes: int | None = None,
    ) -> None:
        self._view, self._frame, self._pool = view, frame, pool
        self._trials, self._allowed = trials, allowed
        self._objective, self._most_nodes = objective, most_nodes
        self._step = view.figures.step(view.instance) if objective == MAKESPAN else 0

    def prove(self, best: int, bound: int, resolution: Callable[[int], int], deadline: Deadline) -> Iterator[int]:
        """Give better and better bounds on the objective, up to that of the best plan if time allows.

        Parameters
        ----------
        best, bound
            The objective of the best plan, and what is proven already.
        resolution
            By how much a plan must be better to count.

        Raises
        ------
        TimeOver
            When the deadline passes.
        Unsuited
            Where no groups repeat or the makespan may be anything, where the program does not tell what is best, and
            where it would take too long: after so many nodes, or where the bound is still far away after the first.
        """
        instance, most = self._view.instance, best - resolution(best)
        usual = two_tracks(self._frame.pipeline) is not None and not self._frame.optional
        if not usual or not one_placement(instance.topology) or instance.ways.choosable:
            raise Unsuited
        cutoffs = self._allowed(most)
        if cutoffs.makespan is None or 2 * best > MOST:  # a sum that is kept may leave more than can be counted
            raise Unsuited
        frame = self._frame if self._objective == MAKESPAN else self._frame.within(most)
        window = reach(self._view, frame, cutoffs, self._pool, deadline)
        if window is None:
            yield most + 1
            return
        paths, prices = price(self._view, self._pool, *window)
        rest = cutoffs.bottleneck, self._objective, cutoffs.makespan
        program = PositionProgram(self._view, self._frame, window, prices, *rest)
        program.add_paths(paths)
        if self._objective == MAKESPAN:
            root = program.root((max(0, bound - self._step), 2 * best), (0, self._frame.capacity))
        else:
            root = program.root((0, cutoffs.makespan), (bound, 2 * best))
        given = best, resolution, self._step, deadline
        tree = _Tree(program, lambda starts: self._measured(program, window, starts), *given)
        yield from tree.search(root, self._most_nodes)

    def _measured(self, program: PositionProgram, window: tuple[IntArray, IntArray], starts: IntArray) -> int:
        """Measure a plan, and add its path to the program if it is news; give the best objective known."""
        nowhere = np.zeros(len(starts) - 2, dtype=bool)
        best = self._trials.measure([(starts, self._trials.placed(nowhere))])
        if len(self._pool) > program.num_paths:
            program.add_paths(price(self._view, self._pool, *window)[0])
        return best


class _Tree:
    """The nodes of a search.

    Parameters
    ----------
    program
        The program, which grows with the plans that are measured.
    measure
        Measures the plan with such starts of stages, shape (S + 1,), and gives the best objective known.
    best
        The objective of the best plan.
    resolution
        By how much a plan must be better to count.
    step
        How much more than the column that is minimized an objective is.
    deadline
        When ``TimeOver`` is raised.
    """

    def __init__(
        self,
        program: PositionProgram,
        measure: Callable[[IntArray], int],
        best: int,
        resolution: Callable[[int], int],
        step: int,
        deadline: Deadline,
    ) -> None:
        self._program, self._measure, self._deadline = program, measure, deadline
        self._best, self._resolution, self._step = best, resolution, step
        self._gains = _Gains()
        self._measured: set[bytes] = set()
        self._useless = 0

    def search(self, root: Box, most_nodes: int | None) -> Iterator[int]:
        """Give better and better bounds on the objective, at last that no plan is better than the best one."""
        waiting, numbers = [_Node(int(root.low[self._program.objective]), 0, 0, root)], count()
        for seen in count():
            node = heappop(waiting) if waiting else None
            if node is None or node.bound > self._most:
                break
            bound = node.bound + self._step
            if seen % REPORTED == 0:
                yield bound
            if seen == most_nodes or not self._promising(bound, seen):
                raise Unsuited
            if seen % REPORTED == 0:
                self._dive(node.box)
            for least, box in self._visit(node, tries=seen < TRIED):
                heappush(waiting, _Node(least, node.above - 1, next(numbers), box))
        yield self._most + self._step + 1

    def _promising(self, bound: int, seen: int) -> bool:
        """Tell whether a bound is near enough to the best plan after so many nodes."""
        gap = PROMISING[self._program.objective].get(seen, np.inf)
        return self._best - bound <= gap * self._best

    @property
    def _most(self) -> int:
        """The most in the column that is minimized of a plan that is better than the best one."""
        return self._best - self._resolution(self._best) - self._step

    def _visit(self, node: _Node, *, tries: bool) -> list[tuple[int, Box]]:
        """Give the parts of a node that are left, and what is proven of them."""
        relaxed = self._relaxed(node.box, node.bound)
        while relaxed.bound <= self._most and relaxed.values is not None:
            divisions, starts = list(self._program.divisions(relaxed)), self._program.starts(relaxed.values)
            if divisions and not tries and not self._looks_better(starts):
                return self._divided(relaxed, divisions)
            if not self._learned(starts):
                return self._divided(relaxed, divisions)
            relaxed = self._relaxed(relaxed.box, relaxed.bound)
        return [] if relaxed.bound > self._most else self._divided(relaxed, [])

    def _relaxed(self, box: Box, bound: int) -> Relaxed:
        """Bound the plans in a box of which something is proven."""
        self._deadline.check()
        found = self._program.bound.solve(box, self._most)
        return found if found.bound >= bound else Relaxed(bound, found.values, found.box)

    def _dive(self, box: Box) -> None:
        """Go on to the nearest whole numbers from a box, and measure where that ends."""
        relaxed = self._relaxed(box, 0)
        while relaxed.bound <= self._most and relaxed.values is not None:
            divisions = list(self._program.divisions(relaxed))
            if not divisions:
                self._learned(self._program.starts(relaxed.values))
                return
            nearest = min(divisions, key=lambda each: min(each.moved))
            relaxed = self._relaxed(nearest.parts[int(nearest.moved[1] < nearest.moved[0])], 0)

    def _looks_better(self, starts: IntArray) -> bool:
        """Tell whether a plan is better than the best one as far as all cuts know."""
        return self._program.objective == MAKESPAN and self._program.makespan(starts) <= self._most

    def _learned(self, starts: IntArray) -> bool:
        """Measure a plan; tell whether its path was news."""
        if (np.diff(starts) <= 0).any() or starts.tobytes() in self._measured:
            return False
        self._measured.add(starts.tobytes())
        known = self._program.num_paths
        self._best = min(self._best, self._measure(starts))
        news = self._program.num_paths > known
        self._useless += not news
        if self._useless > MOST_USELESS:
            raise Unsuited
        return news

    def _divided(self, relaxed: Relaxed, divisions: list[Division]) -> list[tuple[int, Box]]:
        """Divide a box in the way that promises most; a single plan has been measured."""
        best: tuple[float, list[tuple[int, Box]]] = (-1.0, [])
        for division in sorted(divisions, key=lambda each: -min(each.moved)):
            parts, gains = self._weighed(division, relaxed.bound)
            if len(parts) < 2:
                return parts
            worth = float(np.prod(np.maximum(gains, FRACTION * self._most)))
            if worth > best[0]:
                best = worth, parts
        if divisions:
            return best[1]
        halves = self._program.halves(relaxed.box)
        if halves is None:  # where rounding has kept the relaxation from any solution it was not measured yet
            self._learned(self._program.starts(relaxed.box.high.astype(np.float64)))
            return []
        return [(relaxed.bound, box) for box in halves.parts]

    def _weighed(self, division: Division, bound: int) -> tuple[list[tuple[int, Box]], tuple[float, float]]:
        """Give the parts of a division that are left, what is proven of them, and what both sides gain.

        Where enough is known of divisions of a kind the gain is foretold, else the parts are bounded.
        """
        gains = self._gains.foretold(division)
        if gains is not None:
            return [(bound, box) for box in division.parts], gains
        parts = [(self._relaxed(box, bound).bound, box) for box in division.parts]
        one, two = (float(min(least, self._most + 1) - bound) for least, _ in parts)
        self._gains.note(division, (one, two))
        return [part for part in parts if part[0] <= self._most], (one, two)
