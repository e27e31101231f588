"""``partita timeline`` and ``partita export``."""

import io
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.answers import AnswerName, Output, Rank, ScenarioName, blaming, check_place, put
from partita.service.commands.failures import BAD_INPUT, Debug, Stopped, guarded
from partita.service.commands.plot import DrawnFormat, drawing
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


@guarded
def timeline(
    answer: AnswerName,
    candidate: Rank = 1,
    format: Annotated[TimelineFormat, typer.Option(help="What to write.")] = TimelineFormat.TEXT,
    scenario: ScenarioName = None,
    links: Annotated[bool, typer.Option("--links", help="svg, png: show the transfers too.")] = False,
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Show when every device runs what, and which stages and transfers the iteration time comes from.

    Exit codes: 0 done, 2 bad input, 1 anything else.
    """
    from partita.service.charts.charts import Wanted
    from partita.service.commands.files import AnswerFile

    if links and format not in DRAWN:
        raise Stopped("--links belongs to --format svg and png; the others show the transfers anyway", BAD_INPUT)
    check_place(output, drawn=format if format in DRAWN else None)
    file = AnswerFile(answer, candidate)
    if format in DRAWN:
        wanted = Wanted("timeline", candidate, scenario, links=links)
        put(drawing(file, wanted, DrawnFormat(format)), output)
        return
    if scenario is not None:
        _choose(file, scenario)
    if format is TimelineFormat.CHROME_TRACE:
        from partita.service.reports.chrome_trace import chrome_trace_text

        put(chrome_trace_text(_computed(file), file.candidate), output)
    else:
        _print(_computed(file), file, output)


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
    from partita.service.commands.files import AnswerFile
    from partita.service.reports.exports import EXPORTS

    if format not in FORMATS:
        raise Stopped(f"there is no format {format!r}; the formats are {', '.join(FORMATS)}", BAD_INPUT)
    check_place(output, drawn=None)
    file = AnswerFile(answer, candidate)
    with blaming(file):
        text = EXPORTS[format](file.problem, file.candidate)
    put(text, output)


def _choose(file: "AnswerFile", scenario: str) -> None:
    """Show the plan chosen in a scenario."""
    from partita.solver.timeline import in_scenario

    with blaming(file):
        file.candidate = in_scenario(file.problem, file.candidate, scenario)


def _computed(file: "AnswerFile") -> "Timeline":
    """Compute the timeline of the plan chosen."""
    from partita.solver.timeline import timeline

    with blaming(file):
        return timeline(file.problem, file.candidate)


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
