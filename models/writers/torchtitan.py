"""Plans as the module names of torchtitan's model parts."""

import json
import re
from collections.abc import Sequence

from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.layout_text import find_blocks
from partita.models.module_names import layers_of_modules, torchtitan_option, without_loss
from partita.models.naming import quoted
from partita.models.problem import Problem
from partita.models.writers.plan import (
    TORCH,
    check_read_back,
    check_schedule,
    duties_note,
    launch_order,
    num_ranks,
    placement_note,
    recomputes,
    stage_layers,
)

SCHEDULES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved_1f1b": "Interleaved1F1B",
    "interleaved_zb": "InterleavedZeroBubble",
    "looped_bfs": "LoopedBFS",
    "zb_v": "ZBVZeroBubble",
    "dualpipe_v": "DualPipeV",
}
"""What torchtitan runs, by our names."""

_NAME = "torchtitan"
_STEP = re.compile("[A-Za-z_0-9]+")


def write_torchtitan(problem: Problem, candidate: Candidate) -> str:
    """Write a plan as ``module_fqns_per_model_part`` and the options that go with it: of TOML, and of Python.

    Raises
    ------
    InvalidInput
        When torchtitan cannot run it so, with the place in the plan and the reason.

    References
    ----------
    torchtitan, ``pipeline_module_split`` in torchtitan/distributed/pipeline_parallel.py.
    """
    check_schedule(candidate, _NAME, SCHEDULES)
    stages = stage_layers(problem, candidate)
    layers = list(problem.model.layer_index())
    parts = _parts(stages, without_loss(layers))
    rows = "".join(f"    {json.dumps(part)},\n" for part in parts)
    order = launch_order(candidate, replicas_inside=True)
    text = (
        f"{placement_note(problem, candidate, order, _NAME)}{duties_note(problem, candidate)}"
        f"pipeline_parallel_degree = {num_ranks(candidate)}\n"
        f'pipeline_parallel_schedule = "{SCHEDULES[candidate.schedule.kind]}"\n'
        f"module_fqns_per_model_part = [\n{rows}]\n"
    )
    blocks = find_blocks(layers)
    if recomputes(problem, candidate, _NAME, [name for block in blocks.each for name in block] if blocks else layers):
        text = f'# activation_checkpoint.mode = "full"\n{text}'
    check_read_back(stages, layers_of_modules(torchtitan_option(text) or [], layers, "/plan"), _NAME, str(parts))
    return text


def _parts(stages: Sequence[Sequence[str]], modules: Sequence[str]) -> list[list[str]]:
    """Give the names of the modules of every stage."""
    known = set(modules)
    stage_of: dict[str, int] = {}
    parts: list[list[str]] = []
    for index, stage in enumerate(stages):
        names = dict.fromkeys(_module(name, index) for name in stage if name in known)
        for name in names:
            if stage_of.setdefault(name, index) != index:
                detail = (
                    f"{_NAME} cuts between parts of a model and numbered parts of its lists alone and keeps the "
                    f"module {quoted(name)} on one stage, but parts of it are on stage {stage_of[name]} too; name its "
                    f"layers in constraints.together, or use another export: {TORCH}"
                )
                raise InvalidInput.at(f"/plan/stages/{index}/layers", detail, None, "not_expressible")
        if not names:
            detail = f"{_NAME} takes the loss as a function of the last stage, which needs a module; {TORCH}"
            raise InvalidInput.at(f"/plan/stages/{index}/layers", detail, None, "not_expressible")
        parts.append(list(names))
    return parts


def _module(layer: str, stage: int) -> str:
    """Give the module that torchtitan can keep for a layer: a child of the model, or a numbered one of its lists."""
    steps = layer.split(".")
    if not all(_STEP.fullmatch(step) for step in steps):
        detail = f"{quoted(layer)} is not the name of one module, which {_NAME} needs; {TORCH}"
        raise InvalidInput.at(f"/plan/stages/{stage}/layers", detail, None, "not_expressible")
    return ".".join(steps[:2]) if len(steps) > 1 and steps[1].isdigit() else steps[0]
