"""Ctrl-C that ends the program at once, even while a solver runs and does not listen."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from partita.service.cli import INTERRUPTED

_LOOK_S = 0.05


@contextmanager
def ends_at_once(farewell: Callable[[], None]) -> Iterator[None]:
    """End the program with exit code 130 as soon as Ctrl-C is pressed within the block.

    Python's own handler waits until native code returns, and a solver may install one of its own. So the signal is
    blocked in all threads and waited for by a thread of its own.

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

    def wait() -> None:
        while not over.is_set():
            if signal.sigtimedwait({signal.SIGINT}, _LOOK_S) is None:
                continue
            if over.is_set():
                os.kill(os.getpid(), signal.SIGINT)  # it came after the block: for Python's own handler
                return
            try:
                farewell()
            finally:
                os._exit(INTERRUPTED)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=wait, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
