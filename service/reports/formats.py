"""The formats of ``partita export`` by their names, without the code that writes them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A format in a few words, and the media type of its texts."""

    summary: str
    media_type: str = "text/plain"


_JSON, _CSV = "application/json", "text/csv"

FORMATS: dict[str, Format] = {
    "chrome-trace": Format("the timeline as trace events, for Perfetto and chrome://tracing", _JSON),
    "contract": Format("what every stage is given and gives, tensor by tensor", _JSON),
    "deepspeed": Format("a PipelineModule with the bounds of the stages, in Python"),
    "megatron": Format("arguments with --pipeline-model-parallel-layout"),
    "megatron-numbers": Format("arguments with numbers of layers for the first and the last rank"),
    "torch": Format("stages, ranks and orders, for torch.distributed.pipelining", _JSON),
    "torch-orders": Format("the orders of the ranks, for torch.distributed.pipelining", _CSV),
    "torchtitan": Format("options with module_fqns_per_model_part"),
    "vllm": Format("the environment variable VLLM_PP_LAYER_PARTITION"),
}
"""All formats."""


def place_in_answer(pointer: str, plan: str) -> str:
    """Turn a pointer into a problem or, from ``/plan`` on, into a plan into one into the answer that holds both.

    Parameters
    ----------
    pointer
        The pointer.
    plan
        The pointer to the plan in the answer.
    """
    first, _, rest = pointer.removeprefix("/").partition("/")
    if first != "plan":
        return f"/problem{pointer}"
    return plan + (f"/{rest}" if rest else "")
