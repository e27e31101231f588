"""``partita plan`` and ``partita evaluate``: output, files and exit codes."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_calls import Called, partita, run_partita
from small_problems import as_bytes, chain, too_large

from partita.models.answer import Answer, Effort
from partita.models.document import validate


def test_table(file):
    """Tests that the report says where the layers are, what it costs and what is proven."""
    called = partita("plan", file(chain()))
    assert called.exit_code == 0
    for words in (
        "three: 3 layers",
        "a … b",
        "node0:0",
        "Iteration time",
        "equal numbers",
        "Proven optimal",
        "Assumptions",
    ):
        assert words in called.out
    assert called.err == ""


def test_json(file):
    """Tests that the answer is printed whole and alone."""
    called = partita("plan", file(chain()), "--json")
    assert called.exit_code == 0
    answer = validate(Answer, json.loads(called.out))
    assert answer.status == "optimal"
    assert answer.problem is None


def test_standard_input():
    """Tests that - is standard input."""
    assert partita("plan", "-", "--json", stdin=as_bytes(chain())).exit_code == 0


def test_answer_file_holds_its_problem(file, tmp_path):
    """Tests that a file written with -o is enough to plan and to evaluate again."""
    path = str(tmp_path / "answer.json")
    assert partita("plan", file(chain()), "-o", path).exit_code == 0
    answer = validate(Answer, json.loads(Path(path).read_text()))
    assert answer.problem is not None
    again = json.loads(partita("plan", path, "--json").out)
    assert again["problem_digest"] == answer.problem_digest
    priced = partita("evaluate", path, path, "--json")
    assert priced.exit_code == 0
    assert json.loads(priced.out)["candidates"][0]["metrics"] == again["candidates"][0]["metrics"]
    second = json.loads(partita("evaluate", path, path, "--candidate", "2", "--json").out)
    assert second["candidates"][0]["metrics"] == again["candidates"][1]["metrics"]
    assert sorted(os.listdir(tmp_path)) == ["answer.json", "problem.json"]


def test_options_replace_the_search(file):
    """Tests that options count more than the problem's own search."""
    called = partita("plan", file(chain()), "--json", "--candidates", "1", "--solver", "highs", "--time-limit", "9")
    answer = json.loads(called.out)
    assert len(answer["candidates"]) == 1
    assert "highs" in answer["solver"]["solver"].lower()


def test_infeasible(file):
    """Tests that exit code 3 comes with the reason, and with --json with the whole answer."""
    called = partita("plan", file(too_large()))
    assert called.exit_code == 3
    assert "No plan" in called.out
    assert "c" in called.out
    called = partita("plan", file(too_large()), "--json")
    assert called.exit_code == 3
    assert json.loads(called.out)["infeasibility"]["findings"]


def test_no_solution(file, monkeypatch):
    """Tests that exit code 4 says that the time ran out."""

    def out_of_time(problem, *, on_progress):
        return Answer(
            status="no_solution",
            objective=problem.objective,
            problem_digest="sha256:0",
            version="0",
            solver=Effort(solver="none", wall_s=1.0),
        )

    monkeypatch.setattr("partita.solver.planner.plan_problem", out_of_time)
    called = partita("plan", file(chain()))
    assert called.exit_code == 4
    assert "No plan was found within 5" in called.out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b'{"a": NaN}', "/a: must be a finite number"),
        (b"[" * 100_000, "nested 100000 levels deep"),
        (
            chain(model__layers=[{"name": "a", "forward_s": -1}]),
            "/model/layers/0/forward_s: must be at least 0 (got -1)",
        ),
        (chain(training__num_stages=7), "/training/num_stages: 7 stages need a layer each"),
        (
            chain(training__schedule="dualpipe_v", training__num_microbatches=1),
            "/training/num_microbatches: dualpipe_v on 1 rank needs at least 2 microbatches",
        ),
        (chain(training__per_stage_degrees=True), "/objective: not supported yet: other objectives with"),
        ({"status": "optimal", "problem_digest": "x", "problem": None}, "/problem: this answer does not hold"),
        ({"status": "optimal", "problem_digest": "x", "problem": {}}, "/problem/model: required"),
    ],
)
def test_bad_input(file, content, words):
    """Tests that exit code 2 comes with file, pointer, value and remedy on standard error."""
    path = file(content)
    called = partita("plan", path)
    assert called.exit_code == 2
    assert called.out == ""
    assert all(line.startswith(f"{path}: ") for line in called.err.splitlines())
    assert words in called.err


def test_bad_input_from_standard_input():
    """Tests that standard input is named as what it is."""
    called = partita("plan", "-", stdin=b"{")
    assert called.exit_code == 2
    assert called.err.startswith("standard input: ")


