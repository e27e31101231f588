"""How well the layers of a captured model add up to the model: times and bytes; needs torch.

Run as ``.venv/bin/python benchmarks/captures.py``; takes about half a minute on one core.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from partita.models.pytorch import capture
from partita.models.pytorch.workspace import watching_memory


def encoder() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Give six encoder layers, with dropout."""
    layers = [nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True) for _ in range(6)]
    return nn.Sequential(*layers), (torch.randn(4, 128, 256),)


def convolutions() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Give convolutions with batch norm and ReLU in place."""
    parts = [[nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True)] for _ in range(8)]
    return nn.Sequential(*(nn.Sequential(*each) for each in parts)), (torch.randn(8, 32, 48, 48),)


def encoder_decoder() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Give an encoder and a decoder, every layer of which reads what the encoder makes."""
    module = nn.Transformer(256, 4, 3, 3, 1024, batch_first=True)
    return module, (torch.randn(4, 64, 256), torch.randn(4, 64, 256))


def peak_bytes(program: nn.Module, inputs: tuple[Any, ...]) -> int:
    """Measure the most bytes in use during a microbatch, beside parameters, gradients and buffers."""
    for parameter in program.parameters():
        parameter.grad = torch.zeros_like(parameter)
    gradients = [parameter.grad for parameter in program.parameters() if parameter.grad is not None]
    there = [*program.parameters(), *gradients, *program.buffers(), *inputs]
    with watching_memory(torch.device("cpu"), there) as peak:
        program(*inputs).backward()
        return peak.bytes


def main() -> None:
    """Print the sums over layers, relative to what was measured of the whole model."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cases: list[Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]] = [encoder, convolutions, encoder_decoder]
    print("Model            Layers  Whole, ms  Forward  Backward  Saved bytes  Peak memory")
    for case in cases:
        captured = capture(*case())
        profile = captured.profile()
        measured = profile.measurement
        assert measured is not None
        forward = sum(layer.forward_s for layer in profile.layers) / measured.forward_s
        backward = sum(layer.backward_s for layer in profile.layers) / measured.backward_s
        saved = sum(layer.activation_bytes for layer in profile.layers)
        saved += sum(shared.bytes for shared in profile.shared_activations)
        predicted = saved + max(layer.workspace_bytes for layer in profile.layers)
        real = peak_bytes(captured.program, captured.inputs)
        print(
            f"{case.__name__:15}  {len(profile.layers):6}  {1e3 * (measured.forward_s + measured.backward_s):9.1f}  "
            f"{forward:7.1%}  {backward:8.1%}  {saved / (measured.module_saved_bytes or 1):11.1%}  "
            f"{predicted / real:11.1%}"
        )


if __name__ == "__main__":
    main()
