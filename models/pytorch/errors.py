"""Why a module cannot be captured."""

import os
import re
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType


class CannotCapture(ValueError):
    """A module that cannot be captured; the text says where and why, and what would do."""


def first_line(error: BaseException) -> str:
    """Give the first line of what an error says, or its kind where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def place_in_user_code(trace: TracebackType | None, library: str) -> str:
    """Name the last line of a traceback that lies outside torch and Partita.

    Parameters
    ----------
    trace
        Where the error was raised.
    library
        The folder of torch.

    Returns
    -------
    str
        ``file:line, in function (the line)``, the file relative to the working folder or by its bare name; empty where
        all lines are of the libraries.
    """
    return _last([*traceback.extract_tb(trace)], library)


def place_in_stack(stack: str, library: str) -> str:
    """Do the same for a stack that torch has written down as text."""
    found = re.findall(r'File "([^"]+)", line (\d+), in (\S+)\n\s*(.*)', stack)
    frames = [traceback.FrameSummary(path, int(line), name, line=text) for path, line, name, text in found]
    return _last(frames, library)


def _last(frames: list[traceback.FrameSummary], library: str) -> str:
    """Describe the last frame that is of neither library, nor of Python's own."""
    for frame in reversed(frames):
        if not _is_library(frame.filename, library):
            return f"{_short(frame.filename)}:{frame.lineno}, in {frame.name} ({frame.line})"
    return ""


def _is_library(path: str, library: str) -> bool:
    """Tell whether a file is torch's, Partita's or Python's own; packages that others installed are the user's."""
    ours, python = str(Path(__file__).parent), sysconfig.get_path("stdlib")
    return path.startswith((library, ours, "<")) or (path.startswith(python) and "site-packages" not in path)


def _short(path: str) -> str:
    """Give a path relative to the working folder where it is inside, else the bare name of the file."""
    near = os.path.relpath(path)
    return Path(path).name if near.startswith("..") else near
