"""Random numbers that depend on the operation, the iteration and the microbatch, and not on who draws what before."""

import zlib
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Moment:
    """What a rank is running; all stages of a rank share one.

    Attributes
    ----------
    iteration, microbatch
        Counted from 0.
    seed
        What all draws depend on besides.
    """

    iteration: int = 0
    microbatch: int = 0
    seed: int = 0


class Seeded(torch.nn.Module):
    """Runs an operation with random numbers of its own, and leaves the random state as it was.

    Parameters
    ----------
    target
        The operation.
    name
        Of its node in the captured graph.
    moment
        The moment at which it runs.
    device
        Where it draws.
    """

    def __init__(self, target: Any, name: str, moment: Moment, device: torch.device) -> None:
        super().__init__()
        self._target = target
        self._name = name
        self._moment = moment
        self._devices = [device] if device.type == "cuda" else []

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        now = self._moment
        with torch.random.fork_rng(devices=self._devices):
            torch.manual_seed(zlib.crc32(f"{now.seed}:{now.iteration}:{now.microbatch}:{self._name}".encode()))
            return self._target(*args, **kwargs)
