"""How a command ends: exit codes and messages instead of tracebacks."""

import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, NoReturn, ParamSpec

import typer

from partita.service.cli import INTERRUPTED

FAILED = 1
BAD_INPUT = 2
INFEASIBLE = 3
NO_SOLUTION = 4
DIFFERENT = 5

Parameters = ParamSpec("Parameters")

Debug = Annotated[
    bool, typer.Option("--debug", envvar="PARTITA_DEBUG", help="Show the traceback of an unexpected error.")
]


class Stopped(Exception):
    """Ends a command with an exit code and a message on standard error."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def say(message: str) -> None:
    """Write a message to standard error, with control characters escaped; one that nobody reads is no error."""
    shown = "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in message)
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{shown}\n")
        sys.stderr.flush()


def guarded(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Make a command end with an exit code and a message, whatever happens in it."""

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except typer.Exit as ending:
            _flush()
            raise typer.Exit(ending.exit_code) from None
        except BaseException as error:
            _end(error, debug=bool(kwargs.get("debug")))

    return run


def _flush() -> None:
    """Write out what was printed."""
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        _end(error, debug=False)


def _end(error: BaseException, *, debug: bool) -> NoReturn:
    """Turn an error into a message and an exit code."""
    from partita.models.errors import InvalidInput
    from partita.service.commands.files import BadFile

    if isinstance(error, BrokenPipeError):
        with open(os.devnull, "w") as nothing:  # so that nothing is written to the pipe at exit
            os.dup2(nothing.fileno(), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
    if debug and not isinstance(error, KeyboardInterrupt | Stopped | BadFile):
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        raise typer.Exit(INTERRUPTED) from None
    if isinstance(error, Stopped):
        say(f"partita: {error}")
        raise typer.Exit(error.exit_code) from None
    if isinstance(error, BadFile | InvalidInput):
        say(str(error))
        raise typer.Exit(BAD_INPUT) from None
    if isinstance(error, MemoryError):
        say("partita: out of memory")
    elif isinstance(error, OSError):
        say(f"partita: {error}")
    elif isinstance(error, Exception):
        say(f"partita: internal error: {type(error).__name__}: {_one_line(error)}; --debug shows the traceback")
    else:
        raise error
    raise typer.Exit(FAILED) from None


def _one_line(error: BaseException) -> str:
    """Give the message of an error as one line that is not too long."""
    return " ".join(str(error).split())[:300]
