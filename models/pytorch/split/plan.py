"""What of a plan is needed to run it: layers of the stages, orders of the ranks, and which process is which rank."""

from dataclasses import dataclass
from typing import Self

from partita.models.actions import Action
from partita.models.writers.torch_plan import TorchPlan


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A plan as it runs.

    Attributes
    ----------
    stages
        The names of the layers of every stage.
    orders
        The actions of every rank.
    places
        For every rank the number of the process that is it: the list for ``new_group(sort_ranks=False)``.
    recomputed
        The layers that run again in the backward pass instead of keeping what they need for it.
    """

    stages: tuple[tuple[str, ...], ...]
    orders: tuple[tuple[Action, ...], ...]
    places: tuple[int, ...]
    recomputed: frozenset[str] = frozenset()

    @property
    def num_microbatches(self) -> int:
        """How many microbatches an iteration has."""
        return 1 + max(action.microbatch for order in self.orders for action in order)

    @property
    def trains(self) -> bool:
        """Whether there are backward passes."""
        return any(action.kind != "F" for order in self.orders for action in order)

    @property
    def splits_backward(self) -> bool:
        """Whether some backward passes are split into input and weight gradient."""
        return any(action.kind == "W" for order in self.orders for action in order)

    @property
    def rank_of(self) -> tuple[int, ...]:
        """The rank of every stage."""
        found = {action.stage: rank for rank, order in enumerate(self.orders) for action in order}
        return tuple(found[stage] for stage in range(len(self.stages)))

    @classmethod
    def of(cls, plan: TorchPlan) -> Self:
        """Take what is needed from a plan as ``partita export torch`` writes it and ``read_torch`` reads it.

        Of several replicas it is the first; its processes are numbered from 0 in the order of their ranks.
        """
        ranks = plan.groups[0]
        used = sorted(ranks)
        return cls(
            stages=plan.stages,
            orders=plan.actions,
            places=tuple(used.index(rank) for rank in ranks),
            recomputed=frozenset(name for layers in plan.recompute for name in layers),
        )
