"""Joins the operations of a captured graph to layers, the atoms that a plan never cuts."""

from dataclasses import dataclass
from typing import Literal

from partita.models.pytorch.exporting import LOSS
from partita.models.pytorch.groups import Groups
from partita.models.pytorch.labels import block_labels, depth_labels
from partita.models.pytorch.records import CapturedGraph, Operation
from partita.models.pytorch.sources import bound_together, needed_sources, sources
from partita.models.quantities import MAX_NAME

Depth = Literal["blocks", "points", "operations"] | int
"""How far operations are joined: to repeated blocks and the modules beside them, between points where a single value
passes, not at all, or to modules whose paths have so many names."""


@dataclass(frozen=True, slots=True)
class CapturedLayer:
    """A layer of a captured module.

    Attributes
    ----------
    name
        The call of the module, such as ``h.0`` or ``rep@1``, or the module and name of the first operation.
    operations
        Those that it alone runs, in the order of the graph.
    repeated
        The sources that it repeats for itself.
    """

    name: str
    operations: tuple[str, ...]
    repeated: tuple[str, ...]


def coarsen(graph: CapturedGraph, depth: Depth = "blocks") -> tuple[CapturedLayer, ...]:
    """Join operations to layers.

    Whatever the depth, no layer cuts what must stay together: results taken out of one operation, operations around
    memory that is written in place, layers that would need each other, and the loss.

    Raises
    ------
    ValueError
        When the depth is none.
    """
    if not (depth in ("blocks", "points", "operations") or (type(depth) is int and depth >= 1)):
        raise ValueError(f"depth: 'blocks', 'points', 'operations' or a number from 1 on (got {depth!r})")
    repeated = sources(graph)
    groups = Groups(graph, repeated)
    for name in groups.names:
        if graph.operations[name].selects:
            groups.join((name, *groups.made_by(name)))
    for together in bound_together(graph):
        groups.join(operation.name for operation in together)
    labels = {name: LOSS for name in groups.names if graph.operations[name].in_loss}
    groups.join(labels)
    if depth == "blocks" or isinstance(depth, int):
        labels |= block_labels(graph, groups.names) if depth == "blocks" else depth_labels(graph, groups.names, depth)
        _join_labeled(groups, labels)
    else:
        _join_small(graph, groups)
        if depth == "points":
            _join_between_points(graph, groups)
    parts = groups.ordered()
    names = _names([_name(graph, labels, part) for part in parts])
    return tuple(
        CapturedLayer(name, part, needed_sources(graph, repeated, part))
        for name, part in zip(names, parts, strict=True)
    )


def _join_labeled(groups: Groups, labels: dict[str, str]) -> None:
    """Join operations of one label; those without go with what they read last, or with what reads them first.

    The loss is no module: what it alone reads of these is a layer of its own.
    """
    by_label: dict[str, list[str]] = {}
    for name, label in labels.items():
        by_label.setdefault(label, []).append(name)
    for names in by_label.values():
        groups.join(names)
    placed = set(labels)
    for name in groups.names:
        makers = [each for each in groups.made_by(name) if each in placed]
        if name not in placed and makers:
            groups.join((name, makers[-1]))
            placed.add(name)
    own = []  # what no module inside made and only the loss reads: the work of the outermost module itself
    for name in reversed(groups.names):
        readers = groups.read_by(name)
        if name in placed or not readers:
            continue
        if labels.get(readers[0]) == LOSS or readers[0] in own:
            own.append(name)
        else:
            groups.join((name, readers[0]))
    groups.join(own)


def _join_small(graph: CapturedGraph, groups: Groups) -> None:
    """Join operations that take no time by themselves to others.

    A view goes with what it looks at, where nothing but views reads that; otherwise with what reads it, so that one
    memory is not sent twice. What depends on weights alone goes with its only reader, and what only writes to a buffer
    with the next operation of its module. A check, which makes nothing, goes with what it checks.
    """
    for name in groups.names:
        operation, readers = graph.operations[name], groups.read_by(name)
        makers = groups.made_by(name)
        only_viewed = makers and all(graph.operations[each].view for each in groups.read_by(makers[0]))
        if (makers and not operation.makes_tensors) or (operation.view and only_viewed):
            groups.join((name, makers[0]))
        elif readers and (operation.view or (len(readers) == 1 and _from_state(graph, groups, operation))):
            groups.join((name, readers[0]))
        elif not readers and operation.written and _from_state(graph, groups, operation):
            groups.join((name, _next_of_module(graph, groups, operation)))


def _from_state(graph: CapturedGraph, groups: Groups, operation: Operation) -> bool:
    """Tell whether an operation reads weights and buffers alone."""
    return not groups.made_by(operation.name) and not set(operation.inputs) & set(graph.inputs)


def _next_of_module(graph: CapturedGraph, groups: Groups, operation: Operation) -> str:
    """Give the next operation of the same call of a module; the operation itself where there is none."""
    after = (
        name
        for name in groups.names
        if graph.operations[name].position > operation.position and graph.operations[name].calls == operation.calls
    )
    return next(after, operation.name)


def _join_between_points(graph: CapturedGraph, groups: Groups) -> None:
    """Join all operations between two points that a single value passes; inputs of the model are not counted."""
    order = groups.names
    place = {name: number for number, name in enumerate(order)}
    until = [max((place[each] for each in groups.read_by(name)), default=-1) for name in order]
    reach: dict[str, int] = {}
    for number, name in enumerate(order):
        reach[groups.root(name)] = number
    part: list[str] = []
    live: set[int] = set()
    inside = -1  # the last operation of the groups that have begun
    for number, name in enumerate(order):
        part.append(name)
        inside = max(inside, reach[groups.root(name)])
        live = {each for each in live if until[each] > number} | ({number} if until[number] > number else set())
        if len(live) <= 1 and inside <= number:
            groups.join(part)
            part = []
    groups.join(part)


def _name(graph: CapturedGraph, labels: dict[str, str], part: tuple[str, ...]) -> str:
    """Name a layer after the modules in it, the first and the last, or after its first operation."""
    found = list(dict.fromkeys(labels[name] for name in part if name in labels))
    if not found:
        return graph.operations[part[0]].place[-MAX_NAME:]
    return (found[0] if len(found) == 1 else f"{found[0]}…{found[-1]}")[-MAX_NAME:]


def _names(names: list[str]) -> list[str]:
    """Tell layers of one name apart by a number."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}#{seen[name]}"[-MAX_NAME:])
    return found
