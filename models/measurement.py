"""How the costs of a profile were found."""

from typing import Annotated, Literal

from pydantic import Field

from partita.models.base import Many, Model, at_most
from partita.models.quantities import Bytes, Count, Name, Position, Seconds

Spread = Annotated[float, Field(ge=0)]


class InputTensor(Model):
    """An example input.

    Attributes
    ----------
    shape
        That of one microbatch.
    dtype
        The type of its elements.
    """

    shape: Annotated[Many[Position], at_most(64, "dimensions")]
    dtype: Name


class Measurement(Model):
    """What was measured, on what and how; for people, and to tell profiles apart. No plan depends on it.

    Attributes
    ----------
    kind
        ``measured``, or ``analytic`` where costs follow from counts of operations.
    device, torch_version
        What the costs hold for.
    mode, dtype
        Whether the module was in training mode; the type of most of its parameters.
    inputs
        The inputs of one microbatch.
    repetitions
        How often each layer was measured; the median counts.
    forward_s, backward_s
        The passes of the whole model, measured as one.
    saved_bytes
        What the whole model keeps from forward to backward for one microbatch, as it was captured.
    module_saved_bytes
        What the module itself was measured to keep; another number where its code runs otherwise when it is exported.
        None where costs are estimates.
    spreads
        For every layer the interquartile range of its measured times, forward and backward, relative to their medians;
        the larger of the two.
    """

    kind: Literal["measured", "analytic"]
    device: Name
    torch_version: Name
    mode: Literal["training", "evaluation"]
    dtype: Name
    inputs: Annotated[Many[InputTensor], at_most(1000, "inputs")]
    repetitions: Count
    forward_s: Seconds
    backward_s: Seconds
    saved_bytes: Bytes
    module_saved_bytes: Bytes | None = None
    spreads: dict[Name, Spread]
