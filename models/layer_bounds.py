"""Stages as bounds between layers, as DeepSpeed has them, and the layers that they mean."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from partita.models.base import Many, at_most, fault
from partita.models.errors import InvalidInput, short_value
from partita.models.module_names import without_loss
from partita.models.profile import MAX_LAYERS
from partita.models.quantities import Position

_PARTS = re.compile(r"\bparts\s*=\s*\[(?P<numbers>\s*[0-9]{1,9}\s*(?:,\s*[0-9]{1,9}\s*)*),?\s*\]", re.IGNORECASE)


def _ascending(parts: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse bounds that do not begin at 0 or do not grow."""
    if parts[0] != 0:
        raise fault("parts", f"the first bound is {parts[0]}; the layers begin at 0")
    for stage, (start, end) in enumerate(pairwise(parts)):
        if end <= start:
            raise fault("parts", f"stage {stage} would hold the layers {start} to {end}; every bound is larger")
    return parts


DeepSpeedParts = Annotated[
    Many[Position], Field(min_length=2), at_most(MAX_LAYERS + 1, "bounds"), AfterValidator(_ascending)
]
"""The bounds of the stages of a DeepSpeed ``PipelineModule``, such as ``[0, 3, 5, 8]``: its ``parts``."""


def deepspeed_parts(text: str) -> list[int] | None:
    """Find ``parts = [0, 3, 5, 8]`` in a text, such as a Python file; None where it is not."""
    found = _PARTS.search(text)
    return None if found is None else [int(number) for number in found["numbers"].split(",")]


def layers_of_parts(parts: Sequence[int], layers: Sequence[str], pointer: str) -> tuple[tuple[str, ...], ...]:
    """Give the layers of every stage of DeepSpeed's bounds.

    Where the last bound leaves out a layer called ``loss`` at the end, which DeepSpeed takes as a function, that is on
    the last stage.

    Raises
    ------
    InvalidInput
        At ``pointer``, when the last bound is not the number of layers.
    """
    modules = without_loss(layers)
    if parts[-1] not in (len(layers), len(modules)):
        counts = f"{len(modules)} or, with the loss, {len(layers)}" if modules != tuple(layers) else f"{len(layers)}"
        detail = f"the last bound is {parts[-1]}, but the model has {counts} layers; write that"
        raise InvalidInput.at(pointer, detail, short_value(list(parts)), "parts")
    ends = [*parts[1:-1], len(layers)]
    return tuple(tuple(layers[start:end]) for start, end in zip(parts[:-1], ends, strict=True))
