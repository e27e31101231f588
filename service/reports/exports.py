"""The formats of ``partita export``: what is made of an answer for other programs."""

from collections.abc import Callable
from dataclasses import dataclass

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

JSON, TEXT, CSV = "application/json", "text/plain", "text/csv"


@dataclass(frozen=True, slots=True)
class Export:
    """A format.

    Attributes
    ----------
    write
        Makes the text of a file from a problem and one of its plans.
    summary
        The format in a few words.
    media_type
        That of the text.
    """

    write: Writer
    summary: str
    media_type: str = TEXT


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


EXPORTS: dict[str, Export] = {
    "chrome-trace": Export(_chrome_trace, "the timeline as trace events, for Perfetto and chrome://tracing", JSON),
    "torch": Export(_checked(_torch), "stages, ranks and orders as JSON, for torch.distributed.pipelining", JSON),
    "torch-orders": Export(_torch_orders, "the orders of the ranks as CSV, for torch.distributed.pipelining", CSV),
    "torchtitan": Export(_checked(write_torchtitan), "module_fqns_per_model_part"),
    "megatron": Export(_checked(write_megatron), "--pipeline-model-parallel-layout"),
    "megatron-numbers": Export(_checked(write_megatron_numbers), "--decoder-first-pipeline-num-layers and so on"),
    "deepspeed": Export(_checked(write_deepspeed), "a PipelineModule with the bounds of the stages"),
    "vllm": Export(_checked(write_vllm), "VLLM_PP_LAYER_PARTITION"),
}
"""The formats by their names."""
