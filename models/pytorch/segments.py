"""Cuts a part out of a captured graph so that it runs alone: a layer to be timed, or a stage."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from partita.models.pytorch.records import CapturedGraph


@dataclass(frozen=True)
class Segment:
    """A part of a captured graph.

    Attributes
    ----------
    module
        Takes the inputs one by one and gives a tuple of the outputs. It holds the user's parameters and buffers
        themselves, and none that it does not read.
    inputs, outputs
        The names of the values, in order; inputs of the model among them.
    """

    module: torch.fx.GraphModule
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def example(self, graph: CapturedGraph) -> list[torch.Tensor]:
        """Give inputs as recorded, each a leaf that requires a gradient where the value does."""
        return [graph.tensors[name].detach().requires_grad_(graph.values[name].requires_grad) for name in self.inputs]


def entering(graph: CapturedGraph, operations: Collection[str]) -> tuple[str, ...]:
    """Give the values that operations read and do not make, inputs of the model first, in the order of the graph."""
    read = {name for each in operations for name in graph.operations[each].inputs}
    return tuple(sorted((read & graph.places.keys()) - set(operations), key=graph.places.__getitem__))


def leaving(graph: CapturedGraph, operations: Collection[str], repeated: Collection[str]) -> tuple[str, ...]:
    """Give the values that operations make and others read, or that are the result, in the order of the graph.

    ``repeated`` are the operations that every stage repeats for itself; what they make never leaves.
    """
    own = set(operations)
    found = [
        name
        for name in own & graph.places.keys()
        if name not in repeated and (name == graph.result or any(reader not in own for reader in graph.readers[name]))
    ]
    return tuple(sorted(found, key=graph.places.__getitem__))


def result_of(graph: CapturedGraph) -> str:
    """Give the value that the graph returns: the loss."""
    return graph.result


def cut_out(graph: CapturedGraph, operations: Sequence[str], repeated: Sequence[str]) -> Segment:
    """Make a module that runs some of the operations, and the sources that they repeat.

    Parameters
    ----------
    graph
        The captured graph.
    operations
        What runs, such as those of a layer or of all layers of a stage.
    repeated
        The sources that it needs.
    """
    chosen = {*operations, *repeated}
    inputs, outputs = entering(graph, chosen), leaving(graph, chosen, repeated)
    written = {number for name in chosen for number in graph.operations[name].written}
    part = torch.fx.Graph()
    made: dict[str, Any] = {}
    for name in inputs:
        made[name] = part.placeholder(name)
    for name in inputs:
        if graph.values[name].storage in written:  # what is received is not ours to write to
            made[name] = part.call_function(torch.clone, (made[name],))
    for _, node in sorted(graph.calls[name] for name in chosen):
        for read in node.all_input_nodes:
            if read.op == "get_attr" and read.name not in made:
                made[read.name] = part.node_copy(read)
        made[node.name] = part.node_copy(node, lambda each: made[each.name])
    part.output(tuple(made[name] for name in outputs))
    return Segment(torch.fx.GraphModule(graph.module, part), inputs, outputs)
