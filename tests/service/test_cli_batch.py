"""``partita batch``: results as they are found, what fails, going on where it was broken off, and a server."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_calls import partita
from processes import ROOT, alive, pid_in, until
from small_problems import as_bytes, chain, too_large
from solve_doubles import nap

from hard_problem import hard_problem
from partita.models.answer import Answer
from partita.models.digest import problem_digest
from partita.models.document import validate
from partita.models.problem import Problem
from partita.service.client import Client
from partita.service.commands.batch import forecast
from partita.service.commands.batch_lines import opened, read_lines
from partita.service.replies import BatchResult
from partita.service.settings import Settings
from partita.service.solving import many
from partita.service.solving.outcomes import Crashed, Failed
from partita.service.solving.work import Task


@pytest.fixture
def files(tmp_path):
    """Write lines to a file, and give its path and that of the results."""

    def write(*lines):
        parts = [line if isinstance(line, bytes) else as_bytes(line) for line in lines]
        (tmp_path / "in.ndjson").write_bytes(b"\n".join(parts) + b"\n")
        return str(tmp_path / "in.ndjson"), str(tmp_path / "out.ndjson")

    return write


@pytest.fixture
def solved(monkeypatch):
    """Note the problems that are really solved."""
    bodies = []
    real = many.solve_all

    def solve_all(tasks, settings):
        bodies.extend(json.loads(task.body) for task in tasks.values())
        return real(tasks, settings)

    monkeypatch.setattr(many, "solve_all", solve_all)
    return bodies


def results_in(text):
    """Give results by their index; none may be there twice."""
    every = [json.loads(line) for line in text.splitlines()]
    assert len({each["index"] for each in every}) == len(every)
    return {each["index"]: each for each in every}


def results(name):
    return results_in(Path(name).read_text())


def digest(problem):
    return problem_digest(validate(Problem, problem))


def test_every_problem_has_its_result(files, solved):
    """Tests names, places and digests, that wrong lines fail alone, and that equal problems are solved once."""
    other = chain(training__num_microbatches=7)
    name, output = files(chain(), {"name": "other", "problem": other}, b"{", chain(training__num_stages=0), chain())
    called = partita("batch", name, "-o", output)
    assert (called.exit_code, called.out) == (2, "")
    assert called.err == "partita: 5 of 5 problems: 3 with a plan, 2 wrong\n"
    found = results(output)
    assert [found[index]["status"] for index in range(5)] == ["succeeded"] * 2 + ["failed"] * 2 + ["succeeded"]
    assert (found[1]["name"], found[1]["digest"]) == ("other", digest(other))
    assert validate(Answer, found[1]["answer"]).candidates[0].num_microbatches == 7
    assert found[0]["answer"] == found[4]["answer"]
    assert found[2]["failure"]["type"] == "/docs#not-json"
    assert found[3]["failure"]["errors"][0]["pointer"] == "/training/num_stages"
    assert len(solved) == 2


def test_standard_output_and_input():
    """Tests that results are printed where no file is named, and that an infeasible problem has its answer."""
    called = partita("batch", "-", stdin=as_bytes(too_large()))
    assert called.exit_code == 3
    assert results_in(called.out)[0]["answer"]["status"] == "infeasible"


def test_goes_on_where_it_was_broken_off(files, solved):
    """Tests that what is there is not solved again, that a torn line is mended, and that the rest is appended."""
    problems = [chain(training__num_microbatches=number) for number in (4, 5, 6)]
    name, output = files(*problems)
    assert partita("batch", name, "-o", output).exit_code == 0
    whole = results(output)
    first, second, third = Path(output).read_bytes().splitlines(keepends=True)
    for torn, again in ((len(third) // 2, 1), (len(third) - 2, 1), (len(third) - 1, 0)):
        Path(output).write_bytes(first + second + third[:torn])
        solved.clear()
        assert partita("batch", name, "-o", output).exit_code == 0
        assert len(solved) == again
        assert Path(output).read_bytes().startswith(first + second)
        assert [results(output)[index]["digest"] for index in range(3)] == [
            whole[index]["digest"] for index in range(3)
        ]


def test_results_are_matched_by_digest(files, solved):
    """Tests that a problem that moved keeps its answer, however it is written, and that a mended one is solved."""
    moved = chain(training__num_microbatches=5)
    name, output = files(chain(training__num_stages=0), chain(), moved)
    assert partita("batch", name, "-o", output).exit_code == 2
    solved.clear()
    moved["cluster"]["devices"]["d"]["memory_bytes"] = 10**9
    name, output = files(moved, chain(), chain(training__num_microbatches=6))
    assert partita("batch", name, "-o", output).exit_code == 0
    assert [each["training"]["num_microbatches"] for each in solved] == [6]
    assert {index: each["digest"] for index, each in results(output).items()} == dict(
        enumerate(digest(each) for each in (moved, chain(), chain(training__num_microbatches=6)))
    )


def test_nothing_else_is_written_over(files, solved):
    """Tests that results of other problems, other files and the problems themselves are left alone."""
    name, output = files(chain())
    partita("batch", name, "-o", output)
    name, output = files(chain(training__num_microbatches=9))
    before = Path(output).read_bytes()
    refused = partita("batch", name, "-o", output)
    assert refused.exit_code == 2 and "line 1 answers a problem that is not in the input" in refused.err
    assert Path(output).read_bytes() == before
    refused = partita("batch", name, "-o", name)
    assert refused.exit_code == 2 and "the file of the problems" in refused.err
    other = output + ".other"
    Path(other).write_text("[1]\n")
    refused = partita("batch", name, "-o", other)
    assert refused.exit_code == 2 and "line 1 is no result of partita batch" in refused.err


@pytest.mark.parametrize(
    "changed",
    [
        {"index": "a"},
        {"digest": 1},
        {"status": "failed"},
        {"status": "failed", "answer": None},
        {"status": "failed", "answer": None, "failure": {"type": "x"}},
        {"answer": None},
        {"answer": ["status"]},
        {"answer": {"status": "optimal"}},
    ],
)
def test_results_that_are_none_are_not_taken_for_some(files, changed):
    """Tests that a line whose end was spoiled is named, not counted as a plan, and that the file stays as it is."""
    name, output = files(chain())
    partita("batch", name, "-o", output)
    result = results(output)[0]
    Path(output).write_text(json.dumps({**result, **changed}) + "\n")
    before = Path(output).read_bytes()
    refused = partita("batch", name, "-o", output)
    assert refused.exit_code == 2 and "line 1 is no result of partita batch" in refused.err
    assert Path(output).read_bytes() == before


def test_results_may_go_to_a_device(files):
    """Tests that what has no disk and knows no locks takes results, too."""
    name, _ = files(chain())
    assert partita("batch", name, "-o", os.devnull).exit_code == 0


def test_one_run_at_a_time(files):
    """Tests that a second run refuses to write where another one does, also once that has replaced the file."""
    name, output = files(chain())
    Path(output).write_text("{torn")
    lines = read_lines(name)
    with opened(output, lines):
        refused = partita("batch", name, "-o", output)
        assert refused.exit_code == 2 and "another partita batch writes to it" in refused.err
    assert partita("batch", name, "-o", output).exit_code == 0


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_no_problems(tmp_path, content):
    """Tests that a file without problems is refused."""
    (tmp_path / "empty").write_bytes(content)
    called = partita("batch", str(tmp_path / "empty"))
    assert called.exit_code == 2 and "at least 1" in called.err


@pytest.mark.parametrize(
    ("outcome", "words"),
    [(Crashed(-11), "SIGSEGV"), (Failed("Traceback\nValueError: odd"), "ValueError: odd; --debug")],
)
def test_a_solve_that_fails(files, monkeypatch, outcome, words):
    """Tests that a solve that fails fails alone, with its reason, and ends the command with code 1."""
    monkeypatch.setattr(many, "solve_all", lambda tasks, settings: ((digest, outcome) for digest in tasks))
    name, output = files(chain(), b"{")
    assert partita("batch", name, "-o", output).exit_code == 1
    assert words in results(output)[0]["failure"]["detail"]


def test_interrupt(files):
    """Tests that Ctrl-C ends the command and its solves at once, and that what was found is there."""
    name, output = files(chain(), hard_problem(time_limit_s=60))
    command = [sys.executable, "-m", "partita.service", "batch", name, "-o", output, "--solves", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        until(lambda: len(results(output)) == 1 if Path(output).exists() else False, 30)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == "partita: broken off after 1 of 2 problems; the same command goes on from there\n"
    assert results(output)[0]["status"] == "succeeded"


def test_no_process_is_left_behind(tmp_path):
    """Tests that solves that run end when nobody wants more outcomes, and that those that wait never begin."""
    pid_file, never = tmp_path / "pid", tmp_path / "never"
    bodies = {
        "first": {"nap_s": 0.1},
        "second": {"nap_s": 60, "pid_file": str(pid_file)},
        "third": {"pid_file": str(never)},
    }
    tasks = {key: Task("plan", as_bytes(body)) for key, body in bodies.items()}
    outcomes = many.solve_all(tasks, Settings(solves=1), nap)
    assert next(outcomes)[0] == "first"
    pid = pid_in(pid_file)
    outcomes.close()
    assert not alive(pid) and not never.exists()


def test_a_server(files, real_client):
    """Tests that a server finds the same results."""
    name, output = files(chain(), chain(training__num_stages=0), {"name": "x", "problem": too_large()}, chain())
    here = partita("batch", name)
    there = partita("batch", name, "-o", output, "--server", str(real_client.base_url))
    assert (there.exit_code, there.err) == (here.exit_code, here.err) and here.exit_code == 2

    def told(result):
        answer = result["answer"] and {**result["answer"], "solver": None}
        return {**result, "answer": answer, "failure": result["failure"] and result["failure"]["errors"]}

    ours, theirs = results_in(here.out), results(output)
    assert {index: told(each) for index, each in ours.items()} == {index: told(each) for index, each in theirs.items()}


def test_a_server_that_answers_what_was_not_asked(files, monkeypatch):
    """Tests that a result of a place that there is not ends the command with a message."""
    result = BatchResult(index=-1, name=None, job="x", status="cancelled", failure=None, answer=None)
    monkeypatch.setattr(Client, "submit_batch", lambda *_: SimpleNamespace(id="x"))
    monkeypatch.setattr(Client, "results", lambda *_: iter((result,)))
    called = partita("batch", files(chain())[0], "--server", "http://127.0.0.1:1")
    assert called.exit_code == 1 and "a result for problem -1 of 1" in called.err


def test_a_limit_of_the_server(files, real_client):
    """Tests that what only the server refuses fails alone."""
    name, output = files(chain(search__time_limit_s=601))
    assert partita("batch", name, "-o", output, "--server", str(real_client.base_url)).exit_code == 2
    assert results(output)[0]["failure"]["type"] == "/docs#over-limit"


@pytest.mark.parametrize(
    ("ended", "total", "words"),
    [
        ([0.0], 5, "solving"),
        ([0.0, 10.0, 20.0], 12, "about 0:01:40 left"),
        ([0.0, 1000.0, 1060.0, 1120.0], 6, "about 0:03:00 left"),  # what was slow long ago counts no more
    ],
)
def test_forecast(ended, total, words):
    """Tests that the end is forecast from the rate of the last two minutes."""
    assert forecast(ended, total).startswith(words)
