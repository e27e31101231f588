"""From a PyTorch module to its graph, its layers and its profile."""

from dataclasses import dataclass
from typing import Any

import torch

from partita.models.profile import ModelProfile
from partita.models.pytorch.errors import CannotCapture
from partita.models.pytorch.exporting import Loss, WithLoss, export
from partita.models.pytorch.layers import CapturedLayer, Depth, coarsen
from partita.models.pytorch.preserve import preserved
from partita.models.pytorch.profiling import model_profile
from partita.models.pytorch.recording import record
from partita.models.pytorch.records import CapturedGraph
from partita.models.pytorch.timing import OnRound, measure


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

    def profile(
        self, *, name: str = "model", repetitions: int = 5, on_round: OnRound = lambda done, total: None
    ) -> ModelProfile:
        """Measure the layers and give the profile that plans are made from.

        Buffers, gradients and random state are left as they were found. On a CPU, one thread computes.

        Parameters
        ----------
        name
            Of the model.
        repetitions
            How often each layer is measured after a round that does not count; the median is taken.
        on_round
            Is told how many measurements are done, of how many.
        """
        with preserved(self.program):
            timings = measure(
                self.graph, self.layers, self.program, self.inputs, repetitions=repetitions, on_round=on_round
            )
        return model_profile(self.graph, self.layers, timings, name=name)


def capture(
    module: torch.nn.Module, inputs: tuple[Any, ...], loss: Loss | None = None, *, depth: Depth = "blocks"
) -> Capture:
    """Capture a module operation by operation and join the operations to layers.

    The module runs once, in the mode it is in; buffers, gradients and random state are left as they were found.

    Parameters
    ----------
    module
        On one device, with everything that it needs.
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
    if not isinstance(module, torch.nn.Module):
        raise CannotCapture(f"the model is a {type(module).__name__}; give a torch.nn.Module")
    program = WithLoss(module, loss)
    with preserved(program):
        graph = record(export(program, inputs), program, inputs, _device(module, inputs))
    return Capture(program, inputs, graph, coarsen(graph, depth))


def _device(module: torch.nn.Module, inputs: tuple[Any, ...]) -> torch.device:
    """Give the one device that a module and its inputs are on."""
    tensors = [*module.parameters(), *module.buffers(), *(each for each in inputs if isinstance(each, torch.Tensor))]
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        names = ", ".join(sorted(str(device) for device in devices))
        raise CannotCapture(f"parameters, buffers and inputs are on several devices ({names}); move all to one")
    return devices.pop() if devices else torch.device("cpu")
