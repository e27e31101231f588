"""Runs a user's module and leaves everything as it was found."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def preserved(module: torch.nn.Module) -> Iterator[None]:
    """Restore buffers, gradients, random state and the number of threads afterwards; run on one thread until then.

    Gradients are None inside, whatever they were before. Random state is that of the CPU and of all CUDA devices.
    """
    buffers = [
        (owner, name, buffer, buffer.detach().clone())
        for owner in module.modules()
        for name, buffer in owner.named_buffers(recurse=False)
    ]
    gradients = [(parameter, parameter.grad) for parameter in module.parameters()]
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(), torch.enable_grad():
            torch.set_num_threads(1)
            for parameter, _ in gradients:
                parameter.grad = None
            yield
    finally:
        torch.set_num_threads(threads)
        for parameter, gradient in gradients:
            parameter.grad = gradient
        with torch.no_grad():
            for owner, name, buffer, before in buffers:
                owner._buffers[name] = buffer  # a forward pass may have put another tensor there
                buffer.copy_(before)
