"""Stages and a schedule of torch.distributed.pipelining that know which microbatch they run.

torch 2.13 has these as private classes; tests guard what is used of them.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _Action, _PipelineScheduleRuntime

from partita.models.pytorch.split.draws import Moment
from partita.models.pytorch.split.plan import RunPlan
from partita.models.pytorch.split.stage import StageModule


class Stage(PipelineStage):
    """A stage of torch with static metadata, so that nothing runs before the first microbatch.

    Parameters
    ----------
    built
        The stage.
    num_stages, device, group
        Of the pipeline.
    moment
        Is told which microbatch runs.
    """

    def __init__(
        self, built: StageModule, *, num_stages: int, device: torch.device, group: dist.ProcessGroup, moment: Moment
    ) -> None:
        super().__init__(
            built.module,
            built.index,
            num_stages,
            device,
            input_args=tuple(each.example() for each in built.received),
            output_args=tuple(each.example() for each in built.sent),
            group=group,
        )
        self.built = built
        self.moment = moment

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Run a microbatch forward."""
        self.moment.microbatch = fwd_chunk_id
        return super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        """Run a microbatch backward, whole where the gradients cannot be separated: torch would lose some of them."""
        self.moment.microbatch = bwd_chunk_id
        whole = full_backward or not (self.built.separable or self.is_first)
        super().backward_one_chunk(bwd_chunk_id, loss=loss, full_backward=whole, last_backward=last_backward)
        gradients = self.bwd_cache[bwd_chunk_id]
        self.bwd_cache[bwd_chunk_id] = tuple(None if each is None else _as_sent(each) for each in gradients)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Compute the weight gradients that are left."""
        self.moment.microbatch = bwd_chunk_id
        if self.built.separable or self.is_first:
            super().backward_weight_one_chunk(bwd_chunk_id, last_backward=last_backward)


class Runtime(_PipelineScheduleRuntime):
    """Runs the stages of a rank by the orders of a plan.

    The last stage gives the loss itself. Losses are divided by the number of microbatches before the backward pass, and
    gradients are not scaled, so that those of one parameter on several stages can be added.

    Parameters
    ----------
    stages
        Of this rank.
    plan
        What all ranks do.
    """

    def __init__(self, stages: Sequence[Stage], plan: RunPlan) -> None:
        super().__init__(list(stages), plan.num_microbatches, loss_fn=_scaled_elsewhere, scale_grads=False)
        self._prepare_schedule_with_comms(
            {rank: [_Action.from_str(str(each)) for each in order] for rank, order in enumerate(plan.orders)}
        )
        self._loss_of: dict[int, torch.Tensor] = {}

    def run(self, microbatches: Sequence[tuple[torch.Tensor, ...]]) -> list[torch.Tensor]:
        """Run one iteration.

        Parameters
        ----------
        microbatches
            The inputs of every microbatch; read where the first stage is.

        Returns
        -------
        list
            The loss of every microbatch where the last stage is, else nothing.
        """
        self._loss_of.clear()
        first = any(stage.is_first for stage in self._stages)
        self.step(*(microbatches if first else ()), return_outputs=False)
        return [self._loss_of[number].detach() for number in sorted(self._loss_of)]

    def _split_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Take microbatches as they are: inputs need no dimension along which they could be split."""
        return (list(args), [{}] * len(args)) if args else super()._split_inputs(args, kwargs)

    def _maybe_compute_loss(
        self, stage: Any, output: Any, target_mbs: Any, mb_index: int, loss_kwargs: Any = None
    ) -> None:
        """Keep a loss by its microbatch; torch counts them in the order in which they are made."""
        if stage.is_last:
            self._loss_of[mb_index] = output

    def _maybe_get_loss(self, stage: Any, mb_index: int) -> Any:
        return self._loss_of[mb_index] / self._n_microbatches if stage.is_last else None


def _as_sent(gradient: torch.Tensor) -> torch.Tensor:
    """Give a gradient in memory as a message holds it."""
    return gradient.contiguous().resolve_conj().resolve_neg()


def _scaled_elsewhere(loss: torch.Tensor, _: object) -> torch.Tensor:
    """Tell torch that there is a loss, so that it runs backward passes."""
    return loss
