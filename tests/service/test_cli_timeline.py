"""``partita timeline`` and ``partita export``: formats, files and exit codes."""

import io
import json
import sys
from html import unescape

import pytest
from cli_calls import partita, run_partita
from small_problems import chain, too_large
from small_timelines import answer_json, training_problem

from partita import __version__
from partita.models.document import validate
from partita.models.problem import Problem
from partita.service.reports.formats import FORMATS
from partita.service.reports.wording import percent, seconds

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def answer():
    return answer_json(training_problem())


def test_text(file, answer):
    """Tests the form for people, on standard output and in a file."""
    called = partita("timeline", file(answer))
    assert (called.exit_code, called.err) == (0, "")
    assert called.out.startswith("1f1b: 2 stages on 2 ranks, 3 microbatches\nn0:0 F0")
    assert "The critical path spends" in called.out


def test_a_planned_answer(file, tmp_path):
    """Tests the way from a problem to the timelines of its plans, the answer being read from standard input too."""
    path = str(tmp_path / "planned.json")
    assert partita("plan", file(chain(), "problem.json"), "-o", path).exit_code == 0
    first = partita("timeline", path)
    assert first.exit_code == 0, first.err
    assert first.out.startswith("forward_only: 2 stages on 2 ranks, 4 microbatches\n")
    second = partita("timeline", "-", "--candidate", "2", stdin=(tmp_path / "planned.json").read_bytes())
    assert second.exit_code == 0, second.err
    assert second.out != first.out


def test_a_plan_that_breaks_limits(file, tmp_path):
    """Tests that a plan that does not fit has a timeline all the same."""
    path = str(tmp_path / "priced.json")
    problem, plan = file(too_large(), "problem.json"), file({"stage_sizes": [2, 1]}, "plan.json")
    assert partita("evaluate", problem, plan, "-o", path).exit_code == 3
    assert partita("timeline", path).exit_code == 0


@pytest.mark.parametrize("links", [[], ["--links"]])
def test_drawings(file, answer, tmp_path, links):
    """Tests that drawings go to a file or, byte for byte, to standard output."""
    path, drawn = file(answer), tmp_path / "drawn"
    assert partita("timeline", path, "--format", "svg", "-o", str(drawn), *links).exit_code == 0
    svg = drawn.read_text(encoding="utf-8")
    assert svg.startswith("<svg ")
    assert ("uplink" in svg) == bool(links)
    assert partita("timeline", path, "--format", "svg", *links).out == svg
    assert partita("timeline", path, "--format", "png", "-o", str(drawn), *links).exit_code == 0
    png = drawn.read_bytes()
    assert png.startswith(PNG)
    assert run_partita("timeline", path, "--format", "png", *links).stdout == png


def test_text_file(file, answer, tmp_path):
    """Tests that the text in a file is the one that is printed."""
    path, written = file(answer), tmp_path / "timeline.txt"
    called = partita("timeline", path, "-o", str(written))
    assert (called.exit_code, called.out) == (0, "")
    assert written.read_text(encoding="utf-8") == partita("timeline", path).out


def test_chrome_trace(file, answer, tmp_path):
    """Tests that both commands write the same trace, to a file and to standard output."""
    path, written = file(answer), tmp_path / "trace.json"
    called = partita("export", "chrome-trace", path)
    assert called.exit_code == 0, called.err
    assert len(json.loads(called.out)["traceEvents"]) > 20
    assert partita("timeline", path, "--format", "chrome-trace").out == called.out
    assert partita("export", "chrome-trace", path, "-o", str(written)).exit_code == 0
    assert written.read_text(encoding="utf-8") == called.out


def in_scenarios(problem):
    """Give a problem with a short and a long scenario; in the long one the second layer takes 20 s instead of 2 s."""
    value = problem.model_dump(mode="json", by_alias=True)
    value["model"]["layers"][1]["options"] = [{"scenario": "long", "forward_s": 20.0}]
    value["scenarios"] = [{"name": "short", "share": 0.75}, {"name": "long", "share": 0.25}]
    return validate(Problem, value)


