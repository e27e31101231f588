"""A schedule for a number of stages and microbatches: orders, the rank of every stage, and what ranks keep."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from partita.models.schedule import Schedule
from partita.solver.arrays import BoolArray, IntArray
from partita.solver.in_flight import Moments, find_moments
from partita.solver.schedules import looped, single, v_shaped
from partita.solver.schedules.actions import Orders

GENERATORS: dict[str, Callable[[int, int, int], Orders]] = {
    "forward_only": single.forward_only,
    "gpipe": single.gpipe,
    "1f1b": single.one_forward_one_backward,
    "zb_h1": single.zb_h1,
    "zb_h2": single.zb_h2,
    "interleaved_1f1b": looped.interleaved_1f1b,
    "interleaved_zb": looped.interleaved_zb,
    "looped_bfs": looped.looped_bfs,
    "zb_v": v_shaped.zb_v,
    "dualpipe_v": v_shaped.dualpipe_v,
}
"""By kind: ranks, chunks per rank and microbatches to orders."""


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The stages of a pipeline on its ranks.

    Attributes
    ----------
    orders
        The actions of every rank.
    rank_of
        The rank of every stage, shape (S,).
    """

    orders: Orders
    rank_of: IntArray

    @property
    def num_stages(self) -> int:
        """S."""
        return len(self.rank_of)

    @property
    def num_ranks(self) -> int:
        """R."""
        return len(self.orders)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of action that occur."""
        return frozenset(kind for order in self.orders for kind, _, _ in order)

    @property
    def splits(self) -> bool:
        """Whether some backward passes are split."""
        return "W" in self.kinds

    @cached_property
    def stages_of(self) -> tuple[IntArray, ...]:
        """The stages of every rank, ascending."""
        return tuple(np.flatnonzero(self.rank_of == rank) for rank in range(self.num_ranks))

    @cached_property
    def moments(self) -> Moments:
        """When every rank can be fullest."""
        return find_moments(self.orders)

    @cached_property
    def turns(self) -> BoolArray:
        """Whether a boundary lies between two stages of one rank, shape (S - 1,): nothing is sent across it."""
        return np.asarray(self.rank_of[:-1] == self.rank_of[1:])

    def comes_again(self, stage: int, most: int) -> bool:
        """Tell whether the rank of a stage also runs one of the ``most`` stages before it."""
        return bool((self.rank_of[max(0, stage - most) : stage] == self.rank_of[stage]).any())

    @property
    def one_each(self) -> bool:
        """Whether rank k runs stage k and no other."""
        return self.num_ranks == self.num_stages and bool((self.rank_of == np.arange(self.num_stages)).all())


def arrange(schedule: Schedule, num_stages: int, num_microbatches: int) -> Pipeline:
    """Write the orders of a schedule; ``num_stages`` is a multiple of its chunks, and that of the orders given."""
    orders: Orders
    if schedule.orders is not None:
        orders = [[(each.kind, each.stage, each.microbatch) for each in order] for order in schedule.orders]
    else:
        chunks = schedule.chunks
        orders = GENERATORS[schedule.kind](num_stages // chunks, chunks, num_microbatches)
    rank_of = np.zeros(num_stages, dtype=np.int64)
    for rank, order in enumerate(orders):
        rank_of[list({stage for _, stage, _ in order})] = rank
    return Pipeline(orders, rank_of)
