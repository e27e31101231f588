"""The module of a stage: its operations, and what it receives and sends."""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint, noop_context_fn

from partita.models.pytorch.exporting import user_name
from partita.models.pytorch.layers import CapturedLayer
from partita.models.pytorch.recording import read_attribute
from partita.models.pytorch.records import CapturedGraph, Operation
from partita.models.pytorch.segments import entering, leaving, result_of
from partita.models.pytorch.split.draws import Moment, Seeded
from partita.models.pytorch.split.partition import Partition
from partita.models.pytorch.split.wire import Wire, wire_of

Contexts = Callable[[], tuple[Any, Any]]
"""What ``checkpoint`` takes as its ``context_fn``: it decides what is saved of a layer that runs again."""

SAVES_NOTHING: Contexts = noop_context_fn
"""Keeps the inputs of a layer alone."""


@dataclass(frozen=True)
class StageModule:
    """A stage as a module.

    Attributes
    ----------
    index
        Which stage.
    module
        Takes what is received, one by one; gives a tuple of what is sent or, on the last stage, the loss. It holds the
        user's parameters and buffers themselves, those that it reads and no others.
    received, sent
        What enters and leaves it; on the first stage the inputs of the model, on the last the loss.
    separable
        Whether input and weight gradients can be computed one after the other: everything that it sends with a gradient
        depends on something received with one, and every weight is read once, together with something like that. For
        other stages torch 2.13 loses or repeats gradients, or fails, from one run to the next.
    """

    index: int
    module: torch.nn.Module
    received: tuple[Wire, ...]
    sent: tuple[Wire, ...]
    separable: bool


@dataclass(frozen=True, slots=True)
class StageOptions:
    """How stages are built.

    Attributes
    ----------
    moment
        Where the rank stands, for random operations.
    splits_backward
        Whether backward passes are split, for which torch detaches in place what a stage sends.
    recomputed
        The names of the layers that run again in the backward pass, and what each saves.
    """

    moment: Moment
    splits_backward: bool = False
    recomputed: Mapping[str, Contexts] = field(default_factory=dict)


def build_stage(graph: CapturedGraph, parts: Partition, index: int, options: StageOptions) -> StageModule:
    """Build one stage.

    Parameters
    ----------
    graph, parts, index
        The captured graph, its stages, and which of them.
    options
        How it runs.
    """
    last = index == parts.num_stages - 1
    received = tuple(graph.inputs if index == 0 else parts.crossing[index - 1])
    sent = (result_of(graph),) if last else parts.crossing[index]
    builder = _Builder(graph, parts.layers[index], options)
    if index == 0:
        wires = tuple(_as_given(wire_of(graph.values[name])) for name in received)
    else:
        wires = tuple(wire_of(graph.values[name]) for name in received)
    builder.receive(wires)
    builder.run()
    out = tuple(wire_of(graph.values[name]) for name in sent)
    module = builder.give_loss(sent[0]) if last else builder.send(out)
    return StageModule(index, module, wires, out, builder.separable(received, sent))


def unviewed(tensor: torch.Tensor) -> torch.Tensor:
    """Give a tensor that is no view; some kernels give views of memory that nothing else has."""
    return tensor.clone() if tensor._is_view() else tensor


def _as_given(wire: Wire) -> Wire:
    """Take an input of the model as it is given, whatever its layout."""
    plain = tuple(range(len(wire.order)))
    shape = tuple(wire.shape[place] for place in wire.back)
    return Wire(wire.name, plain, shape, wire.dtype, wire.requires_grad, False)


