"""Turns a captured module and a plan into stages for torch.distributed.pipelining.

``partition``  which layers are on which stage, and what crosses every boundary
``wire``       how a tensor is laid out while it is sent
``draws``      random numbers that depend on operation and microbatch alone
``stage``      the module of a stage
``runtime``    a stage and a schedule of torch that know the microbatch they run
``tied``       adds up the gradients of tied weights
``pipeline``   all that a rank needs, in one object
"""

from partita.models.pytorch.split.pipeline import RankPipeline, materialize
from partita.models.pytorch.split.plan import RunPlan

__all__ = ["RankPipeline", "RunPlan", "materialize"]
