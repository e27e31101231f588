"""A plan that the user brings, to be priced."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Self

from pydantic import Discriminator, Field, Tag, model_validator

from partita.models.base import MAX_FAULTS, Faults, Many, Model, at_most, unique
from partita.models.choices import TrainingChoice
from partita.models.errors import Fault, InvalidInput, short_value
from partita.models.layer_bounds import DeepSpeedParts, layers_of_parts
from partita.models.layout_text import MegatronLayout, VllmPartition, layers_of_megatron, layers_of_vllm
from partita.models.megatron_arguments import MegatronArguments, layers_of_numbers
from partita.models.module_names import layers_of_modules
from partita.models.naming import listing, quoted
from partita.models.profile import MAX_LAYERS
from partita.models.quantities import Count, Name
from partita.models.schedule import Schedule
from partita.models.tensor import LayerNames


class GivenStage(Model):
    """One stage.

    Attributes
    ----------
    layers
        The names of its layers.
    options
        The option of recompute of its layers, where these are chosen; the others run as they stand.
    devices
        Where it is placed, its devices (``node0:5``).
    """

    layers: LayerNames
    options: dict[Name, Name] = Field(default={}, max_length=MAX_LAYERS)
    devices: Annotated[Many[Name], Field(fail_fast=True), unique("device"), at_most(MAX_LAYERS, "devices")] = ()


CutPoint = Annotated[
    Annotated[Name, Tag("(name)")] | Annotated[Count, Tag("(number)")],
    Discriminator(lambda value: "(name)" if isinstance(value, str) else "(number)"),
]
"""Where a boundary lies: after the layer of this name, or after the first so many layers."""


class GivenConfiguration(Model):
    """The configuration that a plan is for, as in ``Candidate``; what is None may be any.

    Attributes
    ----------
    schedule
        The order of the passes.
    tensor_parallel, data_parallel, replicas_per_node
        Degrees, and the replicas of a stage that share a node.
    num_microbatches, microbatch_size
        Microbatches of an iteration in each replica, and samples of a microbatch.
    """

    schedule: Schedule | None = None
    tensor_parallel: Count | None = None
    data_parallel: Count | None = None
    replicas_per_node: Count | None = None
    num_microbatches: Count | None = None
    microbatch_size: Count | None = None

    def allows(self, choice: TrainingChoice) -> bool:
        """Tell whether this is one of the configurations that are meant."""
        fields = type(self).model_fields
        return all(getattr(self, field) in (None, getattr(choice, field)) for field in fields)


class GivenPlan(Model):
    """A plan in one of several forms.

    Attributes
    ----------
    stages
        The stages in order, with their layers and perhaps their devices.
    stage_sizes
        The number of layers of each stage, in the order of the model's layers.
    cut_after
        Where the boundaries lie, in the order of the model's layers: each after a layer that is named, or after the
        first so many layers.
    megatron_layout
        A string for Megatron's ``--pipeline-model-parallel-layout``, such as ``Et*3|(tt|)*4L``. Each t stands for the
        layers of one number in the longest series of numbered names (block.0, block.1, ...), E for all before them
        and L for all after them; where their number is another one, as many letters as layers stand for each other.
    megatron_arguments
        Numbers of transformer layers as Megatron takes them: ``--num-layers``, ``--pipeline-model-parallel-size``,
        ``--decoder-first-pipeline-num-layers`` and ``--decoder-last-pipeline-num-layers`` or one of these, and
        ``--num-virtual-stages-per-pipeline-rank``.
    vllm_partition
        A list for vLLM's ``VLLM_PP_LAYER_PARTITION``, such as ``8,8,8,8``: numbers of layers, or of the numbered ones
        alone; then those before them are on the first stage and those after them on the last.
    torchtitan_parts
        The lists of torchtitan's ``module_fqns_per_model_part``; a module stands for all layers in it.
    deepspeed_parts
        The bounds of DeepSpeed's ``PipelineModule.parts``, such as ``[0, 3, 5, 8]``.
    configuration
        Besides: the schedule, degrees and batch that it is for, of those that the problem spans; where it spans none
        such, the plan is looked at in all.
    """

    stages: Annotated[Many[GivenStage], Field(min_length=1), at_most(MAX_LAYERS, "stages")] | None = None
    stage_sizes: Annotated[Many[Count], Field(min_length=1), at_most(MAX_LAYERS, "stages")] | None = None
    cut_after: Annotated[Many[CutPoint], unique("the place"), at_most(MAX_LAYERS, "boundaries")] | None = None
    megatron_layout: MegatronLayout | None = None
    megatron_arguments: MegatronArguments | None = None
    vllm_partition: VllmPartition | None = None
    torchtitan_parts: Annotated[Many[LayerNames], Field(min_length=1), at_most(MAX_LAYERS, "stages")] | None = None
    deepspeed_parts: DeepSpeedParts | None = None
    configuration: GivenConfiguration = GivenConfiguration()

    def choices(self, among: Sequence[TrainingChoice]) -> Sequence[TrainingChoice]:
        """Give the configurations in which the plan is looked at: those that are meant, or all."""
        return [choice for choice in among if self.configuration.allows(choice)] or among

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
            When a layer does not exist, is on two stages or on none, the sizes do not add up, or letters or numbers
            of another framework cannot be told to stand for layers.
        """
        if self.stage_sizes is not None:
            return _by_sizes(self.stage_sizes, layers, pointer)
        if self.cut_after is not None:
            return _by_cuts(self.cut_after, layers, pointer)
        if self.megatron_layout is not None:
            return layers_of_megatron(self.megatron_layout, layers, f"{pointer}/megatron_layout")
        if self.megatron_arguments is not None:
            return layers_of_numbers(self.megatron_arguments, layers, f"{pointer}/megatron_arguments")
        if self.vllm_partition is not None:
            return layers_of_vllm(self.vllm_partition, layers, f"{pointer}/vllm_partition")
        if self.torchtitan_parts is not None:
            return layers_of_modules(self.torchtitan_parts, layers, f"{pointer}/torchtitan_parts")
        if self.deepspeed_parts is not None:
            return layers_of_parts(self.deepspeed_parts, layers, f"{pointer}/deepspeed_parts")
        stages = tuple(stage.layers for stage in self.stages or ())
        _check_layers(stages, layers, pointer)
        return stages

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        forms = [field for field in type(self).model_fields if field != "configuration"]
        given = [form for form in forms if getattr(self, form) is not None]
        if len(given) != 1:
            listed = ", ".join(given or forms)
            detail = f"a plan is given in one form; {'keep one of' if given else 'give one of'} {listed}"
            faults.add((), detail, code="one_form")
        faults.raise_if_any("GivenPlan")
        return self


