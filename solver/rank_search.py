"""Branch and bound for schedules with two stages on every rank: over the steps of ``rank_network``.

A node is a network. All path cuts rule out steps by shortest ways; weights for the cuts, chosen so that the shortest
way of their mean is as long as possible, rule out more. The shortest ways are plans: each is measured, and is either
better than the best one or brings the cut that rules it out. A network that none of this empties is split in two.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from partita.solver.arrays import FloatArray, IntArray, Times
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.local_search import learn, stages_of
from partita.solver.plans import Judged, Plan
from partita.solver.program.placement import one_placement
from partita.solver.pruning import Cutoffs, by_rank, least_transfers, reach
from partita.solver.rank_network import RankNetwork
from partita.solver.rank_sums import two_tracks
from partita.solver.tools import Tools
from partita.solver.warm_start import Frame

TARGETS = (0.019, 0.01, 0.003, 0.0)
"""How far below the best plan the bound is proven, step by step."""

SWEEPS, WEIGHINGS, GREED = 3, 40, 30.0
"""Rounds of ruling out by all cuts; of adjusting the weights of cuts, and how strongly these follow their lengths."""

PORTIONS, FORGETTING = (16, 80), 0.3
"""Cuts are tried in portions, the most useful first: those whose shortest ways were long before, the last ones most."""

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

    def measure(self, starts: Sequence[IntArray]) -> int:
        """Keep plans given by the starts of their stages, and their paths; give the best objective known."""
        judge, plans = self._tools.judge, [Plan(stages_of(each), self._location) for each in starts]
        measured = judge.measure_all(plans, with_paths=True)
        for plan, measures in zip(plans, measured, strict=True):
            self._tools.plans.add(judge.assess(plan, measures))
        learn(self._pool, judge, measured)
        return self._objective

    @property
    def _objective(self) -> int:
        """The best objective known."""
        found = self._tools.plans.best(self._ranked)
        return self._best.objective if found is None else found.objective

    def settled(self, starts: IntArray) -> bool:
        """Tell whether no placement of a plan can be news: there is but one, and it is allowed for nothing better."""
        judge = self._tools.judge
        judged = judge.judge([Plan(stages_of(starts), self._location)])[0]
        known = judged is None or judged.signature in self._ranked or judged.objective >= self._objective
        return known and one_placement(judge.instance.topology)


class RankSearch:
    """Raises the bound of a configuration with two stages on every rank.

    Parameters
    ----------
    view, frame, pool
        Costs of intervals, the stages, and the cuts; more are added by the trials.
    trials
        Measures plans.
    allowed
        Gives the cutoffs of plans with an objective up to so much.
    """

    def __init__(
        self,
        view: IntervalView,
        frame: Frame,
        pool: CutPool,
        trials: Trials,
        allowed: Callable[[int], Cutoffs],
    ) -> None:
        self._view, self._frame, self._pool = view, frame, pool
        self._trials, self._allowed = trials, allowed
        self._looped = two_tracks(frame.pipeline) == "looped"
        self._work = np.array(view.passes, dtype=np.int64)
        self._best = 0
        self._seen: set[bytes] = set()
        self._usefulness: FloatArray = np.zeros(0)

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
                least = self._least(most, deadline)
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
        cutoffs = self._allowed(most)
        assert cutoffs.makespan is not None
        after = most - cutoffs.makespan
        window = reach(self._view, self._frame, cutoffs, self._pool, deadline)
        if window is None:
            return most + 1
        least, ranks = most + 1, self._frame.pipeline.num_ranks
        starts = range(int(window[0][ranks]), int(window[1][ranks]) + 1) if self._looped else range(1)
        for start in starts:
            low, high = window[0].copy(), window[1].copy()
            if self._looped:
                low[ranks] = high[ranks] = start
            tracks = by_rank(self._view, self._frame, cutoffs, self._pool, (low, high))
            corridor = tracks.corridor(deadline)
            if corridor.empty:
                continue
            network = RankNetwork.within(self._looped, corridor, tracks.limits, start)
            window_here = corridor.low, corridor.high
            least = min(least, after + self._search(network, cutoffs.makespan, window_here, deadline))
        return least

    def _search(self, network: RankNetwork, most: int, window: tuple[IntArray, IntArray], deadline: Deadline) -> int:
        """Empty a network, splitting it where that is needed; give the least makespan of what is left undecided.

        A way is left undecided where no cut is longer than ``most`` whatever the placement.
        """
        waiting, least = [network], most + 1
        while waiting:
            deadline.check()
            node = waiting.pop()
            progress = True
            while progress and not node.empty:
                deadline.check()
                progress = self._reduce(node, most, window, deadline)
            if node.empty:
                continue
            halves = _split(node)
            if halves is None:
                starts = node.places([0] * (node.ranks + 1))
                if not self._trials.settled(starts):
                    rows, base = self._cuts(window)
                    least = min(least, int(self._lengths(rows, base, starts).max()))
            else:
                waiting += halves
        return least

    def _cuts(self, window: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray]:
        """Give the passes of all cuts, shape (cuts, K, S), and the least that their transfers take, shape (cuts,)."""
        return np.stack(self._pool.passes, axis=1), least_transfers(self._view, self._pool, *window)

    def _reduce(self, node: RankNetwork, most: int, window: tuple[IntArray, IntArray], deadline: Deadline) -> bool:
        """Rule out steps and try the shortest ways; tell whether there was anything new."""
        size, known = node.size, len(self._pool)
        rows, base = self._cuts(window)
        self._usefulness = np.append(self._usefulness, np.ones(len(rows) - len(self._usefulness)))
        for _ in range(SWEEPS):
            before = node.size
            order = np.argsort(-self._usefulness, kind="stable")
            for chosen in np.split(order, [number for number in PORTIONS if number < len(order)]):
                lengths = node.rule_out(node.costs(rows[chosen], self._work, base[chosen]), most, deadline)
                node.drop_dead_ends()
                self._usefulness[chosen] += FORGETTING * (lengths / max(most, 1) - self._usefulness[chosen])
                if node.empty:
                    return True
            if node.size > 0.9 * before:
                break
        self._weigh(node, rows, base, most, deadline)
        return node.empty or node.size < 0.9 * size or len(self._pool) > known

    def _weigh(self, node: RankNetwork, rows: IntArray, base: IntArray, most: int, deadline: Deadline) -> None:
        """Look for the mean of the cuts that is longest on its shortest way; rule out by it, and try these ways."""
        weights: FloatArray = np.full(len(rows), 1 / len(rows))
        work = self._work.astype(np.float64)
        longest, best = -np.inf, weights
        ways: dict[bytes, IntArray] = {}
        for _ in range(WEIGHINGS):
            deadline.check()
            costs = node.costs(np.tensordot(weights, rows, 1)[None], work, np.array([weights @ base]))
            length, states = node.shortest_way(costs)
            if length > longest:
                longest, best = length, weights
            if length > most * (1 + SAFETY):
                break
            starts = node.places(states)
            ways.setdefault(starts.tobytes(), starts)
            lengths = self._lengths(rows, base, starts)
            weights = weights * np.exp(GREED * (lengths - lengths.max()) / max(most, 1))
            weights = weights / weights.sum()
        costs = node.costs(np.tensordot(best, rows, 1)[None], work, np.array([best @ base]))
        node.rule_out(costs, most * (1 + SAFETY), deadline)
        node.drop_dead_ends()
        fresh = [starts for key, starts in ways.items() if key not in self._seen]
        self._seen.update(ways)
        if fresh and not node.empty:
            self._best = min(self._best, self._trials.measure(fresh))

    def _lengths(self, rows: IntArray, base: IntArray, starts: IntArray) -> Times:
        """Give the lengths of all cuts for stages that start so, transfers at their least, shape (cuts,)."""
        loads = np.diff(self._work[:, starts], axis=1)
        return np.tensordot(rows, loads, 2) + base


def _split(node: RankNetwork) -> list[RankNetwork] | None:
    """Split the states after some rank in two, by the track on which they differ most; None for a single way."""
    spread = [
        max((int(np.ptp(each[rank])), track, rank) for track, each in enumerate((node.first, node.second)))
        for rank in range(node.ranks + 1)
    ]
    width, track, rank = max(spread)
    if width == 0:
        return None
    positions = (node.first, node.second)[track][rank]
    upper = positions > int(np.median(positions))
    if not upper.any():
        upper = positions == positions.max()
    return [node.without(rank, upper), node.without(rank, ~upper)]
