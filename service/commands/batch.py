"""``partita batch``."""

import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.failures import BAD_INPUT, FAILED, INFEASIBLE, NO_SOLUTION, Debug, Stopped, guarded, say
from partita.service.commands.options import DEFAULTS, option
from partita.service.commands.remote import ServerKey, ServerUrl

if TYPE_CHECKING:
    from partita.service.commands.batch_lines import End, Known, Line, Output
    from partita.service.solving.outcomes import Outcome

SEVERITY = (FAILED, BAD_INPUT, NO_SOLUTION, INFEASIBLE, 0)
"""Exit codes, the one that decides first."""

WINDOW_S = 120.0
"""For how long back the rate is measured from which the end is forecast."""


@guarded
def batch(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help='Problems as NDJSON, one a line, or {"name": ..., "problem": ...}; - for standard input.',
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Append results to a file; those that it holds are not found again."
        ),
    ] = None,
    solves: Annotated[int, option("SOLVES", "Solves at the same time.", 1)] = DEFAULTS.solves,
    server: ServerUrl = None,
    key: ServerKey = None,
    debug: Debug = False,
) -> None:
    """Find plans for many problems; the results are NDJSON, in the order in which they are found.

    A problem that is wrong fails alone, and equal ones are solved once. With -o the same command goes on where it was
    broken off. Exit codes: 1 where a solve failed, else 2 where a problem is wrong, else 4 where the time of one ran
    out, else 3 where one is infeasible, else 0.
    """
    from partita.service.commands.batch_lines import Known, Output, check_other, opened, read_lines
    from partita.service.commands.files import check_writable

    if output is not None:
        check_writable(output, otherwise="leave -o out")
        check_other(file, output)
    lines = read_lines(file)
    printed = nullcontext((Known({}, frozenset()), sys.stdout.buffer))
    with printed if output is None else opened(output, lines) as (known, stream):
        work = _Batch(lines, known, Output(stream, durable=output is not None))
        todo = work.begin()
        found = _here(todo, solves, debug=debug) if server is None else _there(todo, server, key)
        try:
            with _watching(len(todo)) as told, closing(found):
                for digest, end in found:
                    work.end(digest, end)
                    told(work)
        except KeyboardInterrupt:
            rest = "" if output is None else "; the same command goes on from there"
            say(f"partita: broken off after {work.done} of {len(lines)} problems{rest}")
            raise
    say(f"partita: {work.summary()}")
    if work.exit_code:
        raise typer.Exit(work.exit_code)


class _Batch:
    """The problems of a batch, and what became of them.

    Attributes
    ----------
    codes
        The exit codes that ``partita plan`` would have had, one for each problem that has ended.
    """

    def __init__(self, lines: "list[Line]", known: "Known", output: "Output") -> None:
        self._lines, self._known, self._output = lines, known, output
        self._waiting: dict[str, list[Line]] = {}
        self.codes: list[int] = []

    def begin(self) -> "dict[str, Line]":
        """Write what is known without a solve; give the rest, of equal problems one, by digest."""
        for line in self._lines:
            end = line.refused or self._known.ends.get(line.digest)
            if end is None:
                self._waiting.setdefault(line.digest, []).append(line)
                continue
            self.codes.append(_code(end, refused=line.refused is not None))
            if line.index not in self._known.written:
                self._output.write(line.result(end))
        return {digest: waiting[0] for digest, waiting in self._waiting.items()}

    def end(self, digest: str, end: "End") -> None:
        """Write how a problem ended, at all its places."""
        for line in self._waiting.pop(digest):
            self.codes.append(_code(end))
            self._output.write(line.result(end))

    @property
    def done(self) -> int:
        """How many have ended."""
        return len(self.codes)

    @property
    def exit_code(self) -> int:
        """The exit code of the batch."""
        codes = {*self.codes, 0 if self.done == len(self._lines) else FAILED}
        return next(code for code in SEVERITY if code in codes)

    def summary(self) -> str:
        """Say what became of the problems."""
        words = {0: "with a plan", INFEASIBLE: "infeasible", NO_SOLUTION: "out of time", BAD_INPUT: "wrong"}
        counts = [(self.codes.count(code), text) for code, text in {**words, FAILED: "failed"}.items()]
        parts = ", ".join(f"{count} {text}" for count, text in counts if count)
        return f"{self.done} of {len(self._lines)} problems: {parts or 'none ended'}"


