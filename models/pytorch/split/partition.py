"""Which operations are on which stage, and which values cross every boundary.

A value is made on one stage; it crosses every boundary between there and its last reader, so that only neighbors
exchange anything (a relay). Inputs of the model enter at the first stage, and the loss leaves at the last. Sources are
repeated by every stage that reads them and never cross.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partita.models.pytorch.layers import CapturedLayer
from partita.models.pytorch.records import CapturedGraph
from partita.models.pytorch.segments import result_of

OTHER_DEPTH = "capture it with the depth that it was profiled with, or profile and plan it again"
"""What to do about layers that are not those of the module."""


class CannotSplit(ValueError):
    """A partition that cannot run; the text says where and why, and what would do."""


@dataclass(frozen=True)
class Partition:
    """Stages of a captured graph.

    Attributes
    ----------
    layers
        The layers of every stage, in the order in which they run.
    crossing
        For every boundary the values that cross it, in the order of the graph.
    owners
        For every trained parameter, by its first name, the stages that read it.
    """

    layers: tuple[tuple[CapturedLayer, ...], ...]
    crossing: tuple[tuple[str, ...], ...]
    owners: Mapping[str, tuple[int, ...]]

    @property
    def num_stages(self) -> int:
        """How many stages there are."""
        return len(self.layers)

    @property
    def tied(self) -> tuple[str, ...]:
        """The trained parameters that several stages read."""
        return tuple(name for name, stages in self.owners.items() if len(stages) > 1)


def partition(graph: CapturedGraph, layers: Sequence[CapturedLayer], stages: Sequence[Sequence[str]]) -> Partition:
    """Put layers on stages.

    Parameters
    ----------
    graph, layers
        As captured.
    stages
        The names of the layers of every stage.

    Raises
    ------
    CannotSplit
        When a layer is missing, unknown or on two stages, a stage reads what a later one makes, or nothing crosses a
        boundary.
    """
    chosen = _checked(layers, stages)
    stage_of = {name: chosen[layer.name] for layer in layers for name in layer.operations}
    _check_order(graph, layers, stage_of)
    last = len(stages) - 1
    until = {
        name: max((stage_of[each] for each in graph.readers[name] if each in stage_of), default=-1)
        for name in graph.values
    }
    until[result_of(graph)] = last
    made = {name: stage_of.get(name, 0) for name in graph.values}
    repeated = {name for layer in layers for name in layer.repeated}
    crossing = tuple(
        tuple(name for name in graph.values if name not in repeated and made[name] <= stage < until[name])
        for stage in range(last)
    )
    for stage, names in enumerate(crossing):
        if not names:
            raise CannotSplit(f"nothing passes from stage {stage} to {stage + 1}; join the two")
    return Partition(
        layers=tuple(tuple(layer for layer in layers if chosen[layer.name] == stage) for stage in range(len(stages))),
        crossing=crossing,
        owners=_owners(graph, stage_of),
    )


def _checked(layers: Sequence[CapturedLayer], stages: Sequence[Sequence[str]]) -> dict[str, int]:
    """Give the stage of every layer; every layer is on one."""
    known = {layer.name for layer in layers}
    chosen: dict[str, int] = {}
    for stage, names in enumerate(stages):
        for name in names:
            if name not in known:
                raise CannotSplit(f"stage {stage}: the module has no layer {name!r}; {OTHER_DEPTH}")
            if name in chosen:
                raise CannotSplit(f"layer {name!r} is on stages {chosen[name]} and {stage}; leave it on one")
            chosen[name] = stage
    for layer in layers:
        if layer.name not in chosen:
            raise CannotSplit(f"layer {layer.name!r} is on no stage; put every layer on one")
    return chosen


def _check_order(graph: CapturedGraph, layers: Sequence[CapturedLayer], stage_of: Mapping[str, int]) -> None:
    """Refuse a stage that reads what a later one makes."""
    layer_of = {name: layer.name for layer in layers for name in layer.operations}
    for name, stage in stage_of.items():
        for read in graph.operations[name].inputs:
            if stage_of.get(read, 0) > stage:
                reader, maker = f"{layer_of[name]!r} on stage {stage}", f"{layer_of[read]!r} on stage {stage_of[read]}"
                raise CannotSplit(f"{reader} reads what {maker} makes; put it on that stage or a later one")


def _owners(graph: CapturedGraph, stage_of: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Give for every trained parameter the stages that read it."""
    first = {name: state.names[0] for name, state in graph.parameters.items() if state.trained}
    found: dict[str, set[int]] = {name: set() for name in first.values()}
    for name, stage in stage_of.items():
        for parameter in graph.operations[name].parameters:
            if parameter in first:
                found[first[parameter]].add(stage)
    return {name: tuple(sorted(stages)) for name, stages in found.items()}
