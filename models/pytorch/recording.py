"""Runs an exported graph once, operation by operation, and notes down what each of them does to memory.

The graph runs as a whole, with one autograd graph, so that what an operation saves is what it saves in the user's
program; a saved storage belongs to the operation that is running when it is saved.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from partita.models.pytorch.attention import draws
from partita.models.pytorch.errors import CannotCapture, first_line, place_in_stack
from partita.models.pytorch.exporting import MODULE, library, user_name
from partita.models.pytorch.records import CapturedGraph, ModuleCall, Operation, State, Value

_SELECT = "getitem"
_ROOT = "L__self__"


def record(
    graph: torch.fx.GraphModule, program: torch.nn.Module, inputs: tuple[Any, ...], device: torch.device
) -> CapturedGraph:
    """Run a graph on real values and give what was seen.

    Parameters
    ----------
    graph
        As exported; its parameters and buffers are those of ``program``. Buffers are changed as by a forward pass.
    program
        The module with its loss.
    inputs
        Example inputs; they are not changed.
    device
        Where the module lies.
    """
    run = _Run(graph, inputs, device)
    for node in graph.graph.nodes:
        run.step(node)
    values = run.values()
    return CapturedGraph(
        module=graph,
        operations=run.operations,
        values=values,
        inputs=tuple(run.inputs),
        parameters=run.parameters(program),
        buffers=run.buffers(program),
        storage_bytes=dict(enumerate(storage.nbytes() for storage in run.storages.kept)),
        tensors={name: run.results[name].detach() for name in values},
        device=device,
        training=program.training,
    )


class Storages:
    """Numbers storages in the order in which they are seen, and keeps them so that no address is used twice."""

    def __init__(self) -> None:
        self.kept: list[torch.UntypedStorage] = []
        self._numbers: dict[int, int] = {}

    def number(self, tensor: torch.Tensor) -> int:
        """Give the number of the storage that a tensor lies in."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._numbers:
            self._numbers[storage._cdata] = len(self.kept)
            self.kept.append(storage)
        return self._numbers[storage._cdata]


@contextmanager
def noting_saved(storages: Storages, saved: set[int]) -> Iterator[None]:
    """Note the storages that are saved for a backward pass; there can be none afterwards."""

    def pack(tensor: torch.Tensor) -> None:
        saved.add(storages.number(tensor))

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda _: None):
        yield


def saved_by(program: Callable[..., torch.Tensor], inputs: tuple[Any, ...], held: Iterable[torch.Tensor]) -> int:
    """Give the bytes that a program itself keeps for its backward pass, without parameters, buffers and constants.

    Parameters
    ----------
    program, inputs
        What runs forward once.
    held
        Tensors whose storages do not count.
    """
    storages, saved = Storages(), set[int]()
    with noting_saved(storages, saved):
        program(*inputs)
    there = {storages.number(tensor) for tensor in held}
    return sum(storages.kept[number].nbytes() for number in saved - there)


