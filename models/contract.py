"""What every stage of a plan is given and gives: the contract between whoever builds the stages."""

from collections.abc import Sequence
from typing import Literal

from partita.models.answer import Candidate
from partita.models.answer_plan import Boundary, ByteCount
from partita.models.base import Many, Model
from partita.models.profile import ModelProfile


class SentTensor(Model):
    """A tensor that one stage sends to another one for every microbatch.

    Attributes
    ----------
    name
        In the model.
    bytes
        Of one microbatch.
    shape, dtype, stride
        What it looks like; None where the profile does not say.
    direction
        The pass in which it is sent.
    gradient
        Whether its gradient, of the same form, is sent back in the backward pass.
    """

    name: str
    bytes: ByteCount
    shape: Many[int] | None = None
    dtype: str | None = None
    stride: Many[int] | None = None
    direction: Literal["forward", "backward"] = "forward"
    gradient: bool


class SentBetween(Model):
    """All that passes between two stages, in the order in which it is sent."""

    from_stage: int
    to_stage: int
    tensors: Many[SentTensor]


class HeldBuffer(Model):
    """A buffer on a stage; ``mutated`` where the stage writes to it, else it reads what is there."""

    name: str
    mutated: bool


class StageContract(Model):
    """One stage.

    Attributes
    ----------
    index, rank, devices
        Its position, the rank that runs it and where.
    layers, recompute
        What it runs, and what of that it runs again in the backward pass.
    tied_weights
        Weights whose gradients are added up over this stage and others once per iteration.
    buffers
        What it holds besides weights.
    """

    index: int
    rank: int
    devices: Many[str]
    layers: Many[str]
    recompute: Many[str] = ()
    tied_weights: Many[str] = ()
    buffers: Many[HeldBuffer] = ()


class Contract(Model):
    """The stages of a plan, and for each two that exchange anything what they exchange."""

    stages: Many[StageContract]
    boundaries: Many[SentBetween]


def contract_of(model: ModelProfile, candidate: Candidate) -> Contract:
    """Give the contract of a plan.

    Parameters
    ----------
    model, candidate
        The model, and a plan for it.
    """
    return Contract(
        stages=tuple(
            StageContract(
                index=stage.index,
                rank=stage.rank,
                devices=stage.devices,
                layers=stage.layers,
                recompute=stage.recompute,
                tied_weights=tuple(each.name for each in candidate.tied_weights if stage.index in each.stages),
                buffers=_buffers(model, stage.layers),
            )
            for stage in candidate.stages
        ),
        boundaries=tuple(_between(each) for each in candidate.boundaries if each.tensors),
    )


def _buffers(model: ModelProfile, layers: Sequence[str]) -> tuple[HeldBuffer, ...]:
    """Give the buffers of some layers."""
    held = set(layers)
    return tuple(
        HeldBuffer(name=each.name, mutated=each.mutated) for each in model.buffers if not held.isdisjoint(each.layers)
    )


def _between(boundary: Boundary) -> SentBetween:
    """Join tensors with their gradients."""
    forward = {each.name for each in boundary.tensors if each.direction == "forward"}
    returned = {each.name for each in boundary.tensors if each.direction == "backward"} & forward
    return SentBetween(
        from_stage=boundary.from_stage,
        to_stage=boundary.to_stage,
        tensors=tuple(
            SentTensor(**each.model_dump(), gradient=each.name in returned)
            for each in boundary.tensors
            if each.direction == "forward" or each.name not in forward
        ),
    )
