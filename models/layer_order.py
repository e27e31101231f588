"""Layers are listed in a topological order of the forward tensors: a producer stands before its consumers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from partita.models.base import Faults
from partita.models.graph import shortest_path, strong_components
from partita.models.naming import SHOWN_LENGTH, quoted
from partita.models.tensor import Tensor

MAX_CYCLES_TRIED = 20
"""Edges through which the shortest cycle is looked for."""
MAX_CYCLE_SHOWN = 12
"""Most layers of a cycle that a message names."""


class _Backward(NamedTuple):
    """An edge against the order of the layers: tensor and consumer by number, both layers by position."""

    tensor: int
    consumer: int
    producer_at: int
    consumer_at: int


def check_order(faults: Faults, tensors: Sequence[Tensor], index: Mapping[str, int]) -> None:
    """Refuse forward tensors that are read by an earlier layer; name the cycle when there is one.

    Parameters
    ----------
    faults
        Where the faults go.
    tensors
        All tensors; those of the backward pass impose no order.
    index
        The position of every layer by name; it holds all producers and consumers.
    """
    wrong = [
        _Backward(number, position, index[tensor.producer], index[name])
        for number, tensor in enumerate(tensors)
        if tensor.direction == "forward"
        for position, name in enumerate(tensor.consumers)
        if index[name] < index[tensor.producer]
    ]
    if not wrong:
        return
    names = list(index)
    found = _shortest_cycle(tensors, index, wrong)
    if found is not None:
        edge, cycle = found
        shown = [names[node][:SHOWN_LENGTH] for node in cycle[:MAX_CYCLE_SHOWN]]
        more = [f"… ({len(cycle) - len(shown)} more)"] if len(cycle) > len(shown) else []
        path = " -> ".join([*shown, *more, shown[0]])
        detail = f'cycle: {path}; remove one of these edges, or give it "pass": "backward" if it is a gradient'
        faults.add(("tensors", edge.tensor, "consumers", edge.consumer), detail, names[edge.consumer_at], "cycle")
        return
    for edge in wrong:
        producer, consumer = names[edge.producer_at], names[edge.consumer_at]
        detail = f"read before it is made: in layers, move {quoted(producer)} before {quoted(consumer)}"
        faults.add(("tensors", edge.tensor, "consumers", edge.consumer), detail, consumer, "layer_order")


def _shortest_cycle(
    tensors: Sequence[Tensor], index: Mapping[str, int], wrong: Sequence[_Backward]
) -> tuple[_Backward, list[int]] | None:
    """Find a short cycle and its edge against the order; None where the graph has no cycle."""
    successors: list[list[int]] = [[] for _ in index]
    for tensor in tensors:
        if tensor.direction == "forward":
            successors[index[tensor.producer]].extend(index[name] for name in tensor.consumers)
    component_of = [0] * len(successors)
    for number, component in enumerate(strong_components(successors)):
        for node in component:
            component_of[node] = number
    # Every cycle goes against the order of the layers somewhere, so one of these edges lies on it.
    closing = [edge for edge in wrong if component_of[edge.producer_at] == component_of[edge.consumer_at]]
    best: tuple[_Backward, list[int]] | None = None
    for edge in closing[:MAX_CYCLES_TRIED]:
        path = shortest_path(successors, edge.consumer_at, edge.producer_at)
        if path is not None and (best is None or len(path) < len(best[1])):
            best = edge, path
    return best
