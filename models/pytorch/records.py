"""What a capture holds: operations, the values between them, and the storages that they keep and write."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that an operation makes or that the model is given.

    Attributes
    ----------
    name
        Of its node in the graph.
    maker
        The operation that makes it; None for an input of the model.
    shape, stride, dtype
        Its layout, the strides in elements; the type without ``torch.``.
    bytes
        Of a contiguous copy, which is what a boundary carries.
    requires_grad
        Whether a gradient travels back.
    storage
        The number of the storage it lies in; values with the same number share memory.
    lazy
        Whether its memory holds the conjugate or the negative of what it is, as torch leaves it for ``conj``.
    """

    name: str
    maker: str | None
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    bytes: int
    requires_grad: bool
    storage: int
    lazy: bool = False


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module: its path, the call's own name (``rep@1`` for the second one), and its class."""

    path: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One call in the graph.

    Attributes
    ----------
    name, target
        Of its node, and what it calls, such as ``aten.linear.default``.
    position
        In the order in which the graph runs.
    calls
        The calls of modules around it, outermost first; empty for an operation of the loss.
    in_loss
        Whether it belongs to the loss.
    inputs
        The nodes it reads: operations and inputs of the model.
    parameters, buffers
        Those it reads itself, by their names in the module; the first name where one tensor has several. What reads a
        view that another operation makes of one is not counted: on another stage it gets a copy.
    touched, written, saved
        The storages it reads or makes, changes in place, and keeps for the backward pass.
    random
        Whether its result depends on random numbers.
    view
        Whether it only looks at its input's memory in another way.
    selects
        Whether it takes one result out of the several of its input.
    makes_tensors
        Whether it has a result; a check has none.
    requires_grad
        Whether gradients flow through it.
    """

    name: str
    target: str
    position: int
    calls: tuple[ModuleCall, ...]
    in_loss: bool
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    touched: frozenset[int]
    written: frozenset[int]
    saved: frozenset[int]
    random: bool
    view: bool
    selects: bool
    makes_tensors: bool
    requires_grad: bool

    @property
    def place(self) -> str:
        """Where it is: the innermost call of a module, and its own name."""
        inside = self.calls[-1].name if self.calls else ""
        return f"{inside}:{self.name}" if inside else self.name


@dataclass(frozen=True, slots=True)
class State:
    """A parameter or buffer: its names, the first of which stands for it, its bytes and its storage.

    ``trained`` tells whether it gets a gradient, ``changed`` whether the forward pass writes to it.
    """

    names: tuple[str, ...]
    bytes: int
    storage: int
    trained: bool = False
    changed: bool = False


@dataclass(frozen=True)
class CapturedGraph:
    """A module with its loss, operation by operation.

    Attributes
    ----------
    module
        The exported graph; it holds the parameters and buffers of the user's module themselves.
    operations, values
        By the names of their nodes, in the order in which the graph runs.
    inputs
        The names of the model's inputs, in order.
    parameters, buffers
        By their first names; ``buffers`` has the constants too.
    storage_bytes
        The bytes of every storage by its number.
    tensors
        Values of the recorded run, without gradients: those that pass between layers, and the inputs.
    device, training
        Where the module lies, and whether it was in training mode.
    """

    module: torch.fx.GraphModule
    operations: Mapping[str, Operation]
    values: Mapping[str, Value]
    inputs: tuple[str, ...]
    parameters: Mapping[str, State]
    buffers: Mapping[str, State]
    storage_bytes: Mapping[int, int]
    tensors: Mapping[str, torch.Tensor]
    device: torch.device
    training: bool

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """For every node the operations that read it, in the order of the graph."""
        found: dict[str, list[str]] = {name: [] for name in (*self.inputs, *self.operations)}
        for operation in self.operations.values():
            for name in operation.inputs:
                found[name].append(operation.name)
        return {name: tuple(readers) for name, readers in found.items()}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where every value stands among all of them, in the order of the graph."""
        return {name: place for place, name in enumerate(self.values)}

    @cached_property
    def calls(self) -> Mapping[str, tuple[int, torch.fx.Node]]:
        """The nodes of all operations with their places in the graph."""
        nodes = enumerate(self.module.graph.nodes)
        return {node.name: (place, node) for place, node in nodes if node.op == "call_function"}

    @cached_property
    def result(self) -> str:
        """The value that the graph returns."""
        (output,) = (node for node in self.module.graph.nodes if node.op == "output")
        (result,) = output.all_input_nodes
        return str(result.name)

    @cached_property
    def held_storages(self) -> frozenset[int]:
        """The storages of parameters, buffers and constants: they are there all the time."""
        return frozenset(state.storage for state in (*self.parameters.values(), *self.buffers.values()))

    @property
    def saved_bytes(self) -> int:
        """Bytes kept from forward to backward by the whole model for one microbatch, every storage once."""
        saved = {number for operation in self.operations.values() for number in operation.saved}
        return sum(self.storage_bytes[number] for number in saved)
