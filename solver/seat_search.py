"""The search over the steps of ``seat_network``, for one stage on every rank on places that are not all alike.

Where there are too many locations the search begins with kinds of device alone, and tells locations apart in what is
left.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from partita.solver.arrays import FloatArray
from partita.solver.branching import Search, Trials
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.kind_prices import KindPaths
from partita.solver.pruning import Cutoffs
from partita.solver.seat_network import SeatNetwork, Way
from partita.solver.seat_space import SeatSpace, sweep_seats
from partita.solver.unsuited import TooManySteps
from partita.solver.warm_start import Frame
from partita.solver.weighing import SAFETY, weigh

MOST_NAMED = 50
"""Placements of a single way, equal in makespan, up to which each is tried."""

WORTH_REFINING = 20_000
"""Steps of a network by kinds from which locations are told apart."""


class SeatSearch(Search[SeatNetwork]):
    """Raises the bound of a configuration with one stage on every rank; the parameters are those of any search.

    Parameters
    ----------
    space
        What to search.
    """

    def __init__(
        self,
        space: SeatSpace,
        view: IntervalView,
        frame: Frame,
        pool: CutPool,
        trials: Trials,
        allowed: Callable[[int], Cutoffs],
        most_networks: int | None = None,
    ) -> None:
        super().__init__(view, frame, pool, trials, allowed, most_networks)
        self._space = space

    def _networks(self, cutoffs: Cutoffs, deadline: Deadline) -> Iterator[SeatNetwork]:
        """Give a network that holds all plans within the cutoffs."""
        network = self._space.network(cutoffs, self._pool, deadline)
        if network is not None:
            yield network

    def _sweep(self, node: SeatNetwork, most: int, deadline: Deadline) -> None:
        """Rule out by every cut the steps through which all ways are longer than ``most``."""
        sweep_seats(node, self._pool, most, deadline)

    def _weigh(self, node: SeatNetwork, most: int, deadline: Deadline) -> None:
        """Rule out by the mean of the cuts that is longest on its shortest way, and try the ways met on the way."""
        paths = KindPaths.of(self._pool)

        def shortest(weights: FloatArray) -> tuple[float, Way]:
            return node.shortest_way(paths.mean(weights))

        weights, ways = weigh(len(paths), most, shortest, lambda way: node.lengths(paths, way), deadline)
        node.rule_out(paths.mean(weights), most * (1 + SAFETY), deadline)
        node.drop_dead_ends()
        if not node.empty:
            placed = [(way.starts, node.seating.locations(way.turns)) for way in ways]
            self._try({starts.tobytes() + location.tobytes(): (starts, location) for starts, location in placed})

    def _split(self, node: SeatNetwork, deadline: Deadline) -> list[SeatNetwork] | None:
        """Tell locations apart where few steps are left, or split a network in two; None for a single way."""
        if not node.seating.exact and node.size <= WORTH_REFINING:
            try:
                return [self._space.refined(node, deadline)]
            except TooManySteps:
                pass
        return _halves(node)

    def _undecided(self, node: SeatNetwork) -> int | None:
        """Give the least makespan of the plans that a single way stands for; None where they can be no news."""
        paths = KindPaths.of(self._pool)
        _, way = node.shortest_way(paths.mean(np.full(len(paths), 1 / len(paths))))
        if node.seating.exact:
            placed = list(islice(node.seating.every_location(way.turns), MOST_NAMED + 1))
            self._try({way.starts.tobytes() + location.tobytes(): (way.starts, location) for location in placed})
            if len(placed) <= MOST_NAMED and all(self._trials.settled(way.starts, location) for location in placed):
                return None
        return int(node.lengths(paths, way).max())


def _halves(node: SeatNetwork) -> list[SeatNetwork] | None:
    """Split the steps to the states after some rank by position, where these differ, or else by seat or by turn."""
    by_position = [node.intervals(rank)[1] for rank in range(node.ranks)]
    by_seat = [states.seat[step.target] for states, step in zip(node.states[1:], node.steps, strict=True)]
    by_turn = [step.turn[step.departure] for step in node.steps]
    for values in (by_position, by_seat, by_turn):
        rank = max(range(node.ranks), key=lambda rank: int(np.ptp(values[rank])))
        if np.ptp(values[rank]):
            upper = values[rank] > int(np.median(values[rank]))
            if not upper.any():
                upper = values[rank] == values[rank].max()
            return [node.only({rank: upper}), node.only({rank: ~upper})]
    return None
