"""All that a rank needs to run its stages of a plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from torch.utils.checkpoint import create_selective_checkpoint_contexts

from partita.models.pytorch.capturing import Capture
from partita.models.pytorch.exporting import user_name
from partita.models.pytorch.policies import decision_of
from partita.models.pytorch.split.draws import Moment
from partita.models.pytorch.split.partition import CannotSplit, Partition, partition
from partita.models.pytorch.split.plan import RunPlan
from partita.models.pytorch.split.runtime import Runtime, Stage
from partita.models.pytorch.split.stage import SAVES_NOTHING, Contexts, StageOptions, build_stage
from partita.models.pytorch.split.tied import TiedGradients


@dataclass(frozen=True)
class RankPipeline:
    """The stages of this process, ready to run.

    Attributes
    ----------
    rank, stages
        Which rank of the plan this process is, and its stages.
    parameters, buffers
        Those that its stages read, by their names in the user's module.
    runtime, tied, moment
        What runs the stages, adds up gradients of tied weights, and says where the rank stands.
    """

    rank: int
    stages: tuple[Stage, ...]
    parameters: Mapping[str, torch.nn.Parameter]
    buffers: Mapping[str, torch.Tensor]
    runtime: Runtime
    tied: TiedGradients
    moment: Moment

    def run(self, microbatches: Sequence[tuple[torch.Tensor, ...]]) -> list[torch.Tensor]:
        """Run forward and backward passes of one iteration and add up the gradients of tied weights.

        Gradients are added to those that are there, as they are by ``loss.backward()``; they are those of the mean of
        the microbatches' losses.

        Parameters
        ----------
        microbatches
            The inputs of every microbatch; read where the first stage is.

        Returns
        -------
        list
            The loss of every microbatch where the last stage is, else nothing.
        """
        self.tied.set_aside()
        losses = self.runtime.run(microbatches)
        self.tied.synchronize()
        self.moment.iteration += 1
        return losses


def materialize(
    capture: Capture, plan: RunPlan, *, seed: int = 0, stage_type: Callable[..., Stage] = Stage
) -> RankPipeline:
    """Build the stages of this process; all processes of the default group call it at the same time.

    Process ``plan.places[r]`` is rank r of the plan.

    Parameters
    ----------
    capture, plan
        The model, and how it runs.
    seed
        Of random operations.
    stage_type
        Makes what runs a stage.

    Raises
    ------
    CannotSplit
        When the plan does not fit the model, has no backward pass, or a policy names an operation that does not exist.
    """
    if not plan.trains:
        raise CannotSplit("the plan is for forward_only, and stages here are built to train; plan for training")
    group = dist.new_group(list(plan.places), sort_ranks=False)
    rank = dist.get_rank(group)
    parts = partition(capture.graph, capture.layers, plan.stages)
    moment = Moment(seed=seed)
    options = StageOptions(moment, plan.splits_backward, contexts_of(plan))
    rank_of = plan.rank_of
    stages = tuple(
        stage_type(
            build_stage(capture.graph, parts, index, options),
            num_stages=parts.num_stages,
            device=capture.graph.device,
            group=group,
            moment=moment,
        )
        for index in range(parts.num_stages)
        if rank_of[index] == rank
    )
    parameters, buffers = _held(capture, stages)
    return RankPipeline(
        rank=rank,
        stages=stages,
        parameters=parameters,
        buffers=buffers,
        runtime=Runtime(stages, plan),
        tied=TiedGradients(_tied_ranks(parts, rank_of), parameters, group),
        moment=moment,
    )


def contexts_of(plan: RunPlan) -> dict[str, Contexts]:
    """Give what every layer that runs again saves."""
    try:
        saving = {
            name: partial(create_selective_checkpoint_contexts, decision_of(save))
            for name, save in plan.policies.items()
        }
    except ValueError as error:
        raise CannotSplit(str(error)) from error
    return {layer: saving.get(option, SAVES_NOTHING) for layer, option in plan.recomputed.items()}


def _held(capture: Capture, stages: Sequence[Stage]) -> tuple[dict[str, torch.nn.Parameter], dict[str, torch.Tensor]]:
    """Give the parameters and buffers that stages read, by the user's names."""
    read = {id(each) for stage in stages for each in (*stage.submod.parameters(), *stage.submod.buffers())}
    return (
        {user_name(name): each for name, each in capture.program.named_parameters() if id(each) in read},
        {user_name(name): each for name, each in capture.program.named_buffers() if id(each) in read},
    )


def _tied_ranks(parts: Partition, rank_of: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Give for every tied parameter the ranks that hold it."""
    return {name: tuple(sorted({rank_of[stage] for stage in parts.owners[name]})) for name in parts.tied}
