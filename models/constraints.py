"""What the user demands of every plan besides its figures."""

from typing import Annotated

from pydantic import Field

from partita.models.base import Many, Model, at_most, unique
from partita.models.profile import MAX_LAYERS
from partita.models.quantities import Name, Position

Group = Annotated[Many[Name], Field(min_length=2), unique("layer"), at_most(MAX_LAYERS, "layers")]
Groups = Annotated[Many[Group], at_most(MAX_LAYERS, "groups")]


class Constraints(Model):
    """Where layers may and may not go.

    Attributes
    ----------
    pins
        The stage of a layer, by the layer's name.
    together
        Groups of layers, each on one stage.
    apart
        Groups of layers on stages that all differ.
    cut_after
        The only layers after which a boundary may lie; None means after any.
    recompute
        ``none``; the ``recompute`` of options of layers, such as ``full``, which every layer that has it uses;
        ``choose``: each layer runs as it stands or by one of its options with a ``recompute``, whichever makes the best
        plan; ``stage``: the same choice for all layers of a stage.
    """

    pins: dict[Name, Position] = Field(default={}, max_length=MAX_LAYERS)
    together: Groups = ()
    apart: Groups = ()
    cut_after: Annotated[Many[Name], unique("layer"), at_most(MAX_LAYERS, "layers")] | None = None
    recompute: Name = "none"
