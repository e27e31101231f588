"""Clocks: processor time of this thread on a CPU, events on a GPU."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")

Clock = Callable[[Callable[[], Any]], tuple[Any, float]]
"""Runs something and gives its result and how many seconds it takes."""


def clock_of(device: torch.device) -> Clock:
    """Give the clock of a device that is here."""
    return partial(timed, device)


def timed(device: torch.device, run: Callable[[], Result]) -> tuple[Result, float]:
    """Run something and give its result and how many seconds it took.

    On a CPU these are the seconds that this thread computed, so that other programs do not count; on a GPU those
    between the start of the first and the end of the last kernel.
    """
    if device.type == "cuda":
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        result = run()
        end.record()
        end.synchronize()
        return result, start.elapsed_time(end) / 1e3
    before = time.thread_time()
    result = run()
    return result, time.thread_time() - before
