"""Plans as the arguments by which Megatron-LM splits a model."""

from collections.abc import Sequence
from itertools import groupby

from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.layout_text import Blocks, layers_of_megatron
from partita.models.megatron_arguments import CHUNKS, FIRST, LAST, LAYERS, LAYOUT, RANKS, Numbers, layers_of_numbers
from partita.models.problem import Problem
from partita.models.writers.blocks import BlockStage, block_stages, blocks_of, counts_of
from partita.models.writers.plan import (
    TORCH,
    check_read_back,
    check_schedule,
    launch_order,
    num_ranks,
    placement_note,
    recomputes,
    stage_layers,
)

SCHEDULES = frozenset({"1f1b", "interleaved_1f1b", "forward_only"})
"""What Megatron runs."""

_NAME = "Megatron-LM"


def write_megatron(problem: Problem, candidate: Candidate) -> str:
    """Write a plan as ``--pipeline-model-parallel-layout``, with the arguments that go with it.

    Raises
    ------
    InvalidInput
        When Megatron cannot run it so, with the place in the plan and the reason.
    """
    blocks = blocks_of(problem, _NAME)
    check_schedule(candidate, _NAME, SCHEDULES)
    ranks = num_ranks(candidate)
    stages = stage_layers(problem, candidate)
    layout = _shortened(_letters(block_stages(blocks, stages, _NAME)))
    check_read_back(stages, layers_of_megatron(layout, list(problem.model.layer_index()), "/plan"), _NAME, layout)
    arguments = [RANKS, str(ranks), LAYOUT, f'"{layout}"']
    return _text(problem, candidate, blocks, arguments)


def write_megatron_numbers(problem: Problem, candidate: Candidate) -> str:
    """Write a plan as numbers of layers for the first and the last rank, all others having equally many.

    Raises
    ------
    InvalidInput
        When Megatron cannot run it so, with the place in the plan and the reason.
    """
    blocks = blocks_of(problem, _NAME)
    check_schedule(candidate, _NAME, SCHEDULES)
    ranks = num_ranks(candidate)
    stages = stage_layers(problem, candidate)
    if ranks < 2:
        raise InvalidInput.at("/plan/stages", f"numbers are for 2 ranks or more; {TORCH}", None, "not_expressible")
    counts = counts_of(blocks, stages, _NAME)
    _check_equal(counts, ranks)
    chunks = len(stages) // ranks
    numbers = Numbers(len(blocks.each), ranks, counts[0] * chunks, counts[ranks - 1] * chunks, chunks)
    values = {LAYERS: numbers.layers, RANKS: ranks, FIRST: numbers.first, LAST: numbers.last}
    if chunks > 1:
        values[CHUNKS] = chunks
    arguments = [word for name, value in values.items() for word in (name, str(value))]
    text = " ".join(arguments)
    check_read_back(stages, layers_of_numbers(text, list(problem.model.layer_index()), "/plan"), _NAME, text)
    return _text(problem, candidate, blocks, arguments)


def _letters(stages: Sequence[BlockStage]) -> list[str]:
    """Write every stage as its letters."""
    return ["E" * stage.before + "t" * stage.blocks + "L" * stage.after for stage in stages]


def _shortened(stages: Sequence[str]) -> str:
    """Join the letters of the stages; stages that are equal, and letters, are written once with their number."""
    parts = []
    for letters, equal in groupby(stages[:-1]):
        part, count = f"{_counted(letters)}|", len(list(equal))
        parts.append(part if count == 1 else f"({part})*{count}")
    return "".join([*parts, _counted(stages[-1])])


def _counted(letters: str) -> str:
    """Write t*3 for ttt."""
    count = letters.count("t")
    return letters if count < 3 else letters.replace("t" * count, f"t*{count}")


def _check_equal(counts: Sequence[int], ranks: int) -> None:
    """Refuse ranks between the first and the last, or stages of one rank, of different size."""
    for index, count in enumerate(counts):
        rank = index % ranks
        like = rank if rank in (0, ranks - 1) else 1
        if count != counts[like]:
            detail = (
                f"stage {index} has {count} transformer layers, stage {like} {counts[like]}: numbers for the first and "
                "the last rank leave equally many for all others; export megatron writes a layout instead"
            )
            raise InvalidInput.at(f"/plan/stages/{index}/layers", detail, None, "not_expressible")


def _text(problem: Problem, candidate: Candidate, blocks: Blocks, arguments: list[str]) -> str:
    """Write the arguments as one line, after a comment where devices are in an order of their own."""
    if candidate.tensor_parallel > 1:
        arguments = ["--tensor-model-parallel-size", str(candidate.tensor_parallel), *arguments]
    if recomputes(problem, candidate, _NAME, [name for block in blocks.each for name in block]):
        arguments = [*arguments, "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"]
    order = launch_order(candidate, replicas_inside=True)
    if order is None and candidate.data_parallel > 1:
        order = launch_order(candidate, replicas_inside=False)
        arguments = [*arguments, "--use-tp-pp-dp-mapping"]
    return f"{placement_note(problem, candidate, order, _NAME)}{' '.join(arguments)}\n"
