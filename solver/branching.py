"""Branch and bound over networks of all that is left to decide, whatever their states and steps are.

A node is a network. All path cuts rule out steps by shortest ways; weights for the cuts, chosen so that the shortest
way of their mean is as long as possible, rule out more. The shortest ways are plans: each is measured, and is either
better than the best one or brings the cut that rules it out. A network that none of this empties is split in two.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from partita.solver.arrays import BoolArray, IntArray
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.local_search import learn, stages_of
from partita.solver.plans import Judged, Plan
from partita.solver.program.placement import one_placement
from partita.solver.pruning import Cutoffs
from partita.solver.sweeping import WORTH_ANOTHER, Network
from partita.solver.tools import Tools
from partita.solver.unsuited import TooManySteps
from partita.solver.warm_start import Frame

TARGETS = (0.06, 0.019, 0.01, 0.003, 0.0)
"""How far below the best plan the bound is proven, step by step."""

MOST_UNDECIDED = 4
"""Single ways that no cut rules out before the search gives up."""


class Trials:
    """Measures plans that the search comes upon.

    Parameters
    ----------
    tools, pool
        Where the plans and the cuts go.
    best, excluded
        The best plan so far, and plans that do not count.
    """

    def __init__(self, tools: Tools, pool: CutPool, best: Judged, excluded: Sequence[Judged]) -> None:
        self._tools, self._pool, self._best = tools, pool, best
        self._ranked = {each.signature for each in excluded}
        topology, num_stages = tools.judge.instance.topology, pool.graph.num_stages
        location = topology.in_order(pool.graph.pipeline.num_ranks)
        if best.variant == tools.judge.variant and best.plan.num_stages == num_stages:
            location = best.plan.location
        assert location is not None, "configurations have no more ranks than slots"
        self._location = location

    def placed(self, crosses: BoolArray) -> IntArray:
        """Place ranks so that these boundaries are between nodes, if there is room; else like the best plan."""
        location = None
        if self._pool.graph.pipeline.one_each:
            runs = np.diff(np.concatenate([[0], np.flatnonzero(crosses) + 1, [len(crosses) + 1]]))
            location = self._tools.judge.instance.topology.in_runs(runs.tolist())
        return self._location if location is None else location

    def measure(self, ways: Sequence[tuple[IntArray, IntArray]]) -> int:
        """Keep plans given by the starts of their stages and a placement, and their paths; give the best objective."""
        judge = self._tools.judge
        plans = judge.with_options([Plan(stages_of(starts), location) for starts, location in ways], exact=True)
        measured = judge.measure_all(plans, with_paths=True)
        for plan, measures in zip(plans, measured, strict=True):
            self._tools.plans.add(judge.assess(plan, measures))
        learn(self._pool, measured)
        return self.objective

    @property
    def objective(self) -> int:
        """The best objective known of plans that count."""
        found = self._tools.plans.best(self._ranked)
        return self._best.objective if found is None else found.objective

    def settled(self, starts: IntArray, location: IntArray | None = None) -> bool:
        """Tell whether a plan can be no news, whatever its recompute and, unless it is given, its placement."""
        judge = self._tools.judge
        placed = location is not None or one_placement(judge.instance.topology)
        judged = judge.judge([Plan(stages_of(starts), self._location if location is None else location)])[0]
        known = judged is None or judged.signature in self._ranked or judged.objective >= self.objective
        return known and placed and not judge.instance.ways.choosable


class _Better(Exception):
    """Raised when a plan was found that is as good as what is sought: the search starts again for a better one."""


SMALL_PROGRAM, FEW_NETWORKS = 150, 100
"""A program of up to so many thresholds is soon solved, so that the search by ranks gets but a few networks before it.

