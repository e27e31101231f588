"""The arguments by which Megatron-LM splits a model: a layout, or numbers of layers for the first and last rank."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator

from partita.models.base import fault
from partita.models.layout_text import MAX_TEXT, layers_by_counts
from partita.models.profile import MAX_LAYERS

LAYOUT = "--pipeline-model-parallel-layout"
RANKS = "--pipeline-model-parallel-size"
LAYERS = "--num-layers"
FIRST = "--decoder-first-pipeline-num-layers"
LAST = "--decoder-last-pipeline-num-layers"
CHUNKS = "--num-virtual-stages-per-pipeline-rank"

_NUMBERS = (LAYERS, RANKS, FIRST, LAST, CHUNKS)
_NUMBER = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of transformer layers: of the model, of the first rank and of the last one; the others are equal.

    Attributes
    ----------
    layers, ranks
        Transformer layers of the model, and ranks of the pipeline.
    first, last
        Transformer layers of the first and of the last rank, all its stages together; None where they have as many as
        the others.
    chunks
        Stages of every rank.
    """

    layers: int
    ranks: int
    first: int | None = None
    last: int | None = None
    chunks: int = 1

    def counts(self) -> tuple[int, ...]:
        """Give the transformer layers of every stage.

        Raises
        ------
        PydanticCustomError
            When Megatron could not divide the layers so.

        References
        ----------
        Megatron-LM, ``get_num_layers_to_build`` in megatron/core/transformer/transformer_block.py.
        """
        given = [self.first, *[None] * (self.ranks - 2), self.last]
        left = self.layers - sum(number for number in given if number is not None)
        others = given.count(None)
        if left < 0 or (left % others if others else left):
            detail = f"{left} of {self.layers} layers are left for {others} other ranks; each has equally many"
            raise fault("megatron_arguments", detail)
        of_rank = [left // others if number is None else number for number in given]
        for rank, number in enumerate(of_rank):
            if number % self.chunks or not number:
                detail = f"rank {rank} has {number} layers for {self.chunks} stages; each has equally many, at least 1"
                raise fault("megatron_arguments", detail)
        return tuple(of_rank[stage % self.ranks] // self.chunks for stage in range(self.ranks * self.chunks))


def arguments_in(text: str) -> dict[str, str] | None:
    """Give those of the arguments that a text of a command line has, by their names; None where it has none.

    Lines that begin with # and other arguments are left out.
    """
    if LAYOUT not in text and FIRST not in text and LAST not in text:
        return None
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return None
    split = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    return {name: value for name, value in pairwise(split) if name == LAYOUT or name in _NUMBERS}


def parse_numbers(text: str) -> Numbers:
    """Read arguments that give numbers of layers.

    Raises
    ------
    PydanticCustomError
        When one that is needed is missing, or is no number.
    """
    found = (arguments_in(text) if len(text) <= MAX_TEXT else None) or {}
    missing = [name for name in (LAYERS, RANKS) if name not in found]
    if missing or not {FIRST, LAST} & set(found):
        detail = f"expected {LAYERS}, {RANKS} and {FIRST} or {LAST}, such as '{_EXAMPLE}'"
        raise fault("megatron_arguments", detail)
    values: dict[str, int] = {}
    for name in _NUMBERS:
        value = found.get(name)
        if value is not None and (not _NUMBER.fullmatch(value) or not 1 <= int(value) <= MAX_LAYERS):
            raise fault("megatron_arguments", f"{name} is a number from 1 to {MAX_LAYERS}, not {value[:20]!r}")
        if value is not None:
            values[name] = int(value)
    if values[RANKS] < 2:
        raise fault("megatron_arguments", f"{RANKS} is at least 2 where the first and the last rank differ")
    numbers = Numbers(values[LAYERS], values[RANKS], values.get(FIRST), values.get(LAST), values.get(CHUNKS, 1))
    if numbers.ranks * numbers.chunks > MAX_LAYERS:
        raise fault("megatron_arguments", f"{numbers.ranks * numbers.chunks} stages; at most {MAX_LAYERS} are read")
    numbers.counts()
    return numbers


_EXAMPLE = f"{LAYERS} 12 {RANKS} 4 {FIRST} 2 {LAST} 2"


def _checked(text: str) -> str:
    parse_numbers(text)
    return text


MegatronArguments = Annotated[str, AfterValidator(_checked)]
"""Arguments of Megatron such as ``--num-layers 12 --pipeline-model-parallel-size 4
--decoder-first-pipeline-num-layers 2``."""


def layers_of_numbers(text: str, layers: Sequence[str], pointer: str) -> tuple[tuple[str, ...], ...]:
    """Give the layers of every stage of such arguments, as ``layers_of_vllm`` does for its numbers.

    Raises
    ------
    InvalidInput
        At ``pointer``, when they do not add up.
    """
    return layers_by_counts(parse_numbers(text).counts(), layers, text, pointer)