@pytest.mark.parametrize("path", ["nowhere.json", ".", "a\0b"])
def test_unreadable(path):
    """Tests that a file that cannot be read is named."""
    called = partita("plan", path)
    assert called.exit_code == 2
    assert f"{path}: cannot be read".replace("\0", "\\x00") in called.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time-limit", "0"], "--time-limit: must be greater than 0 (got 0.0)"),
        (["--time-limit", "nan"], "--time-limit"),
        (["--time-limit", "x"], "--time-limit"),
        (["--candidates", "0"], "--candidates: must be at least 1 (got 0)"),
        (["--solver", "guess"], "--solver"),
        (["-o", "nowhere/answer.json"], "no folder nowhere"),
        (["-o", "."], "it is a folder"),
        (["-o", "-"], "use --json"),
        (["--nothing"], "--nothing"),
    ],
)
def test_wrong_options(file, options, words):
    """Tests that wrong options are named before any work begins."""
    called = partita("plan", file(chain()), *options)
    assert called.exit_code == 2
    assert words in called.err


def test_unexpected_error(file, monkeypatch):
    """Tests that an error inside is one line, and a traceback only where asked for."""

    def broken(problem, *, on_progress):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("partita.solver.planner.plan_problem", broken)
    called = partita("plan", file(chain()))
    assert called.exit_code == 1
    assert called.err == "partita: internal error: RuntimeError: two lines; --debug shows the traceback\n"
    assert "Traceback" in partita("plan", file(chain()), "--debug").err


@pytest.mark.parametrize(("error", "words"), [(MemoryError, "out of memory"), (OSError, "No space left on device")])
def test_errors_of_the_machine(file, monkeypatch, error, words):
    """Tests that errors of the machine are one line without a hint at --debug."""

    def broken(problem, *, on_progress):
        raise error(28, "No space left on device")

    monkeypatch.setattr("partita.solver.planner.plan_problem", broken)
    called = partita("plan", file(chain()))
    assert called.exit_code == 1
    assert words in called.err
    assert len(called.err.splitlines()) == 1


def test_interrupted_outside_the_search(file, monkeypatch):
    """Tests that Ctrl-C while files are read or written ends with 130 and no traceback."""

    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("partita.service.commands.files.read_bytes", interrupted)
    assert partita("plan", file(chain())) == Called(130, "", "")


SLOW = """
import ctypes, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what it puts in the background without it
threading.Thread(target=ctypes.CDLL(None).sleep, args=(60,), daemon=True).start()  # as the threads of a library
import partita.solver.planner as planner
def slow(problem, *, on_progress):
    print("begun", file=sys.stderr, flush=True)
    ctypes.CDLL(None).sleep(60)
planner.plan_problem = slow
sys.argv = ["partita", "plan", "-"]
from partita.service.cli import main
main()
"""


def test_interrupt_during_the_search():
    """Tests that Ctrl-C ends the program at once with 130, even while native code runs, and without a traceback."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(as_bytes(chain()))
        process.stdin.close()
        assert process.stderr.readline() == b"begun\n"
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
        assert time.monotonic() - begin < 30
        assert process.stderr.read() == b""


def test_broken_pipe():
    """Tests that a reader that leaves early is no traceback."""
    with subprocess.Popen(
        [sys.executable, "-m", "partita.service", "schema", "problem"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.wait(20) == 1
        assert process.stderr.read() == b""


def test_starts_without_the_web(file):
    """Tests that planning loads neither the web framework nor the server."""
    program = (
        "import sys; sys.argv = ['partita', 'plan', '--json', sys.argv[1]]\n"
        "from partita.service.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'fastapi', 'starlette', 'uvicorn'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, file(chain())], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_names_that_the_terminal_cannot_show(file):
    """Tests that names outside the terminal's encoding are no error, and that markup in names is only text."""
    problem = chain()
    problem["model"]["layers"][0]["name"] = "[bold]層[/bold] :smile:"
    done = run_partita("plan", file(problem), environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"[bold]?[/bold] :smile:" in done.stdout


def test_progress_only_on_a_terminal(file, monkeypatch):
    """Tests that progress is shown on a terminal, and cleared."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    seen = []

    def slow(problem, *, on_progress):
        from partita.solver.progress import Progress

        seen.append(on_progress)
        on_progress(Progress("searching", 12.0, None, 0.1))
        on_progress(Progress("searching", 12.0, 11.0, 0.2))
        raise MemoryError

    monkeypatch.setattr("partita.solver.planner.plan_problem", slow)
    partita("plan", file(chain()))
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    from partita.models.problem import read_problem
    from partita.service.commands.progress import watching

    with watching(read_problem(as_bytes(chain()))) as watch, pytest.raises(MemoryError):
        slow(None, on_progress=watch.report)
    assert "searching, best 12.00 s, bound 11.00 s" in terminal.getvalue()
    assert seen[0] is None
    assert seen[1] is not None


def test_json_alone_on_standard_output_with_highs(file):
    """Tests that a solver's own words do not get between the JSON, whatever file they would go to."""
    done = run_partita("plan", "--json", "--solver", "highs", file(chain()))
    assert done.returncode == 0, done.stderr
    assert validate(Answer, json.loads(done.stdout)).status == "optimal"


def test_messages_hold_no_control_characters(tmp_path):
    """Tests that a name cannot write to the terminal what it likes."""
    called = partita("plan", str(tmp_path / "a\x1b[31m\u2028.json"))
    assert called.exit_code == 2 and "a\\x1b[31m\\u2028.json: cannot be read" in called.err