@pytest.fixture(scope="module")
def answer_in_scenarios():
    return answer_json(in_scenarios(training_problem()))


@pytest.mark.parametrize("name", ["short", "long"])
def test_scenarios(file, answer_in_scenarios, name):
    """Tests all forms in each scenario: the makespan is that of its metrics; the longest is shown by itself."""
    path, asked = file(answer_in_scenarios), ["--scenario", name]
    (metrics,) = [each["metrics"] for each in answer_in_scenarios["candidates"][0]["scenarios"] if each["name"] == name]
    makespan = seconds(metrics["iteration_time_s"])
    text = partita("timeline", path, *asked).out
    suffix = ", the longest" if name == "long" else ""
    assert text.startswith(f"1f1b: 2 stages on 2 ranks, 3 microbatches, scenario '{name}'{suffix}\n")
    assert f"Makespan {makespan}; bubble {percent(metrics['bubble_fraction'])} of" in text
    svg = partita("timeline", path, "--format", "svg", *asked).out
    assert f"1f1b, 2 stages on 2 ranks, scenario '{name}'{suffix}: makespan {makespan}" in unescape(svg)
    trace = partita("timeline", path, "--format", "chrome-trace", *asked).out
    found = json.loads(trace)["otherData"]
    assert (found["scenario"], found["iteration_time_s"]) == (name, pytest.approx(metrics["iteration_time_s"]))
    assert found["makespan_s"] == pytest.approx(metrics["iteration_time_s"])
    if name == "long":
        assert partita("timeline", path).out == text
        assert partita("export", "chrome-trace", path).out == trace


def test_scenarios_that_do_not_exist(file, answer, answer_in_scenarios):
    """Tests that the scenarios that exist are named, or that there are none."""
    called = partita("timeline", file(answer_in_scenarios), "--scenario", "middle")
    assert called.exit_code == 2
    assert called.err.endswith("/problem/scenarios: there is no scenario 'middle'; there are 'short', 'long'\n")
    called = partita("timeline", file(answer), "--scenario", "short")
    assert called.exit_code == 2
    assert called.err.endswith("/problem/scenarios: there is no scenario 'short'; the problem has no scenarios\n")


def test_nothing_is_drawn_on_a_terminal(file, answer, monkeypatch):
    """Tests that a terminal is not filled with a drawing, and that the way out is named."""

    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    monkeypatch.setattr("cli_calls.io.TextIOWrapper", Terminal)
    for kind in ("svg", "png"):
        called = partita("timeline", file(answer), "--format", kind)
        assert (called.exit_code, called.out) == (2, "")
        assert called.err == f"partita: a terminal does not show {kind}; give -o FILE.{kind}\n"


def test_formats_that_do_not_exist(file, answer):
    """Tests that unknown formats name the known ones."""
    called = partita("export", "perfetto", file(answer))
    assert called.exit_code == 2
    assert called.err == (
        "partita: there is no format 'perfetto'; the formats are chrome-trace, contract, deepspeed, megatron, "
        "megatron-numbers, torch, torch-orders, torchtitan, vllm\n"
    )
    called = partita("timeline", file(answer), "--format", "pdf")
    assert called.exit_code == 2
    assert "chrome-trace" in called.err


