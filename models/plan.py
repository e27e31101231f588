"""A plan that the user brings, to be priced."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Self

from pydantic import Field, model_validator

from partita.models.base import MAX_FAULTS, Faults, Many, Model, at_most, unique
from partita.models.errors import Fault, InvalidInput, short_value
from partita.models.naming import listing, quoted
from partita.models.profile import MAX_LAYERS
from partita.models.quantities import Count, Name
from partita.models.tensor import LayerNames


class GivenStage(Model):
    """One stage: the names of its layers and, where placed, of its devices (``node0:5``).

    ``options`` names the option of recompute of its layers, where these are chosen; the others run as they stand.
    """

    layers: LayerNames
    options: dict[Name, Name] = Field(default={}, max_length=MAX_LAYERS)
    devices: Annotated[Many[Name], Field(fail_fast=True), unique("device"), at_most(MAX_LAYERS, "devices")] = ()


class GivenPlan(Model):
    """A plan in one of two forms.

    Attributes
    ----------
    stages
        The stages in order, with their layers and perhaps their devices.
    stage_sizes
        The number of layers of each stage, in the order of the model's layers.
    """

    stages: Annotated[Many[GivenStage], Field(min_length=1), at_most(MAX_LAYERS, "stages")] | None = None
    stage_sizes: Annotated[Many[Count], Field(min_length=1), at_most(MAX_LAYERS, "stages")] | None = None

    def stage_layers(self, layers: Sequence[str], pointer: str = "") -> tuple[tuple[str, ...], ...]:
        """Give the layers of every stage.

        Parameters
        ----------
        layers
            The names of the model's layers, in order.
        pointer
            Where the plan stands in its document, for the faults.

        Raises
        ------
        InvalidInput
            When a layer does not exist, is on two stages or on none, or the sizes do not add up.
        """
        if self.stage_sizes is not None:
            return _by_sizes(self.stage_sizes, layers, pointer)
        stages = tuple(stage.layers for stage in self.stages or ())
        _check_layers(stages, layers, pointer)
        return stages

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        if (self.stages is None) == (self.stage_sizes is None):
            faults.add((), "a plan is given either by its stages or by its stage_sizes", code="one_form")
        faults.raise_if_any("GivenPlan")
        return self


def _by_sizes(sizes: Sequence[int], layers: Sequence[str], pointer: str) -> tuple[tuple[str, ...], ...]:
    """Cut the layers, in order, into stages of the given sizes."""
    if sum(sizes) != len(layers):
        detail = f"the sizes add up to {sum(sizes)}, but the model has {len(layers)} layers"
        raise InvalidInput.at(f"{pointer}/stage_sizes", detail, short_value(list(sizes)), "stage_sizes")
    ends = list(accumulate(sizes))
    return tuple(tuple(layers[end - size : end]) for size, end in zip(sizes, ends, strict=True))


def _check_layers(stages: Sequence[Sequence[str]], layers: Sequence[str], pointer: str) -> None:
    """Refuse layers that do not exist, and layers on two stages or on none."""
    known = dict.fromkeys(layers)
    stage_of: dict[str, int] = {}
    faults: list[Fault] = []
    for index, stage in enumerate(stages):
        for position, name in enumerate(stage):
            place = f"{pointer}/stages/{index}/layers/{position}"
            if name not in known:
                detail = f"there is no layer {quoted(name)}{listing(known, '; there are ')}"
                faults.append(Fault(place, detail, short_value(name), "unknown_name"))
            elif name in stage_of:
                detail = f"the layer is already on stage {stage_of[name]}; every layer is on one stage"
                faults.append(Fault(place, detail, short_value(name), "repeated"))
            stage_of.setdefault(name, index)
    left = [name for name in layers if name not in stage_of]
    if left:
        detail = f"{len(left)} of {len(layers)} layers are on no stage: {listing(left)}; add them"
        faults.append(Fault(f"{pointer}/stages", detail, None, "missing_layers"))
    if faults:
        raise InvalidInput(faults[:MAX_FAULTS])
