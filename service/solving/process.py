"""One solve in a process of its own, which can be killed at any time and takes nothing else with it.

The processes come from a fork server that has loaded the solver already: starting one takes about 20 ms. The server's
end, even by ``kill -9``, ends them too. A solve that crashes, needs too much memory or does not stop in time costs its
own answer only.
"""

import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess

from partita.service.settings import Settings
from partita.service.solving.outcomes import (
    Answered,
    Cancelled,
    Crashed,
    Failed,
    Outcome,
    OutOfMemory,
    Overran,
    Refused,
)
from partita.service.solving.references import References
from partita.service.solving.talk import Accepted, Beat, Message, Step, Stop, Talk
from partita.service.solving.variants import Split
from partita.service.solving.work import Task, perform

Work = Callable[[Task, Settings, Talk], Outcome]

Heard = Callable[[Message], bool]
"""Told everything that a process says before its outcome; False ends the solve."""

PRELOADED = (
    "partita.service.solving.process",
    "partita.service.cli",  # every new process imports the program's main module again:
    "uvicorn",  # it is one of these
    "partita.solver.planner",
    "partita.solver.what_if",
    "partita.solver.review",
    "partita.solver.frontier",
)
"""Modules that the fork server loads once."""

_FINAL = (Answered, Split, References, Refused, OutOfMemory, Failed)
_PR_SET_PDEATHSIG = 1
_BEAT_S, _STEP_S = 1.0, 0.1
_LAST_WORDS_S = 5.0  # a process whose end of the pipe is closed has ended, or will at once
_CHILDREN = threading.Lock()
"""Held where a process is begun or its end is read: ``multiprocessing`` then looks at all its processes, whichever
thread they belong to, and two readers of one ending would read what the next process writes to the same descriptor."""


def _context() -> multiprocessing.context.ForkServerContext:
    """Give the context of the fork server, told what to load."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


class SolveProcess:
    """One solve.

    ``run`` blocks and is called once, in any thread; ``kill`` and ``stop`` may be called from any other thread at any
    time.
    """

    def __init__(
        self, task: Task, settings: Settings, work: Work = perform, heard: Heard = lambda message: True
    ) -> None:
        self._task = task
        self._settings = settings
        self._work = work
        self._heard = heard
        self._connection: Connection | None = None
        self._stop_asked = False
        self._lock = threading.Lock()
        self._process: ForkServerProcess | None = None
        self._stopped: Overran | Cancelled | None = None
        self._watchdog: threading.Timer | None = None

    def run(self) -> Outcome:
        """Solve, and give the outcome; the process has ended when this returns."""
        context = _context()
        ours, theirs = context.Pipe()
        end_of_server, server_lives = context.Pipe(duplex=False)
        arguments = (theirs, end_of_server, self._settings, self._work)
        process = context.Process(target=_child, args=arguments, daemon=True)
        try:
            with _CHILDREN:
                process.start()
            theirs.close()
            end_of_server.close()
            with self._lock:
                self._process = process
                stopped = self._stopped is not None
            if not stopped:
                self._allow(self._settings.reading_s, reading=True)
                return self._converse(ours, process)
        finally:
            self._end(process)
            for connection in (ours, theirs, end_of_server, server_lives):
                connection.close()
        return self._stopped or Crashed(-signal.SIGKILL)

    def kill(self, why: Overran | Cancelled | None = None) -> None:
        """End the process at once; ``run`` then gives ``why``, by default that it was cancelled."""
        with self._lock:
            if self._stopped is None:
                self._stopped = why or Cancelled()
            if self._process is not None and not wait([self._process.sentinel], 0):  # it has not ended
                self._process.kill()

    def stop(self) -> None:
        """Ask the process to end the search with what it has found."""
        with self._lock:
            self._stop_asked = True
            if self._connection is not None:
                with contextlib.suppress(OSError):  # it has ended
                    self._connection.send(Stop())

    def _converse(self, connection: Connection, process: ForkServerProcess) -> Outcome:
        """Send the task and take what comes back, until the outcome or the end of the process."""
        try:
            connection.send(self._task)
            with self._lock:
                self._connection = connection
                stop_asked = self._stop_asked
            if stop_asked:
                self.stop()
            while True:
                message = connection.recv()
                if isinstance(message, _FINAL):
                    return message
                if isinstance(message, Accepted):
                    self._allow(message.limit_s + self._settings.grace_s, reading=False)
                if not self._heard(message):
                    return Cancelled()
        except (EOFError, OSError):
            if self._stopped is not None:
                return self._stopped
            wait([process.sentinel], _LAST_WORDS_S)
            with _CHILDREN:
                return Crashed(process.exitcode or 0)

    def _allow(self, seconds: float, *, reading: bool) -> None:
        """Let the process run for so many seconds from now."""
        watchdog = threading.Timer(seconds, self.kill, [Overran(seconds, reading)])
        watchdog.daemon = True
        with self._lock:
            if self._watchdog is not None:
                self._watchdog.cancel()
            self._watchdog = watchdog
        watchdog.start()

    def _end(self, process: ForkServerProcess) -> None:
        """Leave nothing behind."""
        with self._lock:
            if self._watchdog is not None:
                self._watchdog.cancel()
            self._process = self._connection = None
        with _CHILDREN:
            if process.pid is not None:
                process.kill()
                process.join()
            process.close()


def warm_up() -> None:
    """Start the fork server and let it load the solver, so that the first solve starts as fast as the others."""
    process = _context().Process(target=_nothing, daemon=True)
    with _CHILDREN:
        process.start()
        process.join()
        process.close()


def _nothing() -> None:
    """Do nothing."""


def _child(connection: Connection, end_of_server: Connection, settings: Settings, work: Work) -> None:
    """Do the task that comes over the connection; what the new process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then ends this process
    _end_with_server(end_of_server)
    _limit(resource.RLIMIT_CORE, 0)
    if settings.solve_memory_bytes:
        _limit(resource.RLIMIT_AS, settings.solve_memory_bytes)
    with contextlib.suppress(OSError):  # the server has gone, or no longer listens
        talk = _Line(connection)
        talk.send(_outcome(connection.recv(), settings, work, talk))


