"""``partita timeline`` and ``partita export``."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.failures import BAD_INPUT, Debug, Stopped, guarded
from partita.service.reports.formats import FORMATS

if TYPE_CHECKING:
    from partita.service.commands.files import AnswerFile
    from partita.solver.timeline import Timeline


class TimelineFormat(StrEnum):
    """The forms of a timeline."""

    TEXT = "text"
    SVG = "svg"
    PNG = "png"
    CHROME_TRACE = "chrome-trace"


DRAWN = (TimelineFormat.SVG, TimelineFormat.PNG)
"""The forms that are drawn: no terminal shows them."""

AnswerName = Annotated[
    str,
    typer.Argument(metavar="ANSWER", help="An answer or a front that holds its problem (-o); - for standard input."),
]
Rank = Annotated[
    int, typer.Option(min=1, metavar="RANK", help="Which plan of the answer, or point of the front, to take.")
]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")]


@guarded
def timeline(
    answer: AnswerName,
    candidate: Rank = 1,
    format: Annotated[TimelineFormat, typer.Option(help="What to write.")] = TimelineFormat.TEXT,
    scenario: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which of several scenarios to show; the longest if left out.")
    ] = None,
    links: Annotated[bool, typer.Option("--links", help="svg, png: show the transfers too.")] = False,
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Show when every device runs what, and which stages and transfers the iteration time comes from.

    Exit codes: 0 done, 2 bad input, 1 anything else.
    """
    from partita.service.commands.files import AnswerFile, check_writable

    if links and format not in DRAWN:
        raise Stopped("--links belongs to --format svg and png; the others show the transfers anyway", BAD_INPUT)
    if output is not None:
        check_writable(output, otherwise="leave out -o")
    elif format in DRAWN and sys.stdout.isatty():
        raise Stopped(f"a terminal does not show {format}; give -o FILE.{format}", BAD_INPUT)
    file = AnswerFile(answer, candidate)
    if scenario is not None:
        _choose(file, scenario)
    if format is TimelineFormat.CHROME_TRACE:
        from partita.service.reports.chrome_trace import chrome_trace_text

        _put(chrome_trace_text(_computed(file), file.candidate), output)
    elif format is TimelineFormat.TEXT:
        _print(_computed(file), file, output)
    else:
        _put(_drawing(_computed(file), file, format, links=links), output)


@guarded
def export(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help=f"{', '.join(FORMATS)}.")],
    answer: AnswerName,
    candidate: Rank = 1,
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Turn a plan into a file of another program, and print it.

    Exit codes: 0 done, 2 bad input, 1 anything else.
    """
    from partita.service.commands.files import AnswerFile, check_writable
    from partita.service.reports.exports import EXPORTS

    if format not in FORMATS:
        raise Stopped(f"there is no format {format!r}; the formats are {', '.join(FORMATS)}", BAD_INPUT)
    if output is not None:
        check_writable(output, otherwise="leave out -o")
    file = AnswerFile(answer, candidate)
    with _blaming(file):
        text = EXPORTS[format](file.problem, file.candidate)
    _put(text, output)


def _choose(file: "AnswerFile", scenario: str) -> None:
    """Show the plan chosen in a scenario."""
    from partita.solver.timeline import in_scenario

    with _blaming(file):
        file.candidate = in_scenario(file.problem, file.candidate, scenario)


def _computed(file: "AnswerFile") -> "Timeline":
    """Compute the timeline of the plan chosen."""
    from partita.solver.timeline import timeline

    with _blaming(file):
        return timeline(file.problem, file.candidate)


@contextmanager
def _blaming(file: "AnswerFile") -> Iterator[None]:
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


def _drawing(timeline: "Timeline", file: "AnswerFile", format: TimelineFormat, *, links: bool) -> str | bytes:
    """Draw a chart."""
    from partita.service.charts.drawing import to_png, to_svg
    from partita.service.charts.timeline import TooManyBars, pipeline_chart

    try:
        spec = pipeline_chart(timeline, file.candidate, links=links)
    except TooManyBars as error:
        raise Stopped(f"{error}; --format chrome-trace has no such limit", BAD_INPUT) from None
    return to_svg(spec) if format is TimelineFormat.SVG else to_png(spec)


def _print(timeline: "Timeline", file: "AnswerFile", output: str | None) -> None:
    """Print the text form, or write it without colors to a file."""
    from partita.service.commands.files import write_whole
    from partita.service.reports.timeline_text import print_timeline

    if output is not None:
        text = io.StringIO()
        print_timeline(timeline, file.candidate, text)
        write_whole(output, text.getvalue())
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name that the terminal cannot show is no error
    print_timeline(timeline, file.candidate, sys.stdout)


def _put(content: str | bytes, output: str | None) -> None:
    """Write to the file or to standard output; text as UTF-8 whatever the terminal."""
    from partita.service.commands.files import write_whole

    if output is not None:
        write_whole(output, content)
    else:
        sys.stdout.buffer.write(content.encode() if isinstance(content, str) else content)
        sys.stdout.buffer.flush()
