"""All plans of one stage on every rank, for several kinds of device or path: their network, and first plans."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from partita.solver.arrays import BoolArray, IntArray
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.kind_prices import KindPaths, prices_by_kind, views_by_kind
from partita.solver.pruning import Cutoffs, Window, fitting, prune
from partita.solver.seat_network import SeatNetwork
from partita.solver.seats import Seating
from partita.solver.sweeping import Ruling, sweep_by
from partita.solver.unsuited import TooManySteps
from partita.solver.warm_start import NO_LIMIT, Frame

MOST_EXACT, MOST_STEPS = 1_000_000, 6_000_000
"""Steps up to which locations are told apart, and up to which kinds of device are."""

SLACKS = (0.0, 0.0025, 0.005, 0.01, 0.02, 0.05)
"""By how much the longest stage of a first plan may exceed the least possible one, so that all together are shorter."""


class SeatSpace:
    """Plans by where their stages start and on what they run.

    Parameters
    ----------
    view, frame
        Costs of intervals, and the stages: one on every rank. Nothing may go by the host.
    capacities
        Bytes that a rank may use on every kind of device, shape (kinds,).
    """

    def __init__(self, view: IntervalView, frame: Frame, capacities: IntArray) -> None:
        self._view, self._frame = view, frame
        self._topology = view.instance.topology
        self._of_kinds = views_by_kind(view)
        self._compute = np.array([each.compute for each in self._of_kinds], dtype=np.int64)
        self._capacities, self._reserves = capacities, self._topology.reserves
        self._seatings: dict[bool, Seating | None] = {}

    def network(
        self, cutoffs: Cutoffs, pool: CutPool | None, deadline: Deadline, memory: int = NO_LIMIT
    ) -> SeatNetwork | None:
        """Give a network of all plans within cutoffs; None where there are none.

        Locations are told apart, or where that would make too many steps kinds of device, if there are several.

        Parameters
        ----------
        cutoffs, pool
            The longest makespan and bottleneck, and the path cuts that tell what is longer.
        memory
            The most bytes on any device.

        Raises
        ------
        TooManySteps
            When there are too many even so.
        TimeOver
            When the deadline passes.
        """
        most = (np.minimum(self._capacities, memory) - self._reserves).tolist()
        frames = [self._frame.within(each + int(self._reserves.min())) for each in most]
        left = prune(self._view, max(frames, key=lambda each: each.capacity), cutoffs, pool, deadline)
        if left is None:
            return None
        if left.allowed is None:
            raise TooManySteps
        window = left.low, left.high
        allowed = []
        for of_kind, frame in zip(self._of_kinds, frames, strict=True):
            fits, _ = fitting(of_kind, frame, cutoffs, window, deadline)
            allowed.append([own & every for own, every in zip(fits, left.allowed, strict=True)])
        exact = self._seating(False, deadline)
        if exact is not None:
            with suppress(TooManySteps):
                return self._made(exact, window, allowed, MOST_EXACT)
        by_kind = self._seating(True, deadline) if len(self._of_kinds) > 1 else None
        if by_kind is None:
            raise TooManySteps
        return self._made(by_kind, window, allowed, MOST_STEPS)

    def _seating(self, by_kind: bool, deadline: Deadline) -> Seating | None:
        """Give the seats of all ranks, made once; None where there are too many."""
        if by_kind not in self._seatings:
            try:
                self._seatings[by_kind] = Seating(self._topology, self._frame.num_stages, deadline, by_kind)
            except TooManySteps:
                self._seatings[by_kind] = None
        return self._seatings[by_kind]

    def window(self, cutoffs: Cutoffs, pool: CutPool | None, deadline: Deadline, memory: int) -> Window | None:
        """Give where the stages of a plan within cutoffs can start, as ``pruning.prune`` does, kind by kind.

        Raises
        ------
        TimeOver
            When the deadline passes.
        """
        try:
            network = self.network(cutoffs, pool, deadline, memory)
        except TooManySteps:
            return prune(self._view, self._frame.within(memory), cutoffs, pool, deadline)
        if network is not None and pool is not None and cutoffs.makespan is not None and len(pool):
            sweep_seats(network, pool, cutoffs.makespan, deadline)
        if network is None or network.empty:
            return None
        low, high = network.window()
        return Window(low, high, [np.any(each, axis=0) for each in zip(*network.allowed(), strict=True)])

    def refined(self, network: SeatNetwork, deadline: Deadline) -> SeatNetwork:
        """Tell locations apart in a network by kinds.

        Raises
        ------
        TooManySteps, TimeOver
            When there are too many, or the deadline passes.
        """
        allowed = network.allowed()
        usable = np.array([[each.any() for each in of_kind] for of_kind in allowed]).T
        seating = Seating(self._topology, network.ranks, deadline, usable=usable)
        return self._made(seating, network.window(), allowed, MOST_STEPS)

    def _made(
        self, seating: Seating, window: tuple[IntArray, IntArray], allowed: list[list[BoolArray]], most_steps: int
    ) -> SeatNetwork:
        prices = prices_by_kind(self._view, self._of_kinds, seating)
        return SeatNetwork.of_intervals(seating, prices, window, allowed, most_steps)

    def first_plans(self, deadline: Deadline) -> Iterator[tuple[IntArray, IntArray]]:
        """Give plans whose longest stage is as short as possible, or a little longer and all stages short together.

        Each is where its stages start, and the end, shape (S + 1,), and the location of every rank.

        Raises
        ------
        TooManySteps, TimeOver
            As ``network`` does.
        """
        network = self.network(Cutoffs(None, None), None, deadline)
        if network is None or network.empty:
            return
        costs = [self._computing(network, rank) for rank in range(network.ranks)]
        least, way = network.smallest_maximum(costs)
        yield way.starts, network.seating.locations(way.turns)
        once = KindPaths.once(len(self._view.passes), len(self._view.least), network.ranks)
        for slack in SLACKS:
            deadline.check()
            most = least * (1 + slack)
            _, way = network.only({rank: each <= most for rank, each in enumerate(costs)}).shortest_way(once)
            yield way.starts, network.seating.locations(way.turns)

    def _computing(self, network: SeatNetwork, rank: int) -> IntArray:
        """Give the computing time of every step of a rank for one microbatch."""
        kinds, (starts, ends) = network.kinds(rank), network.intervals(rank)
        return np.asarray(self._compute[kinds, ends] - self._compute[kinds, starts])


def sweep_seats(network: SeatNetwork, pool: CutPool, most: int, deadline: Deadline) -> None:
    """Rule out the steps of a network with which some path is longer than ``most``, and what leads nowhere then.

    Raises
    ------
    TimeOver
        When the deadline passes.
    """

    def ruling() -> Ruling:
        paths = KindPaths.of(pool)
        return lambda chosen: network.rule_out(paths.part(chosen), most, deadline)

    sweep_by(network, pool, most, ruling)


def seat_space(view: IntervalView, frame: Frame, capacities: IntArray) -> SeatSpace | None:
    """Give the plans of one stage on every rank, where kinds, paths or sizes of nodes differ; None elsewhere."""
    instance = view.instance
    topology = instance.topology
    room = {len(location.slots) for location in topology.locations}
    several = max(map(len, (instance.ways.kinds, topology.inside_classes, topology.between_classes, room))) > 1
    alone = frame.pipeline.one_each and not frame.optional
    return SeatSpace(view, frame, capacities) if several and alone and instance.routing != "host" else None
