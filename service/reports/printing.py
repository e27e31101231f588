"""Where reports are printed: a console as wide as the terminal, or of a fixed width in a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from shutil import get_terminal_size
from typing import IO

from rich.console import Console

from partita.service.reports.wording import NO_BREAK

PIPED_WIDTH = 120
"""Columns of a report that goes to a file."""


@contextmanager
def console_for(file: IO[str]) -> Iterator[Console]:
    """Give a console; what is printed on it is written to the file in the end, without blanks at the ends of lines.

    The size is asked for here: Rich takes every dumb terminal for 80 columns, whatever ``COLUMNS`` says.
    """
    terminal, text, size = file.isatty(), StringIO(), get_terminal_size()
    yield Console(
        file=text,
        width=size.columns if terminal else PIPED_WIDTH,
        height=size.lines,
        force_terminal=terminal,
        markup=False,
        highlight=False,
        emoji=False,
    )
    lines = text.getvalue().replace(NO_BREAK, " ").splitlines()
    file.write("".join(f"{line.rstrip()}\n" for line in lines))
