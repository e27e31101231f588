"""What the commands that show an answer have in common: which plan, whose fault, and where the result goes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.failures import BAD_INPUT, Stopped

if TYPE_CHECKING:
    from partita.service.commands.files import AnswerFile

AnswerName = Annotated[
    str,
    typer.Argument(metavar="ANSWER", help="An answer or a front that holds its problem (-o); - for standard input."),
]
Rank = Annotated[
    int, typer.Option(min=1, metavar="RANK", help="Which plan of the answer, or point of the front, to take.")
]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")]
ScenarioName = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which of several scenarios to show; the longest if left out.")
]


def check_place(output: str | None, *, drawn: str | None) -> None:
    """Refuse, before any work, a place where nothing can be written; no terminal shows what is ``drawn``.

    Parameters
    ----------
    output
        A file; None for standard output.
    drawn
        The format, where it is one for viewers; None for text.
    """
    from partita.service.commands.files import check_writable

    if output is not None:
        check_writable(output, otherwise="leave out -o")
    elif drawn is not None and sys.stdout.isatty():
        raise Stopped(f"a terminal does not show {drawn}; give -o FILE.{drawn}", BAD_INPUT)


@contextmanager
def blaming(file: "AnswerFile") -> Iterator[None]:
    """Name the file where the answer is at fault: what it holds is refused, or another version computed it."""
    from partita import __version__
    from partita.models.errors import InvalidInput
    from partita.solver.checks import InternalError

    try:
        yield
    except InvalidInput as error:
        raise file.refused(error.faults) from None
    except InternalError as error:
        if file.version == __version__:
            raise
        detail = f"{error}; version {file.version} wrote this answer, this is {__version__}: plan again"
        raise Stopped(f"{file.name}: {detail}", BAD_INPUT) from None


def put(content: str | bytes, output: str | None) -> None:
    """Write to the file or to standard output; text as UTF-8 whatever the terminal."""
    from partita.service.commands.files import write_whole

    if output is not None:
        write_whole(output, content)
    else:
        sys.stdout.buffer.write(content.encode() if isinstance(content, str) else content)
        sys.stdout.buffer.flush()
