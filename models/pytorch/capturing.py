"""From a PyTorch module to its graph, its layers and its profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from partita.models.profile import ModelProfile
from partita.models.pytorch.attention import use_fused_attention
from partita.models.pytorch.checks import check_buffers, check_captured, check_names
from partita.models.pytorch.clock import clock_of
from partita.models.pytorch.errors import CannotCapture
from partita.models.pytorch.exporting import Loss, WithLoss, export, user_name
from partita.models.pytorch.layers import CapturedLayer, Depth, coarsen
from partita.models.pytorch.policies import Decision, make_policies
from partita.models.pytorch.preserve import preserved
from partita.models.pytorch.profiling import Measured, Origin, device_name, model_profile
from partita.models.pytorch.recording import held_tensors, record, saved_by
from partita.models.pytorch.records import CapturedGraph
from partita.models.pytorch.roofline import Roofline, estimated
from partita.models.pytorch.segments import entering
from partita.models.pytorch.timing import OnRound, measure

NO_OPTIONS: Mapping[str, Sequence[str] | Decision] = {}


@dataclass(frozen=True)
class Capture:
    """A captured module.

    Attributes
    ----------
    program, inputs
        The user's module followed by its loss, and the example inputs.
    graph
        All operations, values and storages, with the exported graph.
    layers
        What the operations were joined to.
    """

    program: WithLoss
    inputs: tuple[Any, ...]
    graph: CapturedGraph
    layers: tuple[CapturedLayer, ...]

    def outline(self, *, name: str = "model") -> ModelProfile:
        """Give the profile without any times: all bytes and tensors, and nothing to plan with."""
        return model_profile(self.graph, self.layers, None, name=name)

    @property
    def unread(self) -> tuple[str, ...]:
        """The parameters and buffers of the module that no operation reads: no layer holds them."""
        states = (*self.graph.parameters.values(), *self.graph.buffers.values())
        read = {name for state in states for name in state.names}
        held = (*self.program.named_parameters(), *self.program.named_buffers())
        return tuple(name for name in (user_name(each) for each, _ in held) if name not in read)

    @property
    def on_meta(self) -> bool:
        """Whether the module lies on the meta device, so that its costs can be estimated only."""
        return str(self.graph.device.type) == "meta"

    def profile(
        self,
        *,
        name: str = "model",
        repetitions: int = 5,
        policies: Mapping[str, Sequence[str] | Decision] = NO_OPTIONS,
        on_round: OnRound = lambda done, total: None,
    ) -> ModelProfile:
        """Measure the layers and give the profile that plans are made from.

        Buffers, gradients and random state are left as they were found. On a CPU, one thread computes.

        Parameters
        ----------
        name
            Of the model.
        repetitions
            How often each layer is measured after a round that does not count; the median is taken.
        policies
            Options of recompute beside ``full``, by name: the operations that are saved, such as ``aten.mm``, or a
            policy function of torch.utils.checkpoint.
        on_round
            Is told how many measurements are done, of how many.

        Raises
        ------
        ValueError
            When the module lies on the meta device, or a policy names no operation or saves none.
        """
        if self.on_meta:
            raise ValueError("nothing can be measured on the meta device; use estimate, or move the module")
        with preserved(self.program):
            timings = measure(
                self.graph,
                self.layers,
                self.program,
                self.inputs,
                clock=clock_of(self.graph.device),
                repetitions=repetitions,
                policies=make_policies(policies),
                on_round=on_round,
            )
            held = [*self.program.parameters(), *self.program.buffers(), *held_tensors(self.graph.module)]
            origin = Origin(device_name(self.graph.device), saved_by(self.program, self.inputs, held))
        return model_profile(self.graph, self.layers, Measured(timings, origin), name=name)

    def estimate(
        self,
        roofline: Roofline,
        *,
        name: str = "model",
        policies: Mapping[str, Sequence[str] | Decision] = NO_OPTIONS,
        on_round: OnRound = lambda done, total: None,
    ) -> ModelProfile:
        """Estimate the costs of the layers on a device that is not here, of a module on the meta device.

        Parameters
        ----------
        roofline
            The device, such as one of ``roofline.DEVICES``.
        name, policies, on_round
            As in ``profile``.

        Raises
        ------
        ValueError
            When the module lies on another device, or a policy names no operation or saves none.
        """
        if not self.on_meta:
            raise ValueError(f"the module is on {self.graph.device}; only one on the meta device is estimated")
        with preserved(self.program):
            timings = measure(
                self.graph,
                self.layers,
                self.graph.module,
                self.inputs,
                clock=partial(estimated, roofline),
                warm_up=0,
                repetitions=1,
                policies=make_policies(policies),
                on_round=on_round,
            )
        return model_profile(self.graph, self.layers, Measured(timings, Origin(roofline.name, None)), name=name)


def capture(
    module: torch.nn.Module, inputs: tuple[Any, ...], loss: Loss | None = None, *, depth: Depth = "blocks"
) -> Capture:
    """Capture a module operation by operation and join the operations to layers.

    The module runs twice, in the mode it is in; buffers, gradients and random state are left as they were found.

    Parameters
    ----------
    module
        On one device, with everything that it needs. On the meta device it needs no memory, and attention saves what
        it saves on a GPU.
    inputs
        Example inputs of one microbatch, at the shapes and types that will be run.
    loss
        Takes the module's outputs and gives a scalar; by default the mean of the squares of all floating outputs.
    depth
        How far operations are joined; see ``layers.Depth``.

    Raises
    ------
    CannotCapture
        When control flow or a shape depends on data, torch.export refuses the module, or it is none; with place and
        reason.
    """
    check_captured(module, inputs)
    program = WithLoss(module, loss)
    check_names(program)
    device = _device(module, inputs)
    with preserved(program):
        exported = export(program, inputs)
        if device.type == "meta":
            use_fused_attention(exported)
        graph = record(exported, program, inputs, device)
    if device.type != "meta":
        with preserved(program):
            check_buffers(program, inputs)
    layers = coarsen(graph, depth)
    if not layers:
        raise CannotCapture("no operation depends on an input or a parameter; there is nothing to plan")
    passing = {name for layer in layers for name in entering(graph, layer.operations)}
    kept = {name: tensor for name, tensor in graph.tensors.items() if name in passing}
    return Capture(program, inputs, replace(graph, tensors=kept), layers)


def _device(module: torch.nn.Module, inputs: tuple[Any, ...]) -> torch.device:
    """Give the one device that a module and its inputs are on."""
    given = (each for each in pytree.tree_leaves(inputs) if isinstance(each, torch.Tensor))
    tensors = [*module.parameters(), *module.buffers(), *given]
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        names = ", ".join(sorted(str(device) for device in devices))
        raise CannotCapture(f"parameters, buffers and inputs are on several devices ({names}); move all to one")
    return devices.pop() if devices else torch.device("cpu")
