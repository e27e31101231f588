"""Plans as other frameworks write them, Megatron's layout string and vLLM's list, and the layers that they mean."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated

from pydantic import AfterValidator

from partita.models.base import fault
from partita.models.errors import InvalidInput, short_value
from partita.models.naming import quoted
from partita.models.profile import MAX_LAYERS

MAX_TEXT = 100_000
"""Characters of a layout; unrolled it has no more letters than twice the layers of the largest model."""

_ITEM = re.compile(r"(?:\((?P<group>[^()]*)\)|(?P<one>[EtmL|]))(?:\*(?P<times>[0-9]{1,9}))?")
_MEGATRON = re.compile(r"[EtmL|*(),0-9\s]*[EtmL|][EtmL|*(),0-9\s]*")
_VLLM = re.compile(r"\s*[0-9]+\s*(?:,\s*[0-9]+\s*)*")
VLLM = "VLLM_PP_LAYER_PARTITION"
"""The environment variable of vLLM."""


def parse_megatron(text: str) -> tuple[str, ...]:
    """Give the letters of every stage of a string for Megatron's ``--pipeline-model-parallel-layout``.

    E is the embedding, t a transformer layer, m multi-token prediction and L the loss (with the output layer); ``|``
    ends a stage, ``*n`` repeats a letter or a group in parentheses, commas and white space mean nothing.

    Raises
    ------
    PydanticCustomError
        When it is not such a string, or when Megatron or Partita could not run it.

    References
    ----------
    Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py.
    """
    if len(text) > MAX_TEXT:
        raise fault("layout", f"the layout has {len(text)} characters; at most {MAX_TEXT} are read")
    letters = _unroll(re.sub(r"[,\s]", "", text))
    stages = tuple(letters.split("|"))
    empty = next((index for index, stage in enumerate(stages) if not stage), None)
    if empty is not None:
        detail = f"stage {empty} of {len(stages)} is empty, but every stage holds a layer; leave out one | there"
        raise fault("layout", detail)
    order = letters.replace("|", "")
    if not re.fullmatch("Et*m*L", order):
        detail = f"a layout is one E, then all t, then all m, then one L; unrolled this one is {quoted(order)}"
        raise fault("layout", detail)
    return stages


def _unroll(text: str) -> str:
    """Write out what is repeated."""
    found, position = "", 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            detail = (
                f"{quoted(text[position : position + 12])} at character {position + 1} (commas and spaces apart) is "
                "none of E, t, m, L, |, a repeated letter such as t*3 or a repeated group such as (tt|)*3"
            )
            raise fault("layout", detail)
        group, one, times = item.group("group", "one", "times")
        if group is not None and times is None:
            raise fault("layout", f"the group ({group}) needs a number of repetitions, such as ({group})*2")
        part, count = _unroll(group) if group is not None else one, int(times or 1)
        if len(found) + len(part) * count > 2 * MAX_LAYERS:
            raise fault("layout", f"unrolled the layout has more than {2 * MAX_LAYERS} letters; check the repetitions")
        found += part * count
        position = item.end()
    return found


def parse_vllm(text: str) -> tuple[int, ...]:
    """Give the numbers of transformer layers of every stage in a list for vLLM's ``VLLM_PP_LAYER_PARTITION``.

    Raises
    ------
    PydanticCustomError
        When it is not a list of whole numbers, each at least 1.
    """
    if len(text) > MAX_TEXT or not _VLLM.fullmatch(text):
        raise fault("partition", "expected the number of layers of each stage with commas between, such as '8,8,8,8'")
    counts = tuple(min(int(number[:10]), MAX_LAYERS + 1) for number in re.sub(r"\s", "", text).split(","))
    if min(counts) < 1:
        detail = f"stage {counts.index(0)} gets no layer; every stage holds at least one"
        raise fault("partition", detail)
    return counts


def _megatron(text: str) -> str:
    parse_megatron(text)
    return text


def _vllm(text: str) -> str:
    parse_vllm(text)
    return text


MegatronLayout = Annotated[str, AfterValidator(_megatron)]
"""A string for Megatron's ``--pipeline-model-parallel-layout``, such as ``Et*3|(tt|)*4L``."""

VllmPartition = Annotated[str, AfterValidator(_vllm)]
"""A list for vLLM's ``VLLM_PP_LAYER_PARTITION``, such as ``8,8,8,8``."""


def written_list(text: str) -> dict[str, str] | None:
    """Tell in which of these forms a text is a plan: field and value of a ``GivenPlan``; None where in neither.

    The name of vLLM's variable may stand before its list, as in a script: ``VLLM_PP_LAYER_PARTITION=8,8``.
    """
    text = text.strip()
    if text.startswith(VLLM):
        return {"vllm_partition": text.removeprefix(VLLM).lstrip(" =").strip("'\"")}
    if _VLLM.fullmatch(text):
        return {"vllm_partition": text}
    return {"megatron_layout": text} if _MEGATRON.fullmatch(text) else None


