"""Runs a function in several processes at once and reports the first real failure, whatever happens to them."""

import logging
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

GRACE_S = 2.0
"""How long others may still say what is wrong with them after a first failure: often that is the cause."""
TICK_S = 0.2
"""How often it is looked whether the time is over."""
_PEER = ("Connection closed by peer", "reset by peer", "Connection refused", "Broken pipe", "Timed out waiting")
"""What a process says when another one is gone."""


class RankFailed(RuntimeError):
    """A process failed, died or did not end in time; the text says which, where and why."""

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a process says before it ends: the class of the first cause, and the cause with its place."""

    kind: str
    text: str

    @property
    def is_echo(self) -> bool:
        """Whether only another process is gone."""
        return any(word in self.text for word in _PEER)


def run_processes(
    functions: Sequence[Callable[[], Any]],
    *,
    deadline: float,
    doing: Callable[[int], str] = lambda number: "",
    on_wait: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Run each function in a copy of this process, and give their results.

    On one thread each. What they print and warn of is kept from the terminal.

    Parameters
    ----------
    functions
        What the processes do; their results can be pickled.
    deadline
        Of ``time.monotonic``; all processes are killed then.
    doing
        Says what process number n has begun last.
    on_wait
        Is called again and again while they run.

    Raises
    ------
    RankFailed
        When a process raises, dies, or has not ended at the deadline. Of several failures that one counts which is not
        merely that another process is gone.
    """
    context = multiprocessing.get_context("fork")  # the model, its loss and its inputs need not be pickled
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for number, function in enumerate(functions):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(function, theirs, Path(folder) / f"{number}"), daemon=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of threads while a process is copied: none of ours holds a lock
                process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        try:
            collected = _Collected(pipes, processes, Path(folder))
            while not collected.complete:
                on_wait()
                collected.wait(deadline, doing)
            results = collected.results(doing)
        finally:
            for process in processes:
                process.kill()
                process.join()
        return results


class _Collected:
    """What processes have said so far."""

    def __init__(self, pipes: list[Connection], processes: list[Any], folder: Path) -> None:
        self._pipes = pipes
        self._processes = processes
        self._folder = folder
        self._results: dict[int, Any] = {}
        self._failures: dict[int, _Failure] = {}
        self._until: float | None = None  # when failures are no longer waited for

    @property
    def _waiting(self) -> list[int]:
        return [each for each in range(len(self._pipes)) if each not in self._results and each not in self._failures]

    @property
    def complete(self) -> bool:
        """Whether all have said something, or one has said why there will be no results."""
        known = any(not each.is_echo for each in self._failures.values())
        late = self._until is not None and time.monotonic() >= self._until
        return known or late or not self._waiting

    def wait(self, deadline: float, doing: Callable[[int], str]) -> None:
        """Wait a moment for what others say."""
        waiting = self._waiting
        ready = wait([self._pipes[number] for number in waiting], timeout=TICK_S)
        for number in waiting:
            if self._pipes[number] in ready:
                heard = _heard(self._pipes[number], self._processes[number], self._folder / f"{number}")
                (self._failures if isinstance(heard, _Failure) else self._results)[number] = heard
        if self._failures and self._until is None:
            self._until = time.monotonic() + GRACE_S
        if not ready and not self._failures and time.monotonic() >= deadline:
            raise RankFailed(_late(waiting, doing))

    def results(self, doing: Callable[[int], str]) -> list[Any]:
        """Give all results."""
        if self._failures:
            number, first = min(self._failures.items(), key=lambda each: (each[1].is_echo, each[0]))
            began = doing(number)
            raise RankFailed(f"rank {number}{f', {began}' if began else ''}: {first.text}", first.kind)
        return [self._results[number] for number in range(len(self._pipes))]


def _heard(pipe: Connection, process: Any, errors: Path) -> Any:
    """Receive what a process says, or find out how it died."""
    try:
        return pipe.recv()
    except EOFError:
        process.join()
        code = process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        said = errors.read_text(errors="replace").strip().splitlines() if errors.exists() else []
        return _Failure("", f"{how}{f': {said[-1][:300]}' if said else ''}")


def _late(waiting: list[int], doing: Callable[[int], str]) -> str:
    """Say who has not ended."""
    who = "; ".join(f"rank {number}{f' began {doing(number)} last' if doing(number) else ''}" for number in waiting)
    return f"not ended in time, so that all were stopped: {who}"


def _child(function: Callable[[], Any], pipe: Connection, errors: Path) -> None:
    """Run a function and say what it gives or why it fails."""
    with open(errors, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    logging.disable(logging.CRITICAL)  # its handlers may hold what this process has lost
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        pipe.send(function())
    except BaseException as error:
        pipe.send(_failure(error))
    pipe.close()
    os._exit(0)  # without what the copied process would have done at its end


def _failure(error: BaseException) -> _Failure:
    """Describe the first cause of an error and where it was raised."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return _Failure(type(error).__name__, f"{type(error).__name__}: {str(error).strip()[:1000]}{place}")