def held_tensors(graph: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Give the parameters, buffers and constants that a graph reads."""
    found = (read_attribute(graph, node) for node in graph.graph.nodes if node.op == "get_attr")
    return [each for each in found if isinstance(each, torch.Tensor)]


def read_attribute(graph: torch.fx.GraphModule, node: torch.fx.Node) -> Any:
    """Give what a node that reads an attribute gives."""
    owner: Any = graph
    for step in str(node.target).split("."):
        owner = getattr(owner, step)
    return owner


class _Run:
    """The state of one run: results of nodes, storages, and what was noted down."""

    def __init__(self, graph: torch.fx.GraphModule, inputs: tuple[Any, ...], device: torch.device) -> None:
        self._graph = graph
        self._given = pytree.tree_leaves(inputs)
        self._device = device
        self.storages = Storages()
        self.results: dict[str, Any] = {}
        self.operations: dict[str, Operation] = {}
        self.inputs: list[str] = []
        self._given_values: dict[str, Value] = {}
        self._held: dict[int, torch.Tensor] = {}  # parameters, buffers and constants by storage
        self._named: dict[str, torch.Tensor] = {}  # the same by name: several may lie in one storage
        self._names: dict[int, str] = {}  # their names by identity
        self._changed: set[int] = set()

    def step(self, node: torch.fx.Node) -> None:
        """Run one node."""
        if node.op == "placeholder":
            self._input(node)
        elif node.op == "get_attr":
            self._attribute(node)
        elif node.op == "call_function":
            self._call(node)

    def _input(self, node: torch.fx.Node) -> None:
        given = self._given.pop(0)
        if not isinstance(given, torch.Tensor):
            self.results[node.name] = given  # a number or None, baked into the graph
            return
        self.results[node.name] = given.detach().clone()
        self.inputs.append(node.name)
        self._given_values[node.name] = self._value(node.name, None)

    def _attribute(self, node: torch.fx.Node) -> None:
        found = read_attribute(self._graph, node)
        self.results[node.name] = found
        if isinstance(found, torch.Tensor):
            self._held[self.storages.number(found)] = found
            name = self._names.setdefault(id(found), user_name(str(node.target)))
            self._named[name] = found

    def _call(self, node: torch.fx.Node) -> None:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: self.results[each.name])
        given = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        versions = [tensor._version for tensor in given]
        state = {self.storages.number(tensor): tensor for tensor in given if self._is_buffer(tensor)}
        before = {number: tensor.detach().clone() for number, tensor in state.items()}
        random_before = _random_state(self._device)
        saved: set[int] = set()
        with noting_saved(self.storages, saved):
            result = _called(node, args, kwargs)
        self.results[node.name] = result
        written = {
            self.storages.number(tensor)
            for tensor, version in zip(given, versions, strict=True)
            if tensor._version != version
        }
        written |= {number for number, tensor in state.items() if _differ(tensor, before[number])}
        written |= {self.storages.number(tensor) for tensor in _statistics(node, args)}
        self._changed |= written
        random = not torch.equal(random_before, _random_state(self._device))
        if self._device.type == "meta":  # where nothing is drawn
            random = draws(node.target, args, kwargs)
        self._note_operation(node, given, result, written, saved, random)

    def _is_buffer(self, tensor: torch.Tensor) -> bool:
        """Tell whether a tensor lies in a buffer or constant; batch norm changes them without counting a version."""
        held = self._held.get(self.storages.number(tensor))
        return held is not None and not isinstance(held, torch.nn.Parameter)

    def _note_operation(
        self,
        node: torch.fx.Node,
        given: list[torch.Tensor],
        result: Any,
        written: set[int],
        saved: set[int],
        random: bool,
    ) -> None:
        made = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        read, results = ({self.storages.number(tensor) for tensor in each} for each in (given, made))
        got = (self.results[each.name] for each in node.all_input_nodes if each.op == "get_attr")
        held = {self._names[id(each)]: each for each in got if isinstance(each, torch.Tensor)}
        calls = _calls(node)
        inside = calls[:1] != () and calls[0].path == MODULE
        self.operations[node.name] = Operation(
            name=node.name,
            target=str(node.target),
            position=len(self.operations),
            calls=tuple(
                ModuleCall(user_name(call.path), user_name(call.name), call.kind) for call in calls[inside:] if inside
            ),
            in_loss=not inside,
            inputs=tuple(each.name for each in node.all_input_nodes if each.op in ("placeholder", "call_function")),
            parameters=tuple(name for name, each in held.items() if isinstance(each, torch.nn.Parameter)),
            buffers=tuple(name for name, each in held.items() if not isinstance(each, torch.nn.Parameter)),
            touched=frozenset(read | results),
            written=frozenset(written),
            saved=frozenset(saved - set(self._held)),
            random=random,
            view=bool(made) and results <= read and not written,
            selects=getattr(node.target, "__name__", "") == _SELECT,
            makes_tensors=bool(made),
            requires_grad=any(tensor.requires_grad for tensor in made),
        )

    def values(self) -> dict[str, Value]:
        """Give inputs as they were given, and what operations make as it is in the end.

        What is written to a tensor may make it need a gradient or give it another shape, and other layers read it after
        that.
        """
        made = [name for name in self.operations if isinstance(self.results[name], torch.Tensor)]
        return self._given_values | {name: self._value(name, name) for name in made}

    def _value(self, name: str, maker: str | None) -> Value:
        tensor = self.results[name]
        return Value(
            name=name,
            maker=maker,
            shape=tuple(tensor.shape),
            stride=tuple(tensor.stride()),
            dtype=str(tensor.dtype).removeprefix("torch."),
            bytes=tensor.numel() * tensor.element_size(),
            requires_grad=tensor.requires_grad,
            storage=self.storages.number(tensor),
            lazy=tensor.is_conj() or tensor.is_neg(),
        )

    def parameters(self, program: torch.nn.Module) -> dict[str, State]:
        """Give the parameters that the graph reads, with all names they have in the module."""
        return self._states(dict(program.named_parameters(remove_duplicate=False)), parameters=True)

    def buffers(self, program: torch.nn.Module) -> dict[str, State]:
        """Give the buffers and constants that the graph reads."""
        return self._states(dict(program.named_buffers(remove_duplicate=False)), parameters=False)

    def _states(self, named: dict[str, torch.Tensor], *, parameters: bool) -> dict[str, State]:
        read = {name for each in self.operations.values() for name in (*each.parameters, *each.buffers)}
        found = {}
        for own, tensor in self._named.items():
            if own in read and isinstance(tensor, torch.nn.Parameter) is parameters:
                number = self.storages.number(tensor)
                names = [user_name(name) for name, each in named.items() if each is tensor]
                found[own] = State(
                    names=tuple(names) or (own,),
                    bytes=min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()),
                    storage=number,
                    trained=tensor.requires_grad,
                    changed=number in self._changed,
                )
        return found


def _called(node: torch.fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operation.

    Raises
    ------
    CannotCapture
        When it fails on the values that it is given, such as one of another type, or makes a tensor that is not dense,
        with the line of the user's code.
    """
    target: Any = node.target
    try:
        result = target(*args, **kwargs)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise CannotCapture(f"{_place(node)}: {target} fails on the inputs given: {first_line(error)}") from error
    for each in pytree.tree_leaves(result):
        if isinstance(each, torch.Tensor) and each.layout != torch.strided:
            layout = str(each.layout).removeprefix("torch.")
            raise CannotCapture(f"{_place(node)}: {target} makes a tensor with the layout {layout}; make it dense")
    return result


def _place(node: torch.fx.Node) -> str:
    """Say where in the user's code an operation is, or else in which module."""
    calls = _calls(node)
    inside = user_name(calls[-1].name) if calls else str(node.name)
    return place_in_stack(node.meta.get("stack_trace") or "", library()) or inside


def _calls(node: torch.fx.Node) -> tuple[ModuleCall, ...]:
    """Give the calls of modules around a node, without the outermost, which is the module with its loss."""
    stack = node.meta.get("nn_module_stack", {})
    return tuple(
        ModuleCall(path, key.removeprefix(_ROOT), str(kind).rpartition(".")[2])
        for key, (path, kind) in stack.items()
        if path
    )


def _random_state(device: torch.device) -> torch.Tensor:
    """Give the state of a device's generator of random numbers."""
    state: torch.Tensor = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
    return state


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two tensors differ; where both have no number, as NaN, they are alike. Unknown on meta: no."""
    return one.device.type != "meta" and not torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))


def _statistics(node: torch.fx.Node, args: tuple[Any, ...]) -> list[torch.Tensor]:
    """Give the running statistics that a normalization in training mode updates without counting a version."""
    target = str(node.target)
    if target.startswith(("aten.batch_norm.", "aten.instance_norm.")) and args[5]:
        return [each for each in args[3:5] if isinstance(each, torch.Tensor)]
    return []
