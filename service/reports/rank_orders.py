"""The orders of the ranks of a plan."""

from partita.models.actions import Action
from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.solver.layout import pipeline_of
from partita.solver.pipeline import Pipeline
from partita.solver.support import refuse_degrees_per_stage

Orders = tuple[tuple[Action, ...], ...]


def rank_orders(problem: Problem, candidate: Candidate) -> Orders:
    """Give the actions of every rank under the schedule of a plan.

    Parameters
    ----------
    problem, candidate
        A problem, and one of its plans.

    Raises
    ------
    InvalidInput
        When the schedule cannot run the plan's stages, or on other ranks; pointers start at ``/plan``.
    """
    refuse_degrees_per_stage(problem, "orders")
    pipeline = pipeline_of(problem.configured(candidate), len(candidate.stages))
    for index, (stage, rank) in enumerate(zip(candidate.stages, pipeline.rank_of.tolist(), strict=True)):
        if stage.rank != rank:
            detail = f"{candidate.schedule.kind} runs stage {index} on rank {rank}"
            raise InvalidInput.at(f"/plan/stages/{index}/rank", detail, str(stage.rank))
    return actions_of(pipeline)


def actions_of(pipeline: Pipeline) -> Orders:
    """Give the actions of every rank of a pipeline."""
    return tuple(
        tuple(
            Action.model_validate({"kind": kind, "stage": stage, "microbatch": microbatch})
            for kind, stage, microbatch in order
        )
        for order in pipeline.orders
    )
