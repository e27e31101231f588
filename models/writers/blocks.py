"""How many transformer layers every stage of a plan has, and which stages have what comes before and after them."""

from collections.abc import Sequence
from dataclasses import dataclass

from partita.models.errors import InvalidInput
from partita.models.layout_text import Blocks, find_blocks
from partita.models.naming import listing, quoted
from partita.models.problem import Problem
from partita.models.writers.plan import TORCH


@dataclass(frozen=True, slots=True)
class BlockStage:
    """What a stage holds: all layers before the transformer layers, so many of these, all layers after them."""

    before: bool
    blocks: int
    after: bool


def blocks_of(problem: Problem, program: str) -> Blocks:
    """Find the transformer layers of a model.

    Raises
    ------
    InvalidInput
        When its names show none.
    """
    blocks = find_blocks(list(problem.model.layer_index()))
    if blocks is None:
        detail = (
            f"{program} counts transformer layers, but no names of layers that differ in a number alone stand in a row "
            f"(block.0, block.1); name them so, or use another export: {TORCH}"
        )
        raise InvalidInput.at("/plan/stages", detail, None, "not_expressible")
    return blocks


def block_stages(blocks: Blocks, stages: Sequence[Sequence[str]], program: str) -> list[BlockStage]:
    """Tell what every stage holds.

    Raises
    ------
    InvalidInput
        When a transformer layer, what comes before them or what comes after them is on several stages.
    """
    stage_of = {name: index for index, stage in enumerate(stages) for name in stage}
    for group in (blocks.before, *blocks.each, blocks.after):
        first = next((name for name in group if stage_of[name] != stage_of[group[0]]), None)
        if first is not None:
            detail = (
                f"{program} keeps {listing(group)} on one stage, but {quoted(group[0])} is on stage "
                f"{stage_of[group[0]]} and {quoted(first)} on stage {stage_of[first]}; name them in "
                f"constraints.together and plan again, or use another export: {TORCH}"
            )
            place = f"/plan/stages/{stage_of[first]}/layers"
            raise InvalidInput.at(place, detail, None, "not_expressible")
    counts = [0] * len(stages)
    for block in blocks.each:
        counts[stage_of[block[0]]] += 1
    start = stage_of[blocks.before[0]] if blocks.before else 0
    end = stage_of[blocks.after[0]] if blocks.after else len(stages) - 1
    return [BlockStage(index == start, count, index == end) for index, count in enumerate(counts)]


def counts_of(blocks: Blocks, stages: Sequence[Sequence[str]], program: str) -> tuple[int, ...]:
    """Count the transformer layers of every stage, for a framework that gives at least one to each.

    Raises
    ------
    InvalidInput
        When a stage has none; and as ``block_stages``.
    """
    counts = tuple(stage.blocks for stage in block_stages(blocks, stages, program))
    if 0 in counts:
        index = counts.index(0)
        alone, beside = (blocks.before, blocks.each[0]) if index == 0 else (blocks.after, blocks.each[-1])
        detail = (
            f"{program} gives every stage a transformer layer, stage {index} has none; name {listing(alone)} and "
            f"{quoted(beside[0])} in constraints.together and plan again, or use another export: {TORCH}"
        )
        raise InvalidInput.at(f"/plan/stages/{index}/layers", detail, None, "not_expressible")
    return counts
