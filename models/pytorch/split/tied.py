"""Adds up the gradients of tied weights over the ranks that hold them."""

from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist


class TiedGradients:
    """The tied weights of a pipeline, as one rank sees them; all ranks make it at the same time.

    Parameters
    ----------
    owners
        For every tied parameter, by its name, the ranks that hold it.
    parameters
        Those of them that this rank holds.
    group
        That of the pipeline.
    """

    def __init__(
        self,
        owners: Mapping[str, Sequence[int]],
        parameters: Mapping[str, torch.nn.Parameter],
        group: dist.ProcessGroup,
    ) -> None:
        groups = {}
        for ranks in sorted({tuple(each) for each in owners.values() if len(each) > 1}):
            groups[ranks] = dist.new_group([dist.get_global_rank(group, rank) for rank in ranks])
        self._shared = [
            (parameters[name], groups[tuple(ranks)])
            for name, ranks in sorted(owners.items())
            if len(ranks) > 1 and name in parameters
        ]
        self._earlier: list[torch.Tensor | None] = []

    def set_aside(self) -> None:
        """Put the gradients of earlier iterations aside: they have been added up already."""
        self._earlier = [parameter.grad for parameter, _ in self._shared]
        for parameter, _ in self._shared:
            parameter.grad = None

    def synchronize(self) -> None:
        """Let every holder have the sum, added to what was set aside.

        It is taken in at least 32 bits, so that nothing is lost in between.
        """
        for (parameter, group), earlier in zip(self._shared, self._earlier, strict=True):
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            wide = gradient.float() if gradient.element_size() < 4 else gradient
            dist.all_reduce(wide, group=group)
            summed = wide.to(parameter.dtype)
            parameter.grad = summed if earlier is None else earlier.add_(summed)
