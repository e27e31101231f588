"""What of a plan is needed to run it: layers of the stages, orders of the ranks, and which process is which rank."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from partita.models.actions import Action
from partita.models.pytorch.policies import FULL, Saving
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
        The layers that run again in the backward pass instead of keeping what they need for it, with their options.
    policies
        What layers with an option save, by its name; those with another keep their inputs alone, which is ``full``.
    """

    stages: tuple[tuple[str, ...], ...]
    orders: tuple[tuple[Action, ...], ...]
    places: tuple[int, ...]
    recomputed: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, Saving] = field(default_factory=dict)

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

    @property
    def unknown(self) -> tuple[str, ...]:
        """The options of recompute that are run as ``full``, because it is not said what they save."""
        return tuple(sorted(set(self.recomputed.values()) - {FULL, *self.policies}))

    @classmethod
    def of(cls, plan: TorchPlan, policies: Mapping[str, Saving] | None = None) -> Self:
        """Take what is needed from a plan as ``partita export torch`` writes it and ``read_torch`` reads it.

        Of several replicas it is the first; its processes are numbered from 0 in the order of their ranks.
        """
        ranks = plan.groups[0]
        used = sorted(ranks)
        return cls(
            stages=plan.stages,
            orders=plan.actions,
            places=tuple(used.index(rank) for rank in ranks),
            recomputed={name: option for layers in plan.recompute for name, option in layers.items()},
            policies=policies or {},
        )
