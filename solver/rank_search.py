"""Branch and bound over the steps of ``rank_network``, for schedules with one or two stages on every rank.

A node is a network. All path cuts rule out steps by shortest ways; weights for the cuts, chosen so that the shortest
way of their mean is as long as possible, rule out more. The shortest ways are plans: each is measured, and is either
better than the best one or brings the cut that rules it out. A network that none of this empties is split in two.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from partita.solver.arrays import BoolArray, FloatArray, IntArray
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.local_search import learn, stages_of
from partita.solver.path_prices import price
from partita.solver.plans import Judged, Plan
from partita.solver.program.placement import one_placement
from partita.solver.pruning import Cutoffs, by_rank, prune, reach
from partita.solver.rank_network import RankNetwork, TooManySteps
from partita.solver.rank_sums import two_tracks
from partita.solver.sweeping import WORTH_ANOTHER, sweep
from partita.solver.tools import Tools
from partita.solver.warm_start import Frame

TARGETS = (0.019, 0.01, 0.003, 0.0)
"""How far below the best plan the bound is proven, step by step."""

WEIGHINGS, GREED = 40, 30.0
"""Rounds of adjusting the weights of cuts, and how strongly these follow their lengths."""

MOST_UNDECIDED = 4
"""Single ways that no cut rules out before the search gives up."""

SAFETY = 1e-11
"""By which fraction a weighted length in floating point must exceed what is allowed, to count as longer."""


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
        plans = judge.with_options([Plan(stages_of(starts), location) for starts, location in ways])
        measured = judge.measure_all(plans, with_paths=True)
        for plan, measures in zip(plans, measured, strict=True):
            self._tools.plans.add(judge.assess(plan, measures))
        learn(self._pool, measured)
        return self._objective

    @property
    def _objective(self) -> int:
        """The best objective known."""
        found = self._tools.plans.best(self._ranked)
        return self._best.objective if found is None else found.objective

    def settled(self, starts: IntArray) -> bool:
        """Tell whether no placement or recompute of a plan can be news: there is but one, and nothing better."""
        judge = self._tools.judge
        judged = judge.judge([Plan(stages_of(starts), self._location)])[0]
        known = judged is None or judged.signature in self._ranked or judged.objective >= self._objective
        return known and one_placement(judge.instance.topology) and not judge.instance.ways.choosable


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


class RankSearch:
    """Raises the bound of a configuration with one or two stages on every rank.

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
        instance = view.instance
        self._step = int(view.figures.time(instance.factors.step_s)) if instance.trains else 0
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

    def _networks(self, cutoffs: Cutoffs, deadline: Deadline) -> Iterator[RankNetwork]:
        """Give networks that hold all plans within the cutoffs."""
        view, frame, pool = self._view, self._frame, self._pool
        shape = two_tracks(frame.pipeline)
        if shape is None:
            left = prune(view, frame, cutoffs, pool, deadline)
            if left is not None and left.allowed is None:
                raise TooManySteps
            if left is not None and left.allowed is not None:
                yield RankNetwork.of_intervals(left.low, left.high, left.allowed)
            return
        window = reach(view, frame, cutoffs, pool, deadline)
        if window is None:
            return
        looped, ranks = shape == "looped", frame.pipeline.num_ranks
        for start in range(int(window[0][ranks]), int(window[1][ranks]) + 1) if looped else range(1):
            low, high = window[0].copy(), window[1].copy()
            if looped:
                low[ranks] = high[ranks] = start
            tracks = by_rank(view, frame, cutoffs, pool, (low, high))
            corridor = tracks.corridor(deadline)
            if not corridor.empty:
                yield RankNetwork.within(looped, corridor, tracks.limits, start)

    def _search(self, network: RankNetwork, most: int, deadline: Deadline) -> int:
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
            halves = _split(node)
            if halves is None:
                starts = node.places([0] * (node.ranks + 1))
                if not self._trials.settled(starts):
                    undecided += 1
                    if undecided > MOST_UNDECIDED:
                        raise _Undecided
                    paths, prices = price(self._view, self._pool, *node.window())
                    least = min(least, int(prices.lengths(paths, starts).max()))
            else:
                waiting += halves
        return least

    def _reduce(self, node: RankNetwork, most: int, deadline: Deadline) -> bool:
        """Rule out steps and try the shortest ways; tell whether there was anything new."""
        size, known = node.size, len(self._pool)
        sweep(node, self._view, self._pool, most, deadline)
        if not node.empty:
            self._weigh(node, most, deadline)
        return node.empty or node.size < WORTH_ANOTHER * size or len(self._pool) > known

    def _weigh(self, node: RankNetwork, most: int, deadline: Deadline) -> None:
        """Look for the mean of the cuts that is longest on its shortest way; rule out by it, and try these ways."""
        paths, prices = price(self._view, self._pool, *node.window())
        weights: FloatArray = np.full(len(paths.base), 1 / len(paths.base))
        longest, best = -np.inf, weights
        ways: dict[bytes, tuple[IntArray, IntArray]] = {}
        for _ in range(WEIGHINGS):
            deadline.check()
            mean = prices.mean(paths, weights)
            length, states = node.shortest_way(node.costs(mean, prices))
            if length > longest:
                longest, best = length, weights
            if length > most * (1 + SAFETY):
                break
            starts = node.places(states)
            crosses = prices.crossings.cheapest(mean.crossing[0])
            ways.setdefault(starts.tobytes() + crosses.tobytes(), (starts, self._trials.placed(crosses)))
            lengths = prices.lengths(paths, starts, crosses)
            weights = weights * np.exp(GREED * (lengths - lengths.max()) / max(most, 1))
            weights = weights / weights.sum()
        node.rule_out(node.costs(prices.mean(paths, best), prices), most * (1 + SAFETY), deadline)
        node.drop_dead_ends()
        fresh = [way for key, way in ways.items() if key not in self._seen]
        self._seen.update(ways)
        if fresh and not node.empty:
            self._best = min(self._best, self._trials.measure(fresh))


def _split(node: RankNetwork) -> list[RankNetwork] | None:
    """Split the states after some rank in two, by the track on which they differ most; None for a single way."""
    width, track, rank = max(
        (int(np.ptp(places)), track, rank)
        for track, each in enumerate(node.tracks)
        for rank, places in enumerate(each.places)
    )
    if width == 0:
        return None
    positions = node.tracks[track].places[rank]
    upper = positions > int(np.median(positions))
    if not upper.any():
        upper = positions == positions.max()
    return [node.without(rank, upper), node.without(rank, ~upper)]
