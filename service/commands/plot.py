"""``partita plot``."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.charts.names import CHARTS, Themes, charts_of
from partita.service.commands.answers import AnswerName, Rank, ScenarioName, blaming, check_place, put
from partita.service.commands.failures import BAD_INPUT, Debug, Stopped, guarded, say

if TYPE_CHECKING:
    from partita.service.charts.charts import Wanted
    from partita.service.commands.files import AnswerFile

ALL = "all"
"""Stands for every chart that there is of an answer."""


class DrawnFormat(StrEnum):
    """What a chart is written as."""

    SVG = "svg"
    PNG = "png"
    JSON = "json"


@guarded
def plot(
    chart: Annotated[str, typer.Argument(metavar="CHART", help=f"{', '.join(CHARTS)}, or {ALL}.")],
    answer: AnswerName,
    candidate: Rank = 1,
    scenario: ScenarioName = None,
    theme: Annotated[Themes, typer.Option(help="Colors for a light or a dark background.")] = "light",
    format: Annotated[
        DrawnFormat | None,
        typer.Option(help="What to write; by default as the file's name ends. json is Vega-Lite."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help=f"Write to a file; for {ALL} into a folder."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw a plan, all plans of an answer, or a front.

    Exit codes: 0 done, 2 bad input, 1 anything else.
    """
    from partita.service.charts.charts import Wanted
    from partita.service.commands.files import AnswerFile

    if chart not in (*CHARTS, ALL):
        raise Stopped(f"there is no chart {chart!r}; the charts are {', '.join(CHARTS)}, or {ALL}", BAD_INPUT)
    if chart != ALL and CHARTS[chart].shows != "plan" and (candidate != 1 or scenario is not None):
        raise Stopped(f"--candidate and --scenario belong to charts of one plan, which {chart} is not", BAD_INPUT)
    wanted = Wanted(chart, candidate, scenario, theme)
    if chart == ALL:
        _check_folder(output)
        _plot_all(AnswerFile(answer, candidate), wanted, format or DrawnFormat.SVG, Path(str(output)))
        return
    chosen = format or _ending(output)
    check_place(output, drawn=None if chosen is DrawnFormat.JSON else chosen)
    file = AnswerFile(answer, candidate)
    if chart not in charts_of(file.kind):
        what = "a front" if file.kind == "frontier" else "an answer"
        known = ", ".join(charts_of(file.kind))
        raise Stopped(f"{file.name}: there is no chart {chart!r} of {what}; the charts are {known}", BAD_INPUT)
    put(drawing(file, wanted, chosen), output)


def drawing(file: "AnswerFile", wanted: "Wanted", format: DrawnFormat) -> str | bytes:
    """Draw a chart of an answer."""
    import json

    from partita.service.charts.charts import draw
    from partita.service.charts.drawing import to_png, to_svg

    with blaming(file):
        spec = draw(wanted, file.answer)
    if format is DrawnFormat.JSON:
        return json.dumps(spec, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return to_svg(spec) if format is DrawnFormat.SVG else to_png(spec)


def _ending(output: str | None) -> DrawnFormat:
    """Tell the format from the name of a file."""
    ending = "" if output is None else Path(output).suffix[1:].lower()
    if ending not in [each.value for each in DrawnFormat]:
        raise Stopped("give --format svg, png or json, or -o FILE with a name that ends so", BAD_INPUT)
    return DrawnFormat(ending)


def _check_folder(output: str | None) -> None:
    """Refuse, before any work, a place where no folder is and none can be made."""
    if output is None:
        raise Stopped(f"{ALL} writes several files; give -o FOLDER", BAD_INPUT)
    path = Path(output)
    if path.exists() and not path.is_dir():
        raise Stopped(f"{output}: cannot be written: it is no folder; give the path of one", BAD_INPUT)
    if not path.parent.is_dir():
        raise Stopped(f"{output}: cannot be made: there is no folder {path.parent}; create it first", BAD_INPUT)


def _plot_all(file: "AnswerFile", wanted: "Wanted", format: DrawnFormat, folder: Path) -> None:
    """Draw every chart into a folder; one that there cannot be of the plan is left out, and that is said."""
    from partita.solver.timeline import in_scenario

    if wanted.scenario is not None:
        with blaming(file):
            in_scenario(file.problem, file.candidate, wanted.scenario)
    drawn = dict(_each(file, wanted, format))
    folder.mkdir(exist_ok=True)
    for name, content in drawn.items():
        put(content, str(folder / f"{name}.{format}"))


def _each(file: "AnswerFile", wanted: "Wanted", format: DrawnFormat) -> Iterator[tuple[str, str | bytes]]:
    """Draw every chart that can be."""
    from dataclasses import replace

    from partita.service.commands.files import BadFile

    for name in charts_of(file.kind):
        try:
            yield name, drawing(file, replace(wanted, name=name), format)
        except BadFile as error:
            say(f"partita: {name} is left out: {error}")