Equal layers make many plans equal, which the search by ranks tries one by one.
"""


def networks_worth(size: int) -> int | None:
    """Give how many networks are worth looking at before a program of so many thresholds; None for any number."""
    return FEW_NETWORKS if size <= SMALL_PROGRAM else None


class _Undecided(Exception):
    """Raised when cuts do not tell what is best: placement decides, which the program knows more about."""


Node = TypeVar("Node", bound=Network)


class Search(ABC, Generic[Node]):
    """Raises the bound of a configuration.

    Parameters
    ----------
    view, frame, pool
        Costs of intervals, the stages, and the cuts; more are added by the trials.
    trials
        Measures plans.
    allowed
        Gives the cutoffs of plans with an objective up to so much.
    most_networks
        Networks that are looked at for one bound before it is given up; None for any number.
    """

    def __init__(
        self,
        view: IntervalView,
        frame: Frame,
        pool: CutPool,
        trials: Trials,
        allowed: Callable[[int], Cutoffs],
        most_networks: int | None = None,
    ) -> None:
        self._most_networks = most_networks
        self._view, self._frame, self._pool = view, frame, pool
        self._trials, self._allowed = trials, allowed
        self._step = view.figures.step(view.instance)
        self._best = self._sought = 0
        self._seen: set[bytes] = set()

    def prove(self, best: int, bound: int, resolution: Callable[[int], int], deadline: Deadline) -> Iterator[int]:
        """Give better and better bounds on the objective, up to that of the best plan if time allows.

        Without any cut to start from there are none.

        Parameters
        ----------
        best, bound
            The objective of the best plan, and what is proven already.
        resolution
            By how much a plan must be better to count.

        Raises
        ------
        TimeOver, TooManySteps
            When the deadline passes, or when there are more steps than can be looked at.
        """
        self._best = best
        if not len(self._pool):
            return
        for target in TARGETS:
            while True:
                before = self._best
                most = before - max(int(before * target), resolution(before))
                if most < bound:
                    break
                try:
                    least = self._least(most, deadline)
                except _Better:
                    continue
                except _Undecided:
                    return
                bound = max(bound, min(least, self._best))
                yield bound
                if least <= most:
                    return
                if self._best == before:
                    break

    def _least(self, most: int, deadline: Deadline) -> int:
        """Give a bound on the objective of all plans but those that were measured, if it is at most ``most``.

        Beyond it stands for: there is no further plan with at most this objective.
        """
        self._sought = most
        cutoffs = self._allowed(most)
        assert cutoffs.makespan is not None
        least = most + 1
        for network in self._networks(cutoffs, deadline):
            found = self._search(network, cutoffs.makespan, deadline)
            if found <= cutoffs.makespan:  # what follows the makespan depends on the plan, but for the step
                least = min(least, found + self._step)
        return least

    def _search(self, network: Node, most: int, deadline: Deadline) -> int:
        """Empty a network, splitting it where that is needed; give the least makespan of what is left undecided.

        A way is left undecided where no cut is longer than ``most`` whatever the placement.
        """
        waiting, least, undecided, seen = [network], most + 1, 0, 0
        while waiting:
            deadline.check()
            seen += 1
            if self._most_networks is not None and seen > self._most_networks:
                raise TooManySteps
            node = waiting.pop()
            progress = True
            while progress and not node.empty:
                deadline.check()
                progress = self._reduce(node, most, deadline)
                if self._best <= self._sought:
                    raise _Better
            if node.empty:
                continue
            halves = self._split(node, deadline)
            if halves is not None:
                waiting += halves
                continue
            makespan = self._undecided(node)
            if makespan is not None:
                undecided += 1
                if undecided > MOST_UNDECIDED:
                    raise _Undecided
                least = min(least, makespan)
        return least

    @abstractmethod
    def _networks(self, cutoffs: Cutoffs, deadline: Deadline) -> Iterator[Node]:
        """Give networks that hold all plans within the cutoffs."""

    @abstractmethod
    def _sweep(self, node: Node, most: int, deadline: Deadline) -> None:
        """Rule out by every cut the steps through which all ways are longer than ``most``."""

    @abstractmethod
    def _weigh(self, node: Node, most: int, deadline: Deadline) -> None:
        """Rule out by the mean of the cuts that is longest on its shortest way, and try the ways met on the way."""

    @abstractmethod
    def _split(self, node: Node, deadline: Deadline) -> list[Node] | None:
        """Split a network in two; None for a single way."""

    @abstractmethod
    def _undecided(self, node: Node) -> int | None:
        """Give the least makespan of the plans that a single way stands for; None where they can be no news."""

    def _reduce(self, node: Node, most: int, deadline: Deadline) -> bool:
        """Rule out steps and try the shortest ways; tell whether there was anything new."""
        size, known = node.size, len(self._pool)
        self._sweep(node, most, deadline)
        if not node.empty:
            self._weigh(node, most, deadline)
        return node.empty or node.size < WORTH_ANOTHER * size or len(self._pool) > known

    def _try(self, ways: dict[bytes, tuple[IntArray, IntArray]]) -> None:
        """Measure plans that were not met before, by a key that tells them apart."""
        fresh = [way for key, way in ways.items() if key not in self._seen]
        self._seen.update(ways)
        if fresh:
            self._best = min(self._best, self._trials.measure(fresh))
