"""A bar for work whose length is known."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(words: str) -> Iterator[Callable[[int, int], None]]:
    """Show how much is done on standard error, where that is a terminal; nothing is left of it.

    Parameters
    ----------
    words
        What is being done.

    Yields
    ------
    Callable
        Takes how much is done, and of how much.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = Progress(
        TextColumn(words), BarColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    )
    task = shown.add_task("", total=None)
    with shown:
        yield lambda done, total: shown.update(task, completed=done, total=total)
