"""A layer and the other measured ways to run it."""

from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from partita.models.base import Faults, Many, Model, at_most
from partita.models.quantities import Bytes, Count, Name, Seconds

MAX_OPTIONS = 256

RECOMPUTE_WORDS = frozenset({"none", "choose", "stage"})
"""Words with a meaning of their own in ``Constraints.recompute``; no option may be named so."""

SELECTORS = ("device", "recompute", "tensor_parallel", "scenario", "microbatch_size")
COSTS = (
    "forward_s",
    "backward_s",
    "weight_gradient_s",
    "activation_bytes",
    "weight_gradient_bytes",
    "workspace_bytes",
    "weight_bytes",
    "buffer_bytes",
    "output_bytes",
)
"""What an option may replace; ``weight_gradient_bytes`` may be None, all others are numbers."""


class _Share(NamedTuple):
    """A cost that is a part of another one, and the words for it."""

    part: str
    whole: str
    name: str
    unit: str
    exceed: str
    less: str


_SHARES = (
    _Share("weight_gradient_s", "backward_s", "the weight gradient", "s", "take longer", "shorter"),
    _Share("weight_gradient_bytes", "activation_bytes", "what the weight gradient needs", "bytes", "be more", "less"),
)


class LayerOption(Model):
    """Another measured way to run a layer; the fields given here replace the layer's own.

    Attributes
    ----------
    device, recompute, tensor_parallel, scenario, microbatch_size
        When the option applies: on this kind of device, with this kind of recompute, at this degree of tensor
        parallelism, in this scenario, with so many samples in a microbatch. At least one is given; all that are given
        must hold. Where several options apply, the one that gives more of these counts, and of equally many the later
        one, field by field.
    forward_s, backward_s, weight_gradient_s
        Seconds of one microbatch, as in ``Layer``; divided by the device's speed unless the option names a device.
    activation_bytes, weight_gradient_bytes, workspace_bytes, weight_bytes, buffer_bytes, output_bytes
        Bytes, as in ``Layer``.
    """

    device: Name | None = None
    recompute: Name | None = None
    tensor_parallel: Count | None = None
    scenario: Name | None = None
    microbatch_size: Count | None = None
    forward_s: Seconds | None = None
    backward_s: Seconds | None = None
    weight_gradient_s: Seconds | None = None
    activation_bytes: Bytes | None = None
    weight_gradient_bytes: Bytes | None = None
    workspace_bytes: Bytes | None = None
    weight_bytes: Bytes | None = None
    buffer_bytes: Bytes | None = None
    output_bytes: Bytes | None = None

    @property
    def selectors(self) -> tuple[str | None, str | None, int | None, str | None, int | None]:
        """When the option applies: device, recompute, tensor-parallel degree, scenario, samples of a microbatch."""
        return self.device, self.recompute, self.tensor_parallel, self.scenario, self.microbatch_size

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        if all(selector is None for selector in self.selectors):
            faults.add((), f"an option says when it applies: give one of {', '.join(SELECTORS)}", code="no_selector")
        if all(getattr(self, cost) is None for cost in COSTS):
            faults.add((), f"an option replaces something: give one of {', '.join(COSTS)}", code="no_cost")
        if self.recompute in RECOMPUTE_WORDS:
            detail = "this word has a meaning of its own in constraints.recompute; name the option otherwise, as 'full'"
            faults.add(("recompute",), detail, self.recompute, "reserved_name")
        faults.raise_if_any("LayerOption")
        return self


class Layer(Model):
    """The atom that is never cut: an operation, a module or a fused group.

    Attributes
    ----------
    name
        Unique in the model.
    forward_s
        Seconds of the forward pass of one microbatch on one device of the reference kind.
    backward_s
        Seconds of the whole backward pass: input gradient and weight gradient.
    weight_gradient_s
        The part of ``backward_s`` that a zero-bubble schedule may postpone.
    activation_bytes
        Bytes kept from forward to backward for one microbatch.
    weight_gradient_bytes
        The part of ``activation_bytes`` that stays from the input gradient until the weight gradient is done; None
        means all of it.
    workspace_bytes
        Bytes needed only while the layer runs.
    weight_bytes
        Bytes of weights that this layer alone uses.
    buffer_bytes
        Bytes that this layer alone holds all the time, whatever the number of microbatches, and that are no weights;
        with ``per_stage_degrees`` only.
    output_bytes
        Bytes of the tensor to the next layer; only where the model lists no tensors.
    options
        Other measured ways to run the layer, each with what it is for: a kind of device, a kind of recompute, a degree
        of tensor parallelism, a scenario or a microbatch size.
    """

    name: Name
    forward_s: Seconds
    backward_s: Seconds = 0.0
    weight_gradient_s: Seconds = 0.0
    activation_bytes: Bytes = 0
    weight_gradient_bytes: Bytes | None = None
    workspace_bytes: Bytes = 0
    weight_bytes: Bytes = 0
    buffer_bytes: Bytes = 0
    output_bytes: Bytes = 0
    options: Annotated[Many[LayerOption], Field(fail_fast=True), at_most(MAX_OPTIONS, "options")] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.weight_gradient_s <= self.backward_s and self.weight_gradient_bytes is None and not self.options:
            return self
        faults = Faults()
        for share in _SHARES:
            _check_share(faults, self, share)
        first: dict[object, int] = {}
        for index, option in enumerate(self.options):
            if first.setdefault(option.selectors, index) != index:
                detail = f"applies in the same case as option {first[option.selectors]}; keep one of them"
                faults.add(("options", index), detail, code="repeated")
        faults.raise_if_any("Layer")
        return self


def _check_share(faults: Faults, layer: Layer, share: _Share) -> None:
    """Refuse a part that exceeds its whole, in the layer and, with what they inherit, in its options."""
    own_part, own_whole = getattr(layer, share.part), getattr(layer, share.whole)
    if own_part is not None and own_part > own_whole:
        faults.add((share.part,), _too_much(share, own_whole), own_part)
        return
    for index, option in enumerate(layer.options):
        part, whole = getattr(option, share.part), getattr(option, share.whole)
        if part is None and whole is not None and own_part is not None and own_part > whole:
            detail = (
                f"{share.less} than the layer's {share.part} ({own_part:.10g} {share.unit}); give it in this option too"
            )
            faults.add(("options", index, share.whole), detail, whole)
        whole = own_whole if whole is None else whole
        if part is not None and part > whole:
            faults.add(("options", index, share.part), _too_much(share, whole), part)


def _too_much(share: _Share, whole: float) -> str:
    """Say that a part exceeds its whole."""
    return f"{share.name} is a part of {share.whole} ({whole:.10g} {share.unit}) and cannot {share.exceed}"
