"""Ctrl-C that ends the program at once, even while a solver runs and does not listen."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from partita.service.cli import INTERRUPTED

_LOOK_S = 0.05


@contextmanager
def ends_at_once(farewell: Callable[[], None]) -> Iterator[None]:
    """End the program with exit code 130 as soon as Ctrl-C is pressed within the block.

    Python's own handler waits until native code returns, and a solver may install one of its own. So the signal is
    blocked in this thread and those that it starts, and waited for by a thread of its own. A thread that was there
    before may still take it; the wakeup file of Python's handler tells that.

    Parameters
    ----------
    farewell
        Called before the end, to leave the terminal in order.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    over = threading.Event()
    taken, handler = socket.socketpair()
    taken.setblocking(False)
    handler.setblocking(False)

    def wait() -> None:
        while not over.is_set():
            waited_for = signal.sigtimedwait({signal.SIGINT}, _LOOK_S) is not None
            if over.is_set():
                if waited_for:
                    os.kill(os.getpid(), signal.SIGINT)  # it came after the block: for Python's own handler
            elif waited_for or signal.SIGINT in _read(taken):
                try:
                    farewell()
                finally:
                    os._exit(INTERRUPTED)
        taken.close()

    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    woken = signal.set_wakeup_fd(handler.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=wait, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(woken)
        handler.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _read(taken: socket.socket) -> bytes:
    """Give the numbers of the signals that Python's handler took."""
    try:
        return taken.recv(64)
    except BlockingIOError:
        return b""
