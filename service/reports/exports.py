"""The formats of ``partita export``: what is made of an answer for other programs."""

from collections.abc import Callable

from partita.models.actions import Action, write_orders_csv
from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan, GivenStage
from partita.models.problem import Problem
from partita.models.writers.deepspeed import write_deepspeed
from partita.models.writers.megatron import write_megatron, write_megatron_numbers
from partita.models.writers.torch_plan import write_torch
from partita.models.writers.torchtitan import write_torchtitan
from partita.models.writers.vllm import write_vllm
from partita.service.reports.chrome_trace import chrome_trace_text
from partita.solver.layout import lay_out, pipeline_of
from partita.solver.support import refuse_degrees_per_stage
from partita.solver.timeline import timeline

Writer = Callable[[Problem, Candidate], str]
"""Makes the text of a file from a problem and one of its plans."""


def _chrome_trace(problem: Problem, candidate: Candidate) -> str:
    return chrome_trace_text(timeline(problem, candidate), candidate)


def _torch_orders(problem: Problem, candidate: Candidate) -> str:
    return write_orders_csv(_orders(problem, candidate))


def _torch(problem: Problem, candidate: Candidate) -> str:
    return write_torch(problem, candidate, _orders(problem, candidate))


def _orders(problem: Problem, candidate: Candidate) -> list[list[Action]]:
    """Give the actions of every rank.

    Raises
    ------
    InvalidInput
        When a stage is not on the rank that its schedule gives it.
    """
    refuse_degrees_per_stage(problem, "orders")
    pipeline = pipeline_of(problem.configured(candidate), len(candidate.stages))
    for index, (stage, rank) in enumerate(zip(candidate.stages, pipeline.rank_of.tolist(), strict=True)):
        if stage.rank != rank:
            detail = f"{candidate.schedule.kind} runs stage {index} on rank {rank}"
            raise InvalidInput.at(f"/plan/stages/{index}/rank", detail, str(stage.rank))
    return [[_action(*each) for each in order] for order in pipeline.orders]


def _action(kind: str, stage: int, microbatch: int) -> Action:
    return Action.model_validate({"kind": kind, "stage": stage, "microbatch": microbatch})


def _checked(write: Writer) -> Writer:
    """Make a writer refuse a plan that is none of its problem and schedule before it looks at it."""

    def checked(problem: Problem, candidate: Candidate) -> str:
        _orders(problem, candidate)
        stages = tuple(GivenStage(layers=stage.layers, devices=stage.devices) for stage in candidate.stages)
        lay_out(problem.configured(candidate), GivenPlan(stages=stages))
        return write(problem, candidate)

    return checked


EXPORTS: dict[str, Writer] = {
    "chrome-trace": _chrome_trace,
    "deepspeed": _checked(write_deepspeed),
    "megatron": _checked(write_megatron),
    "megatron-numbers": _checked(write_megatron_numbers),
    "torch": _checked(_torch),
    "torch-orders": _torch_orders,
    "torchtitan": _checked(write_torchtitan),
    "vllm": _checked(write_vllm),
}
"""The writers of all formats in ``FORMATS``."""