LayerGroup = tuple[str, ...]
"""Names of layers that go together."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The transformer layers of a model: the layers of each, and what comes before and after them all."""

    before: tuple[str, ...]
    each: tuple[tuple[str, ...], ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        """Name the first and the last."""
        return f"{self.each[0][0]} … {self.each[-1][-1]}"


def find_blocks(layers: Sequence[str]) -> Blocks | None:
    """Find the transformer layers of a model by the names of its layers.

    Names that differ in one number, such as ``block.0``, ``block.1``, form a series; layers of one number, such as
    ``h.0.attention`` and ``h.0.mlp``, belong together. Of several series the one with the most numbers counts. None
    where there is none, or where its layers do not stand in a row and in the order of their numbers.
    """
    series: dict[str, dict[int, list[int]]] = {}
    for position, name in enumerate(layers):
        for number in re.finditer("[0-9]+", name):
            series.setdefault(name[: number.start()], {}).setdefault(int(number[0]), []).append(position)
    longest = max(series.values(), key=len, default={})
    if len(longest) < 2:
        return None
    numbered = [longest[number] for number in sorted(longest)]
    places = [place for block in numbered for place in block]
    first, last = places[0], places[-1]
    if places != list(range(first, last + 1)):
        return None
    each = tuple(tuple(layers[place] for place in block) for block in numbered)
    return Blocks(tuple(layers[:first]), each, tuple(layers[last + 1 :]))


def layers_of_megatron(text: str, layers: Sequence[str], pointer: str) -> tuple[tuple[str, ...], ...]:
    """Give the layers of every stage of a Megatron layout.

    Where there are as many letters t as ``find_blocks`` finds blocks, and no m, they are these, E is all layers before
    them and L all after them. Otherwise there are as many letters as layers, and they stand for each other in order.

    Raises
    ------
    InvalidInput
        At ``pointer``, when the numbers differ or a stage would hold nothing.
    """
    stages = parse_megatron(text)
    meant = _meant("".join(stages), layers, text, pointer)
    ends = list(accumulate(len(stage) for stage in stages))
    found = tuple(
        tuple(name for each in meant[end - len(stage) : end] for name in each)
        for end, stage in zip(ends, stages, strict=True)
    )
    if () in found:
        index = found.index(())
        detail = f"stage {index} holds {stages[index]} alone, for which the model has no layer; join it with another"
        raise InvalidInput.at(pointer, detail, short_value(text), "layout")
    return found


def _meant(letters: str, layers: Sequence[str], text: str, pointer: str) -> list[tuple[str, ...]]:
    """Give the layers that every letter stands for."""
    blocks, asked = find_blocks(layers), letters.count("t")
    if blocks is not None and "m" not in letters and asked == len(blocks.each):
        return [blocks.before, *blocks.each, blocks.after]
    if len(letters) == len(layers):
        return [(name,) for name in layers]
    counted = f"the layout has {len(letters)} letters and the model {len(layers)} layers"
    if blocks is None or "m" in letters:
        reason = "with m" if "m" in letters else "without numbered layers in a row"
        detail = f"{counted}; {reason} each letter stands for one layer: write as many, or give stages or stage_sizes"
    else:
        detail = f"{counted}, with {len(blocks.each)} transformer layers ({blocks}); write {len(blocks.each)} t in all"
    raise InvalidInput.at(pointer, detail, short_value(text), "layout")


def layers_of_vllm(text: str, layers: Sequence[str], pointer: str) -> tuple[tuple[str, ...], ...]:
    """Give the layers of every stage of a vLLM list: the numbers count the blocks that ``find_blocks`` finds.

    As in vLLM, what comes before the blocks is on the first stage, what comes after on the last. Where the numbers add
    up to all layers of the model, they count layers.

    Raises
    ------
    InvalidInput
        At ``pointer``, when they add up to neither.
    """
    return layers_by_counts(parse_vllm(text), layers, text, pointer)


def layers_by_counts(counts: Sequence[int], layers: Sequence[str], text: str, pointer: str) -> tuple[LayerGroup, ...]:
    """Give the layers of stages with so many blocks each, as ``layers_of_vllm`` does; ``text`` is for the message."""
    blocks = find_blocks(layers)
    if blocks is None or sum(counts) == len(layers):
        blocks = Blocks((), tuple((name,) for name in layers), ())
    if sum(counts) != len(blocks.each):
        detail = f"the numbers add up to {sum(counts)}; make them add up to the {len(blocks.each)} layers of the model"
        if len(blocks.each) < len(layers):
            detail = f"{detail} that are transformer layers ({blocks}), or to all {len(layers)}"
        raise InvalidInput.at(pointer, detail, short_value(text), "partition")
    ends = list(accumulate(counts))
    stages = [
        tuple(name for each in blocks.each[end - count : end] for name in each)
        for end, count in zip(ends, counts, strict=True)
    ]
    stages[0] = blocks.before + stages[0]
    stages[-1] += blocks.after
    return tuple(stages)
