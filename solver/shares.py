"""How the figures of a plan come about: what every layer and every stage takes of a microbatch's time."""

from dataclasses import dataclass
from math import isclose

import numpy as np

from partita.models.answer import Candidate
from partita.models.problem import Problem
from partita.solver.checks import InternalError
from partita.solver.evaluation import Evaluator
from partita.solver.layout import Layout
from partita.solver.measure import graph_of
from partita.solver.support import refuse_degrees_per_stage, refuse_unsupported
from partita.solver.timeline import ACCURACY, in_shown_scenario, laid_out
from partita.solver.ways import find_ways


@dataclass(frozen=True, slots=True)
class LayerShare:
    """A layer where it runs: seconds of one microbatch, and bytes on each of its devices.

    Attributes
    ----------
    name, stage
        Which layer, and where.
    forward_s, backward_s
        Its passes, recompute included.
    recompute_s
        How much longer its backward pass takes than without recompute.
    weight_bytes, activation_bytes
        Its own weights, and what it keeps of a microbatch from forward to backward.
    """

    name: str
    stage: int
    forward_s: float
    backward_s: float
    recompute_s: float
    weight_bytes: int
    activation_bytes: int


@dataclass(frozen=True, slots=True)
class StageShare:
    """A stage's seconds for one microbatch, in parts that add up to how long it keeps its devices busy.

    Attributes
    ----------
    stage, rank
        Which stage, and on which rank.
    forward_s, backward_s, weight_gradient_s, recompute_s
        Computing: the backward pass without the two after it. The weight gradient is apart where the schedule splits
        backward passes, else part of the backward pass.
    transfers_s
        What transfers take of the stage with ``blocking``.
    """

    stage: int
    rank: int
    forward_s: float
    backward_s: float
    weight_gradient_s: float
    recompute_s: float
    transfers_s: float


@dataclass(frozen=True, slots=True)
class Shares:
    """The layers of a plan, by stage and within a stage in the order of the model, and its stages."""

    layers: tuple[LayerShare, ...]
    stages: tuple[StageShare, ...]


def shares(problem: Problem, candidate: Candidate) -> Shares:
    """Divide the times of a candidate among its layers and stages, in the scenario that it shows.

    Parameters
    ----------
    problem, candidate
        The problem and one of the candidates of an answer to it.

    Raises
    ------
    NotSupportedYet, InvalidInput
        When the problem cannot be planned or chooses degrees for each stage; when the candidate's stages are no plan
        for it (pointers start at ``/plan``).
    InternalError
        When the candidate's figures are not those that its stages have.
    """
    refuse_degrees_per_stage(problem, "the shares of layers")
    configured = in_shown_scenario(problem.configured(candidate), candidate)
    refuse_unsupported(configured)
    layout = laid_out(configured, candidate)
    layers = _layers(configured, layout, len(candidate.stages))
    return Shares(layers, _stages(layout, candidate, layers))


def _layers(problem: Problem, layout: Layout, num_stages: int) -> tuple[LayerShare, ...]:
    """Give what every layer takes, as it runs and without recompute."""
    instance, plan = layout.instance, layout.plan
    kind = plan.kind(instance, graph_of(instance, num_stages).pipeline.rank_of)
    costs = instance.ways.of(kind, plan.option)
    constraints = problem.constraints.model_copy(update={"recompute": "none"})
    plain = find_ways(problem.model_copy(update={"constraints": constraints}), instance.factors)
    without = plain.of(kind, np.zeros_like(plan.option)).backward
    extra = np.where(costs.recomputed, np.maximum(costs.backward - without, 0.0), 0.0)
    names = [layer.name for layer in problem.model.layers]
    return tuple(
        LayerShare(
            name=names[layer],
            stage=int(plan.stage[layer]),
            forward_s=float(costs.forward[layer]),
            backward_s=float(costs.backward[layer]),
            recompute_s=float(extra[layer]),
            weight_bytes=int(costs.weight[layer]),
            activation_bytes=int(costs.activation[layer]),
        )
        for layer in np.argsort(plan.stage, kind="stable").tolist()
    )


def _stages(layout: Layout, candidate: Candidate, layers: tuple[LayerShare, ...]) -> tuple[StageShare, ...]:
    """Give what every stage takes; the evaluator has priced it."""
    (times,) = Evaluator(layout.instance).measures(layout.plan).times
    transfers = (times.busy - times.passes).sum(axis=0)
    recompute = [0.0] * len(candidate.stages)
    for layer in layers:
        recompute[layer.stage] += layer.recompute_s
    found = []
    for stage in candidate.stages:
        forward, whole = float(times.forward[stage.index]), float(times.backward[stage.index])
        if not isclose(forward + whole, stage.forward_s + stage.backward_s, rel_tol=ACCURACY):
            theirs = stage.forward_s + stage.backward_s
            detail = f"stage {stage.index} of the candidate takes {theirs!r} s, its layers {forward + whole!r} s"
            raise InternalError(detail)
        weights = stage.weight_gradient_s if candidate.schedule.splits else 0.0
        found.append(
            StageShare(
                stage=stage.index,
                rank=stage.rank,
                forward_s=forward,
                backward_s=max(0.0, whole - weights - recompute[stage.index]),
                weight_gradient_s=weights,
                recompute_s=recompute[stage.index],
                transfers_s=float(transfers[stage.index]),
            )
        )
    return tuple(found)
