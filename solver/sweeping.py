"""Ruling out by all path cuts what no plan within a makespan can contain, the most useful cuts first."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from partita.solver.arrays import IntArray, Times
from partita.solver.cuts import CutPool
from partita.solver.deadline import Deadline
from partita.solver.intervals import IntervalView
from partita.solver.path_prices import price
from partita.solver.rank_network import RankNetwork

SWEEPS, WORTH_ANOTHER = 3, 0.9
"""Most rounds, and the part of the steps that a round must leave at most for another one."""

PORTIONS, FORGETTING = (4, 16, 80), 0.3
"""Cuts are tried in portions, the most useful first: those whose shortest ways were long before, the last ones most."""


def sweep(network: RankNetwork, view: IntervalView, pool: CutPool, most: int, deadline: Deadline) -> None:
    """Rule out the steps of a network with which some path is longer than ``most``, and what leads nowhere then.

    Raises
    ------
    TimeOver
        When the deadline passes.
    """

    def ruling() -> Ruling:
        paths, prices = price(view, pool, *network.window())
        return lambda chosen: network.rule_out(network.costs(paths.part(chosen), prices), most, deadline)

    sweep_by(network, pool, most, ruling)


class Network(Protocol):
    """What a search needs to know of a network."""

    @property
    def empty(self) -> bool:
        """Whether there is no way through."""

    @property
    def size(self) -> int:
        """How many steps there are."""


class Sweepable(Network, Protocol):
    """A network whose steps are ruled out."""

    def drop_dead_ends(self) -> None:
        """Drop what no way passes through."""


Ruling = Callable[[IntArray], Times]
"""Rules out steps by some of the cuts of a pool, by number, and gives the lengths of their shortest ways."""


def sweep_by(network: Sweepable, pool: CutPool, most: int, ruling: Callable[[], Ruling]) -> None:
    """Rule out steps as ``sweep`` does; ``ruling`` prices the network as it stands and gives what rules them out."""
    for _ in range(SWEEPS):
        before = network.size
        if not before:
            return
        rule_out = ruling()
        order = np.argsort(-pool.usefulness, kind="stable")
        for chosen in np.split(order, [number for number in PORTIONS if number < len(order)]):
            lengths = rule_out(chosen)
            network.drop_dead_ends()
            pool.usefulness[chosen] += FORGETTING * (lengths / max(most, 1) - pool.usefulness[chosen])
            if network.empty:
                return
        if network.size > WORTH_ANOTHER * before:
            return
