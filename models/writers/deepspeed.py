"""Plans as a DeepSpeed ``PipelineModule`` with the planned bounds."""

from itertools import accumulate

from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.layer_bounds import deepspeed_parts, layers_of_parts
from partita.models.module_names import without_loss
from partita.models.problem import Problem
from partita.models.writers.plan import (
    TORCH,
    check_read_back,
    check_schedule,
    duties_note,
    launch_order,
    placement_note,
    recomputes,
    stage_layers,
)

_NAME = "DeepSpeed"

_TEXT = '''{note}from deepspeed.pipe import PipelineModule

PARTS = {parts}


class PlannedPipelineModule(PipelineModule):
    """Has the planned bounds, whatever partition_method says; takes one LayerSpec for every layer of the plan.

    Give num_stages={stages}{recompute}.
    """

    def _partition_layers(self, method="uniform"):
        assert self._num_layers == PARTS[-1], f"{{self._num_layers}} layers, the plan is for {{PARTS[-1]}}"
        self.parts = list(PARTS)
        self._set_bounds(start=PARTS[self.stage_id], stop=PARTS[self.stage_id + 1])
'''


def write_deepspeed(problem: Problem, candidate: Candidate) -> str:
    """Write a plan as a Python file: DeepSpeed has bounds for stages (``parts``), but no argument that gives them.

    Raises
    ------
    InvalidInput
        When DeepSpeed cannot run it so, with the place in the plan and the reason.

    References
    ----------
    DeepSpeed, ``PipelineModule._partition_layers`` in deepspeed/runtime/pipe/module.py.
    """
    check_schedule(candidate, _NAME, {"1f1b", "forward_only"})
    stages = stage_layers(problem, candidate)
    layers = list(problem.model.layer_index())
    modules = without_loss(layers)
    for index, stage in enumerate(stages):
        if not set(stage) & set(modules):
            detail = f"{_NAME} takes the loss as a function of the last stage, which needs a layer besides it; {TORCH}"
            raise InvalidInput.at(f"/plan/stages/{index}/layers", detail, None, "not_expressible")
    known = set(modules)
    parts = [0, *accumulate(len(known.intersection(stage)) for stage in stages)]
    recompute = ", activation_checkpoint_interval=1" if recomputes(problem, candidate, _NAME, modules) else ""
    order = launch_order(candidate, replicas_inside=True)
    note = placement_note(problem, candidate, order, _NAME) + duties_note(problem, candidate)
    text = _TEXT.format(note=note, parts=parts, stages=len(stages), recompute=recompute)
    check_read_back(stages, layers_of_parts(deepspeed_parts(text) or [], layers, "/plan"), _NAME, f"PARTS = {parts}")
    return text