@pytest.mark.parametrize("command", [["timeline"], ["export", "chrome-trace"], ["export", "torch-orders"]])
@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ({"problem": None}, [], "/problem: this answer does not hold its problem; plan again with -o"),
        ({"problem": {}}, [], "/problem/model: required"),
        ({"candidates": []}, [], "this answer has no candidate 1; it has 0"),
        ({}, ["--candidate", "2"], "this answer has no candidate 2; it has 1"),
        ({}, ["--candidate", "0"], "--candidate"),
        ({"candidates": [{"rank": 1}]}, [], "/candidates/0/schedule: required"),
        ({}, ["-o", "nowhere/x"], "no folder nowhere"),
        ({}, ["-o", "-"], "for standard output leave out -o"),
    ],
)
def test_bad_input(file, answer, command, content, options, words):
    """Tests that exit code 2 comes with the file, the place and what would be right."""
    called = partita(*command, file(answer | content), *options)
    assert (called.exit_code, called.out) == (2, "")
    assert words in called.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "expected an answer, as partita plan PROBLEM -o ANSWER writes it"),
        (chain(), "expected an answer"),
    ],
)
def test_what_is_no_answer(file, content, words):
    """Tests that other files are refused with the file's name."""
    path = file(content)
    called = partita("timeline", path)
    assert called.exit_code == 2
    assert called.err.startswith(f"{path}: document: ")
    assert words in called.err
    assert partita("timeline", "nowhere.json").exit_code == 2


def test_a_candidate_that_is_no_plan_for_the_problem(file, answer):
    """Tests that the place in the candidate or in the problem is named."""
    stages = [stage | {"layers": ["l0"]} for stage in answer["candidates"][0]["stages"]]
    called = partita("timeline", path := file(answer | {"candidates": [answer["candidates"][0] | {"stages": stages}]}))
    assert called.exit_code == 2
    assert called.err.startswith(f"{path}: /candidates/0/stages")
    training = answer["problem"]["training"] | {"queueing": True, "communication": "blocking"}
    problem = answer["problem"] | {"training": training}
    called = partita("timeline", file(answer | {"problem": problem}))
    assert called.exit_code == 2
    assert "/problem/training/queueing: not supported yet" in called.err


def test_figures_that_do_not_belong_to_the_plan(file, answer):
    """Tests that a mismatch is an error inside, unless another version wrote the answer."""
    candidate = answer["candidates"][0]
    changed = [candidate | {"metrics": candidate["metrics"] | {"iteration_time_s": 1.0}}]
    called = partita("timeline", file(answer | {"candidates": changed}))
    assert called.exit_code == 1
    assert (
        "internal error: InternalError: the candidate's iteration time is 1.0 s, its stages have 24.0 s" in called.err
    )
    older = file(answer | {"candidates": changed, "version": "0.0.1"})
    for command in (["timeline"], ["export", "chrome-trace"]):
        called = partita(*command, older)
        assert called.exit_code == 2
        assert f"version 0.0.1 wrote this answer, this is {__version__}: plan again" in called.err


def test_very_many_bars(file, answer, monkeypatch):
    """Tests that a timeline of too many bars to be told apart is drawn in steps, and says so."""
    monkeypatch.setattr("partita.service.charts.timeline.MOST_BARS", 1)
    called = partita("timeline", file(answer), "--format", "svg")
    assert called.exit_code == 0
    assert "Drawn in steps of 30.00 ms" in called.out


def test_links_are_an_option_of_drawings(file, answer):
    """Tests that an option that would do nothing is refused."""
    called = partita("timeline", file(answer), "--links")
    assert called.exit_code == 2
    assert "--links belongs to --format svg and png" in called.err


def test_names_that_the_terminal_cannot_show(file):
    """Tests that names outside the terminal's encoding are no error."""
    problem = training_problem()
    node = problem.cluster.nodes[0].model_copy(update={"name": "節[bold]"})
    cluster = problem.cluster.model_copy(update={"nodes": (node,)})
    path = file(answer_json(problem.model_copy(update={"cluster": cluster})))
    done = run_partita("timeline", path, environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"?[bold]0:0 " in done.stdout


def test_text_needs_no_drawing_library(file, answer, monkeypatch):
    """Tests that text and trace work where charts cannot be drawn."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert partita("timeline", file(answer)).exit_code == 0
    assert partita("export", "chrome-trace", file(answer)).exit_code == 0


def test_help_names_the_formats():
    """Tests that every format of export is named where users look for it."""
    called = partita("export", "--help")
    assert called.exit_code == 0
    assert all(name in called.out for name in FORMATS)