def _code(end: "End", *, refused: bool = False) -> int:
    """Give the exit code that stands for the end of one problem."""
    from partita.service.problem_document import ProblemDocument

    if end.failure is not None:
        about_input = refused or ProblemDocument.model_validate_json(end.failure).about_input
        return BAD_INPUT if about_input else FAILED
    return {"infeasible": INFEASIBLE, "no_solution": NO_SOLUTION}.get(end.status, 0)


def _here(todo: "dict[str, Line]", solves: int, *, debug: bool) -> "Generator[tuple[str, End], None, None]":
    """Solve in processes of this machine, without the limits of a server."""
    from partita.service.commands.batch_lines import UNLIMITED
    from partita.service.settings import Settings
    from partita.service.solving.many import solve_all
    from partita.service.solving.work import Task

    settings = Settings(
        max_layers=UNLIMITED,
        max_devices=UNLIMITED,
        max_candidates=UNLIMITED,
        max_workers=UNLIMITED,
        max_time_limit_s=float(UNLIMITED),
        solve_memory_bytes=0,
        reading_s=600.0,
        solves=solves,
    )
    tasks = {digest: Task("plan", line.body) for digest, line in todo.items()}
    with closing(solve_all(tasks, settings)) as outcomes:
        for digest, outcome in outcomes:
            yield digest, _end_of(outcome, debug=debug)


def _end_of(outcome: "Outcome", *, debug: bool) -> "End":
    """Give what is written of an outcome."""
    from partita.service.commands.batch_lines import End
    from partita.service.problem_document import INTERNAL, Refusal
    from partita.service.refusals import refusal_of
    from partita.service.solving.outcomes import Answered, Failed

    if isinstance(outcome, Answered):
        return End("succeeded", answer=outcome.body, status=outcome.status)
    if isinstance(outcome, Failed):
        if debug:
            say(outcome.trace)
        reason = outcome.trace.strip().splitlines()[-1][:300]
        return End("failed", Refusal(INTERNAL, f"an error inside Partita: {reason}; --debug shows more").document())
    return End("failed", refusal_of(outcome).document())


def _there(todo: "dict[str, Line]", url: str, key: str | None) -> "Generator[tuple[str, End], None, None]":
    """Have a server solve; what it has not done is cancelled when this is left early."""
    from partita.service.commands.batch_lines import End, problem_of
    from partita.service.commands.files import BadFile
    from partita.service.commands.remote import calling

    if not todo:
        return
    digests = list(todo)
    with calling(url, key, lambda faults: BadFile("the batch", faults)) as client:
        taken = client.submit_batch([problem_of(line) for line in todo.values()])
        try:
            for result in client.results(taken.id):
                if not 0 <= result.index < len(digests):
                    raise Stopped(f"the server gave a result for problem {result.index} of {len(digests)}")
                if result.answer is not None:
                    answer = result.answer.model_dump_json().encode()
                    yield digests[result.index], End("succeeded", None, answer, result.answer.status)
                elif result.failure is not None:
                    yield digests[result.index], End("failed", result.failure.model_dump_json().encode())
        except (KeyboardInterrupt, GeneratorExit):
            client.cancel_batch(taken.id)
            raise


@contextmanager
def _watching(total: int) -> "Iterator[Callable[[_Batch], None]]":
    """Show how many problems are done, and when all will be, on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda work: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task, ended = bar.add_task("solving", total=total), [time.monotonic()]

    def told(work: _Batch) -> None:
        ended.append(time.monotonic())
        bar.update(task, completed=len(ended) - 1, description=forecast(ended, total))

    with bar:
        yield told


def forecast(ended: list[float], total: int) -> str:
    """Say when all solves will have ended, as a fluid queue has it to which nothing is added.

    Parameters
    ----------
    ended
        When the first began, and when each ended, in seconds on one clock, the last one now.
    total
        How many solves there are.
    """
    from partita.models.queueing import drain_s

    now = ended[-1]
    since = max(ended[0], now - WINDOW_S)
    served = sum(at > since for at in ended)
    left = drain_s(total - (len(ended) - 1), 0.0, served / max(now - since, 1e-9))
    return "solving" if left is None else f"about {timedelta(seconds=round(left))} left at this rate"
