"""The formats of ``partita export``: what is made of an answer for other programs."""

from collections.abc import Callable
from dataclasses import dataclass

from partita.models.actions import Action, write_orders_csv
from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.service.reports.chrome_trace import chrome_trace_text
from partita.solver.layout import pipeline_of
from partita.solver.support import refuse_degrees_per_stage
from partita.solver.timeline import timeline


@dataclass(frozen=True, slots=True)
class Export:
    """A format.

    Attributes
    ----------
    write
        Makes the text of a file from a problem and one of its plans.
    summary
        The format in a few words.
    """

    write: Callable[[Problem, Candidate], str]
    summary: str


def _chrome_trace(problem: Problem, candidate: Candidate) -> str:
    return chrome_trace_text(timeline(problem, candidate), candidate)


def _torch_orders(problem: Problem, candidate: Candidate) -> str:
    refuse_degrees_per_stage(problem, "orders")
    pipeline = pipeline_of(problem.configured(candidate), len(candidate.stages))
    for index, (stage, rank) in enumerate(zip(candidate.stages, pipeline.rank_of.tolist(), strict=True)):
        if stage.rank != rank:
            detail = f"{candidate.schedule.kind} runs stage {index} on rank {rank}"
            raise InvalidInput.at(f"/plan/stages/{index}/rank", detail, str(stage.rank))
    return write_orders_csv([[_action(*each) for each in order] for order in pipeline.orders])


def _action(kind: str, stage: int, microbatch: int) -> Action:
    return Action.model_validate({"kind": kind, "stage": stage, "microbatch": microbatch})


EXPORTS: dict[str, Export] = {
    "chrome-trace": Export(_chrome_trace, "the timeline as trace events, for Perfetto and chrome://tracing"),
    "torch-orders": Export(_torch_orders, "the orders of the ranks as CSV, for torch.distributed.pipelining"),
}
"""The formats by their names."""