def _by_sizes(sizes: Sequence[int], layers: Sequence[str], pointer: str) -> tuple[tuple[str, ...], ...]:
    """Cut the layers, in order, into stages of the given sizes."""
    if sum(sizes) != len(layers):
        detail = f"the sizes add up to {sum(sizes)}, but the model has {len(layers)} layers"
        raise InvalidInput.at(f"{pointer}/stage_sizes", detail, short_value(list(sizes)), "stage_sizes")
    ends = list(accumulate(sizes))
    return tuple(tuple(layers[end - size : end]) for size, end in zip(sizes, ends, strict=True))


def _by_cuts(cuts: Sequence[str | int], layers: Sequence[str], pointer: str) -> tuple[tuple[str, ...], ...]:
    """Cut the layers, in order, at the given places."""
    place = {name: position for position, name in enumerate(layers, start=1)}
    ends: list[int] = []
    for index, cut in enumerate(cuts):
        at, before = f"{pointer}/cut_after/{index}", ends[-1] if ends else 0
        if isinstance(cut, str) and cut not in place:
            detail = f"there is no layer {quoted(cut)}{listing(place, '; there are ')}"
            raise InvalidInput.at(at, detail, short_value(cut), "unknown_name")
        end = place[cut] if isinstance(cut, str) else cut
        if end >= len(layers):
            detail = f"no layer comes after the first {end} of {len(layers)}; a boundary lies between two layers"
            raise InvalidInput.at(at, detail, short_value(cut), "cut_after")
        if end <= before:
            detail = f"this boundary comes after {end} layers, the one before it after {before}; list them in order"
            raise InvalidInput.at(at, detail, short_value(cut), "cut_after")
        ends.append(end)
    ends.append(len(layers))
    return tuple(tuple(layers[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True))


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
