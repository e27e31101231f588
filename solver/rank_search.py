"""The search over the steps of ``rank_network``, for schedules with one or two stages on every rank."""

from collections.abc import Iterator

import numpy as np

from partita.solver.arrays import BoolArray, FloatArray, Times
from partita.solver.branching import Search
from partita.solver.deadline import Deadline
from partita.solver.path_prices import price
from partita.solver.pruning import Cutoffs, by_rank, prune, reach
from partita.solver.rank_network import RankNetwork
from partita.solver.rank_sums import TwoTracks, two_tracks
from partita.solver.sweeping import sweep
from partita.solver.unsuited import TooManySteps
from partita.solver.weighing import SAFETY, weigh

WORTH_SHARPENING = 2_000
"""Steps of a network from which it is worth to count exactly how much longer recompute makes them."""


class RankSearch(Search[RankNetwork]):
    """Raises the bound of a configuration with one or two stages on every rank."""

    def _networks(self, cutoffs: Cutoffs, deadline: Deadline) -> Iterator[RankNetwork]:
        """Give networks that hold all plans within the cutoffs."""
        view, frame, pool = self._view, self._frame, self._pool
        shape = two_tracks(frame.pipeline)
        if shape is None:
            left = prune(view, frame, cutoffs, pool, deadline)
            if left is not None and left.allowed is None:
                raise TooManySteps
            if left is not None and left.allowed is not None:
                yield RankNetwork.of_intervals(left.low, left.high, left.allowed, left.longer)
            return
        window = reach(view, frame, cutoffs, pool, deadline)
        if window is None:
            return
        looped, ranks = shape == "looped", frame.pipeline.num_ranks
        limits = by_rank(view, frame, cutoffs, pool, window).limits
        waiting = [window]
        while waiting:
            deadline.check()
            corridor = TwoTracks(shape, limits, *waiting.pop()).corridor()
            if corridor.empty:
                continue
            first, last = int(corridor.low[ranks]), int(corridor.high[ranks])
            if first == last or not looped:
                yield RankNetwork.within(looped, corridor, limits, first)
                continue
            for begin, end in (((first + last) // 2 + 1, last), (first, (first + last) // 2)):
                low, high = corridor.low.copy(), corridor.high.copy()
                low[ranks], high[ranks] = begin, end
                waiting.append((low, high))

    def _sweep(self, node: RankNetwork, most: int, deadline: Deadline) -> None:
        """Rule out by every cut the steps through which all ways are longer than ``most``."""
        sweep(node, self._view, self._pool, most, deadline)

    def _weigh(self, node: RankNetwork, most: int, deadline: Deadline) -> None:
        """Rule out by the mean of the cuts that is longest on its shortest way, and try the ways met on the way."""
        paths, prices = price(self._view, self._pool, *node.window())

        def shortest(weights: FloatArray) -> tuple[float, tuple[list[int], BoolArray]]:
            mean = prices.mean(paths, weights)
            length, states = node.shortest_way(node.costs(mean, prices))
            return length, (states, prices.crossings.cheapest(mean.crossing[0]))

        def lengths(way: tuple[list[int], BoolArray]) -> Times:
            return node.lengths(paths, prices, *way)

        weights, ways = weigh(len(paths.base), most, shortest, lengths, deadline)
        placed = [(node.places(states), self._trials.placed(crosses)) for states, crosses in ways]
        node.rule_out(node.costs(prices.mean(paths, weights), prices), most * (1 + SAFETY), deadline)
        node.drop_dead_ends()
        if not node.empty:
            self._try({starts.tobytes() + location.tobytes(): (starts, location) for starts, location in placed})

    def _undecided(self, node: RankNetwork) -> int | None:
        """Give the least makespan of the plans that a single way stands for; None where they can be no news."""
        only = [0] * (node.ranks + 1)
        if self._trials.settled(node.places(only)):
            return None
        return int(node.lengths(*price(self._view, self._pool, *node.window()), only).max())

    def _split(self, node: RankNetwork, deadline: Deadline) -> list[RankNetwork] | None:
        """Split the states after some rank in two, by the track on which they differ most; None for a single way.

        Where few steps are left, what recompute makes of them is counted exactly first.
        """
        saving = self._view.saving
        if saving is not None and node.longer is not None and not node.longer.exact and node.size <= WORTH_SHARPENING:
            return [node.sharpened(saving)]
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
