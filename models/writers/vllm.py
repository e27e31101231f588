"""Plans as the list of numbers of layers that vLLM takes."""

from partita.models.answer import Candidate
from partita.models.layout_text import VLLM, layers_of_vllm
from partita.models.problem import Problem
from partita.models.writers.blocks import blocks_of, counts_of
from partita.models.writers.plan import (
    check_read_back,
    check_schedule,
    launch_order,
    placement_note,
    stage_layers,
)

_NAME = "vLLM"


def write_vllm(problem: Problem, candidate: Candidate) -> str:
    """Write a plan as the environment variable ``VLLM_PP_LAYER_PARTITION``.

    Raises
    ------
    InvalidInput
        When vLLM cannot run it so, with the place in the plan and the reason.

    References
    ----------
    vLLM, ``get_pp_indices`` in vllm/distributed/utils.py.
    """
    check_schedule(candidate, _NAME, {"forward_only"})
    stages = stage_layers(problem, candidate)
    numbers = ",".join(map(str, counts_of(blocks_of(problem, _NAME), stages, _NAME)))
    check_read_back(stages, layers_of_vllm(numbers, list(problem.model.layer_index()), "/plan"), _NAME, numbers)
    order = launch_order(candidate, replicas_inside=False)
    return f"{placement_note(problem, candidate, order, _NAME)}{VLLM}={numbers}\n"