class _Line(Talk):
    """The conversation over a connection."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._lock = threading.Lock()
        self._step: Step | None = None  # not yet told
        self._told = 0.0

    def open(self) -> None:
        """Listen, and show from now on that this process lives."""
        for work in (self._listen, self._beat):
            threading.Thread(target=work, daemon=True).start()

    def tell(self, message: Message) -> None:
        """Tell the server something; of many steps in a short time, the last one, and that a little later."""
        if isinstance(message, Step) and time.monotonic() < self._told + _STEP_S:
            self._step = message
        else:
            self.send(message)

    def send(self, message: Message | Outcome) -> None:
        """Send something whole, whichever thread does, after a step that was not yet told."""
        with self._lock:
            if self._step is not None and not isinstance(message, Step):
                self._connection.send(self._step)
            self._step, self._told = None, time.monotonic()
            self._connection.send(message)

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while not isinstance(self._connection.recv(), Stop):
                pass
            self.stop.set()

    def _beat(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                time.sleep(_BEAT_S)
                self.send(Beat())


def _outcome(task: Task, settings: Settings, work: Work, talk: _Line) -> Outcome:
    """Do the task; make an outcome of every error."""
    try:
        talk.open()
        return work(task, settings, talk)
    except MemoryError:
        return OutOfMemory(settings.solve_memory_bytes)
    except Exception:
        return Failed(traceback.format_exc())


def _limit(what: int, value: int) -> None:
    """Set a limit of this process, or leave it where it is lower already."""
    _, most = resource.getrlimit(what)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(what, (value, value))


def _end_with_server(end_of_server: Connection) -> None:
    """Have the kernel kill this process when the server ends, or the fork server.

    The fork server is the parent, but it does not end with the server as long as it has children. The server's end
    shows in a pipe of which it holds the other end; the kernel sends a signal when that is closed. It also sends one
    for what is written, and on a loaded machine only after the reader has it; so nothing is ever written to this pipe,
    and the one that brought the task to this process would not do.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    pipe = end_of_server.fileno()
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if end_of_server.poll():  # it ended before the line above
        signal.raise_signal(signal.SIGKILL)
