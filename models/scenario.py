"""Kinds of batch that alternate, such as sequence lengths: of one plan the costs in each, and over all of them."""

from typing import Annotated, Literal

from pydantic import Field

from partita.models.answer_plan import Metrics
from partita.models.base import Model
from partita.models.quantities import Count, Name

OverScenarios = Literal["expected", "worst"]
"""Whether the times of a plan are the means over the scenarios, by their shares, or those of the longest."""


class Scenario(Model):
    """A kind of batch; every iteration is of one kind.

    Attributes
    ----------
    name
        By which options of layers, tensors and shared activations name it.
    share
        Its share of the iterations, 0 to 1.
    sequence_length
        Tokens of a sample; None for that of the training set-up.
    """

    name: Name
    share: Annotated[float, Field(gt=0, le=1)]
    sequence_length: Count | None = None


class ScenarioResult(Model):
    """What a plan costs in one scenario: its name, its share, and the metrics of an iteration of this kind."""

    name: Name
    share: float
    metrics: Metrics
