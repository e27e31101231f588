"""The formats of ``partita export``: what is made of an answer for other programs."""

from collections.abc import Callable

from partita.models.actions import write_orders_csv
from partita.models.answer import Candidate
from partita.models.contract import contract_of
from partita.models.problem import Problem
from partita.models.writers.deepspeed import write_deepspeed
from partita.models.writers.megatron import write_megatron, write_megatron_numbers
from partita.models.writers.torch_plan import write_torch
from partita.models.writers.torchtitan import write_torchtitan
from partita.models.writers.vllm import write_vllm
from partita.service.reports.chrome_trace import chrome_trace_text
from partita.service.reports.rank_orders import rank_orders
from partita.solver.layout import given_by, lay_out
from partita.solver.timeline import timeline

Writer = Callable[[Problem, Candidate], str]
"""Makes the text of a file from a problem and one of its plans."""


def _chrome_trace(problem: Problem, candidate: Candidate) -> str:
    return chrome_trace_text(timeline(problem, candidate), candidate)


def _torch_orders(problem: Problem, candidate: Candidate) -> str:
    return write_orders_csv(rank_orders(problem, candidate))


def _torch(problem: Problem, candidate: Candidate) -> str:
    return write_torch(problem, candidate, rank_orders(problem, candidate))


def _stage_contract(problem: Problem, candidate: Candidate) -> str:
    return contract_of(problem.model, candidate).model_dump_json(indent=1) + "\n"


def _checked(write: Writer) -> Writer:
    """Make a writer refuse a plan that is none of its problem and schedule before it looks at it."""

    def checked(problem: Problem, candidate: Candidate) -> str:
        rank_orders(problem, candidate)
        lay_out(problem.configured(candidate), given_by(candidate, ("layers", "devices")))
        return write(problem, candidate)

    return checked


EXPORTS: dict[str, Writer] = {
    "chrome-trace": _chrome_trace,
    "contract": _checked(_stage_contract),
    "deepspeed": _checked(write_deepspeed),
    "megatron": _checked(write_megatron),
    "megatron-numbers": _checked(write_megatron_numbers),
    "torch": _checked(_torch),
    "torch-orders": _torch_orders,
    "torchtitan": _checked(write_torchtitan),
    "vllm": _checked(write_vllm),
}
"""The writers of all formats in ``FORMATS``."""
