"""What a command found, written to a file, printed, and told by the exit code."""

import io
import sys
from typing import TYPE_CHECKING

import typer

from partita.service.commands.failures import INFEASIBLE, NO_SOLUTION
from partita.service.commands.files import stem, write_whole

if TYPE_CHECKING:
    from partita.models.answer import Answer
    from partita.models.front import Front
    from partita.models.problem import Problem


def deliver(found: "Answer | Front", problem: "Problem", name: str, *, json: bool, output: str | None) -> None:
    """Write and print an answer or a front, and end with the exit code that its status has.

    Parameters
    ----------
    problem, name
        What was asked, and the name of its file.
    json
        Whether to print JSON instead of a report.
    output
        The file to write, with the problem in it; None for none.
    """
    if output is not None:
        whole = found.model_copy(update={"problem": problem})
        write_whole(output, whole.model_dump_json(indent=1) + "\n")
    if json:
        sys.stdout.buffer.write(found.model_dump_json(indent=1).encode() + b"\n")
        sys.stdout.buffer.flush()
    else:
        _print(found, problem, name)
    code = {"infeasible": INFEASIBLE, "no_solution": NO_SOLUTION}.get(found.status, 0)
    if code:
        raise typer.Exit(code)


def _print(found: "Answer | Front", problem: "Problem", name: str) -> None:
    from partita.models.answer import Answer
    from partita.service.reports.front import print_front
    from partita.service.reports.report import print_report

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name that the terminal cannot show is no error
    if isinstance(found, Answer):
        print_report(found, problem, sys.stdout, title=stem(name))
    else:
        print_front(found, problem, sys.stdout, title=stem(name))