class _Recomputed(torch.nn.Module):
    """A layer that runs again in the backward pass, with the same random numbers, but for what it saves."""

    def __init__(self, module: torch.nn.Module, contexts: Contexts) -> None:
        super().__init__()
        self.module, self.contexts = module, contexts

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Run it; random operations have seeds of their own, so that no random state has to be kept."""
        return checkpoint(self.module, *inputs, use_reentrant=False, preserve_rng_state=False, context_fn=self.contexts)


class _Builder:
    """Writes the graph of a stage, or of a layer that runs again."""

    def __init__(self, graph: CapturedGraph, layers: tuple[CapturedLayer, ...], options: StageOptions) -> None:
        self._graph = graph
        self._layers = layers
        self._options = options
        self._own = {name for layer in layers for name in layer.operations}
        self._all = self._own | {name for layer in layers for name in layer.repeated}
        self._written = {number for name in self._all for number in graph.operations[name].written}
        self._saved = {number for name in self._own for number in graph.operations[name].saved}
        states = (*graph.parameters.values(), *graph.buffers.values())
        resting = (state for state in states if state.changed and not state.trained)
        self._changed = {name: state.storage for state in resting for name in state.names}
        self._sharers = Counter(value.storage for value in graph.values.values())
        self._part = torch.fx.Graph()
        self._nodes: dict[str, Any] = {}
        self._held: dict[str, Any] = {}

    def receive(self, wires: Iterable[Wire]) -> None:
        """Take what is received; nothing is written to it."""
        wires = tuple(wires)
        for wire in wires:
            self._nodes[wire.name] = self._part.placeholder(wire.name)
        for wire in wires:
            if wire.permuted:
                self._nodes[wire.name] = self._call(torch.permute, self._nodes[wire.name], wire.back)
            if self._graph.values[wire.name].storage in self._written:
                self._nodes[wire.name] = self._call(torch.clone, self._nodes[wire.name])

    def run(self) -> None:
        """Copy the operations in the order of the graph; where layers run again, layer by layer after the sources."""
        nodes = {
            str(node.name): node
            for node in self._graph.module.graph.nodes
            if node.op == "call_function" and node.name in self._all
        }
        again = self._options.recomputed
        kept = [layer for layer in self._layers if layer.name not in again]
        if len(kept) == len(self._layers):
            for node in nodes.values():
                self._copy(node)
            return
        sources = {name for layer in kept for name in layer.repeated}
        for name in (each for each in nodes if each in sources):
            self._copy(nodes[name])
        for layer in self._layers:
            if layer.name in again:
                self._call_again(layer)
                continue
            for name in layer.operations:
                self._copy(nodes[name])

    def _call_again(self, layer: CapturedLayer) -> None:
        """Call a layer that runs again in the backward pass."""
        inputs = entering(self._graph, {*layer.operations, *layer.repeated})
        outputs = leaving(self._graph, layer.operations, layer.repeated)
        inner = _Builder(self._graph, (layer,), replace(self._options, recomputed={}))
        inner.receive(_as_given(wire_of(self._graph.values[name])) for name in inputs)
        inner.run()
        place = f"recomputed_{len(self._held)}"
        self._held[place] = _Recomputed(inner.give(outputs), self._options.recomputed[layer.name])
        result = self._part.call_module(place, tuple(self._nodes[name] for name in inputs))
        for position, name in enumerate(outputs):
            self._nodes[name] = self._call(operator.getitem, result, position)

    def _copy(self, node: torch.fx.Node) -> None:
        for read in node.all_input_nodes:
            if read.op == "get_attr" and read.name not in self._nodes:
                self._nodes[read.name] = self._part.node_copy(read)
                self._held[str(read.target)] = read_attribute(self._graph.module, read)
        operation = self._graph.operations[node.name]
        if operation.random:
            place = f"seeded_{node.name}"
            self._held[place] = Seeded(node.target, node.name, self._options.moment, self._graph.device)
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: self._argument(operation, each))
            self._nodes[node.name] = self._part.call_module(place, args, kwargs)
        else:
            self._nodes[node.name] = self._part.node_copy(node, lambda each: self._argument(operation, each))

    def _argument(self, operation: Operation, read: torch.fx.Node) -> torch.fx.Node:
        """Give what an operation reads: a copy where a gradient may need it and the next microbatch writes to it."""
        node: torch.fx.Node = self._nodes[read.name]
        if read.op == "get_attr":
            storage = self._changed.get(user_name(str(read.target)))
        else:
            value = self._graph.values.get(read.name)
            storage = value.storage if value and value.storage in self._changed.values() else None
        if storage is None or storage in operation.written or not operation.requires_grad:
            return node
        return self._call(torch.clone, node)

    def send(self, wires: tuple[Wire, ...]) -> torch.nn.Module:
        """Give what leaves the stage, each in the form in which it is sent."""
        sent = []
        for wire in wires:
            node = self._nodes[wire.name]
            if wire.permuted:
                node = self._call(torch.permute, node, wire.order)
            if wire.copied or self._must_copy(wire):
                node = self._call(torch.clone, node, memory_format=torch.contiguous_format)
            elif self._options.splits_backward:
                node = self._call(unviewed, node)
            sent.append(node)
        return self._finish(tuple(sent))

    def _must_copy(self, wire: Wire) -> bool:
        """Tell whether a value cannot be sent itself.

        Parameters and buffers may change while they are sent. With a split backward pass torch detaches in place what
        was sent, which neither a view nor anything that the backward pass still needs allows.
        """
        value = self._graph.values[wire.name]
        if value.storage in self._graph.held_storages:
            return True
        if not self._options.splits_backward:
            return False
        read_here = any(reader in self._own for reader in self._graph.readers[wire.name])
        return read_here or value.storage in self._saved or self._sharers[value.storage] > 1

    def give_loss(self, name: str) -> torch.nn.Module:
        """Give the loss alone."""
        return self._finish(self._nodes[name])

    def give(self, names: Iterable[str]) -> torch.nn.Module:
        """Give values as they are."""
        return self._finish(tuple(self._nodes[name] for name in names))

    def separable(self, received: Iterable[str], sent: Iterable[str]) -> bool:
        """Tell whether torch can separate the gradients of inputs and weights without losing any."""
        values, graph = self._graph.values, self._graph
        reached = {name for name in received if values[name].requires_grad}
        readers: Counter[str] = Counter()
        for operation in (each for name, each in graph.operations.items() if name in self._own):
            if operation.requires_grad and not reached.isdisjoint(operation.inputs):
                reached.add(operation.name)
            trained = [name for name in operation.parameters if graph.parameters[name].trained]
            if trained and operation.name not in reached:
                return False
            readers.update(trained)
        whole = all(name in reached for name in sent if values[name].requires_grad)
        return whole and all(count == 1 for count in readers.values())

    def _call(self, function: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
        return self._part.call_function(function, args, kwargs)

    def _finish(self, result: Any) -> torch.fx.GraphModule:
        self._part.output(result)
        return torch.fx.GraphModule(self._held, self._part)
