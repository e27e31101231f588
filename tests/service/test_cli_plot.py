"""``partita plot``: charts, formats, files and exit codes."""

import io
import json

import pytest
from cli_calls import partita, run_partita
from drawn_answers import answer, front

from partita.models.document import validate
from partita.models.front import Front
from partita.service.charts.charts import Wanted, draw
from partita.service.charts.names import CHARTS, charts_of

PNG = b"\x89PNG\r\n\x1a\n"


def written(file, found, name="answer.json"):
    return file(json.loads(found.model_dump_json()), name)


@pytest.fixture(scope="module")
def planned():
    return answer("planned")


def test_a_chart_by_the_ending_of_its_file(file, planned, tmp_path):
    """Tests every format by the ending, that they are the charts of the library, and standard output."""
    path = written(file, planned)
    for ending in ("svg", "png", "json", "SVG"):
        assert partita("plot", "memory", path, "-o", str(tmp_path / f"memory.{ending}")).exit_code == 0
    svg = (tmp_path / "memory.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg ")
    assert (tmp_path / "memory.SVG").read_text(encoding="utf-8") == svg
    assert (tmp_path / "memory.png").read_bytes().startswith(PNG)
    spec = json.loads((tmp_path / "memory.json").read_text(encoding="utf-8"))
    assert spec == json.loads(json.dumps(draw(Wanted("memory"), planned)))
    assert partita("plot", "memory", path, "--format", "svg").out == svg
    assert json.loads(partita("plot", "memory", path, "--format", "json").out) == spec
    assert run_partita("plot", "memory", path, "--format", "png").stdout == (tmp_path / "memory.png").read_bytes()
    assert partita("plot", "memory", path, "--format", "json", "-o", str(tmp_path / "x.svg")).exit_code == 0
    assert json.loads((tmp_path / "x.svg").read_text(encoding="utf-8")) == spec


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--candidate", "2"], {"candidate": 2}),
        (["--theme", "dark"], {"theme": "dark"}),
        (["--scenario", "short"], {"scenario": "short"}),
    ],
)
def test_options(file, options, wanted):
    """Tests that the plan, the theme and the scenario asked for are drawn."""
    found = answer("scenarios")
    called = partita("plot", "times", written(file, found), "--format", "json", *options)
    assert (called.exit_code, called.err) == (0, "")
    assert json.loads(called.out) == json.loads(json.dumps(draw(Wanted("times", **wanted), found)))


def test_the_timeline_is_that_of_partita_timeline(file, planned):
    """Tests that both commands draw the same."""
    path = written(file, planned)
    drawn = partita("plot", "timeline", path, "--format", "svg")
    assert drawn.out == partita("timeline", path, "--format", "svg").out


def test_all_charts(file, planned, tmp_path):
    """Tests that every chart of an answer and of a front is written, into a folder that is made."""
    folder = tmp_path / "charts"
    called = partita("plot", "all", written(file, planned), "-o", str(folder))
    assert (called.exit_code, called.out, called.err) == (0, "", "")
    assert {path.name for path in folder.iterdir()} == {f"{name}.svg" for name in charts_of("plan")}
    assert partita("plot", "all", written(file, front()), "--format", "json", "-o", str(folder)).exit_code == 0
    names = {f"{name}.json" for name in charts_of("frontier")}
    assert {path.name for path in folder.glob("*.json")} == names
    assert {*charts_of("plan"), *charts_of("frontier")} == set(CHARTS)


def test_what_cannot_be_drawn_is_left_out_of_all(file, tmp_path):
    """Tests a plan in steady state, which has no timeline: the others are drawn, and that is said."""
    called = partita("plot", "all", written(file, answer("steady")), "-o", str(tmp_path / "charts"))
    assert called.exit_code == 0
    assert "timeline is left out: " in called.err
    assert "per_stage_degrees: not supported yet" in called.err
    assert not (tmp_path / "charts" / "timeline.svg").exists()
    assert (tmp_path / "charts" / "memory.svg").exists()


def test_bad_input(file, planned, tmp_path, monkeypatch):
    """Tests that exit code 2 comes with what would be right."""
    path, other = written(file, planned), written(file, front(), "front.json")
    (tmp_path / "taken").write_text("")
    cases = {
        ("pie", path, "-o", "x.svg"): "there is no chart 'pie'; the charts are layers, times, memory",
        ("front", path, "-o", "x.svg"): "there is no chart 'front' of an answer; the charts are layers",
        ("comparison", other, "-o", "x.svg"): "there is no chart 'comparison' of a front",
        ("memory", path, "-o", "x.pdf"): "give --format svg, png or json, or -o FILE with a name that ends so",
        ("memory", path): "give --format svg, png or json",
        ("memory", path, "-o", "nowhere/x.svg"): "no folder nowhere",
        ("memory", path, "--candidate", "9", "-o", "x.svg"): "this answer has no candidate 9; it has 3",
        ("memory", path, "--scenario", "long", "-o", "x.svg"): "/problem/scenarios: there is no scenario 'long'",
        ("comparison", path, "--candidate", "2", "-o", "x.svg"): "--candidate and --scenario belong to charts of one",
        ("all", path): "all writes several files; give -o FOLDER",
        ("all", path, "-o", str(tmp_path / "taken")): "it is no folder",
        ("all", path, "-o", "nowhere/charts"): "there is no folder nowhere",
        ("all", path, "--scenario", "long", "-o", str(tmp_path / "charts")): "there is no scenario 'long'",
        ("memory", path, "--theme", "blue", "-o", "x.svg"): "blue",
    }  # fmt: skip
    for arguments, words in cases.items():
        called = partita("plot", *arguments)
        assert (called.exit_code, called.out) == (2, ""), arguments
        assert words in called.err, called.err
    assert not (tmp_path / "charts").exists()


def test_nothing_is_drawn_on_a_terminal(file, planned, monkeypatch):
    """Tests that a terminal is not filled with a drawing, but may show JSON."""

    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    monkeypatch.setattr("cli_calls.io.TextIOWrapper", Terminal)
    path = written(file, planned)
    called = partita("plot", "memory", path, "--format", "png")
    assert (called.exit_code, called.err) == (2, "partita: a terminal does not show png; give -o FILE.png\n")
    assert partita("plot", "memory", path, "--format", "json").exit_code == 0


def test_points_of_a_front(file):
    """Tests that a front is drawn, and a plan of it."""
    path = written(file, front())
    assert '"point":' in partita("plot", "front", path, "--format", "json").out
    last = len(front().points)
    called = partita("plot", "layers", path, "--candidate", str(last), "--format", "svg")
    assert called.exit_code == 0
    assert validate(Front, json.loads(front().model_dump_json())) == front()


def test_help_names_the_charts():
    """Tests that every chart is named where users look for it."""
    called = partita("plot", "--help")
    assert called.exit_code == 0
    assert all(name in called.out for name in (*CHARTS, "all"))
