"""The command ``partita evaluate``: plans and answers that a user brings."""

import json
from pathlib import Path

import pytest
from cli_calls import partita
from small_problems import chain, too_large


@pytest.mark.parametrize(
    ("plan", "code", "words"),
    [
        ({"stage_sizes": [1, 2]}, 0, "b … c"),
        ({"stages": [{"layers": ["a", "b"]}, {"layers": ["c"]}]}, 0, "a … b"),
        ({"stage_sizes": [1, 1]}, 2, "/stage_sizes"),
        ({"stages": [{"layers": ["a", "nix"]}, {"layers": ["b", "c"]}]}, 2, "plan.json: /stages/0/layers/1"),
        ({}, 2, "plan.json: document"),
        (b"[1", 2, "plan.json: document: not JSON"),
    ],
)
def test_evaluate(file, plan, code, words):
    """Tests that a plan is priced, or refused with its own file's name."""
    called = partita("evaluate", file(chain()), file(plan, "plan.json"))
    assert called.exit_code == code
    assert words in (called.err if code else called.out)
    assert "/plan/" not in called.err


def test_evaluate_a_plan_that_does_not_fit(file):
    """Tests that a plan that breaks a limit is priced all the same, with exit code 3 and the limit."""
    called = partita("evaluate", file(too_large()), file({"stage_sizes": [2, 1]}, "plan.json"))
    assert called.exit_code == 3
    assert "This plan breaks limits" in called.out
    assert "node0:1" in called.out


def test_evaluate_blames_the_problem(file):
    """Tests that what is wrong with the problem is told with the problem's file."""
    problem = file(chain(training__per_stage_degrees=True))
    called = partita("evaluate", problem, file({"stage_sizes": [2, 1]}, "plan.json"))
    assert called.exit_code == 2
    assert called.err.startswith(f"{problem}: /training/per_stage_degrees: not supported yet")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"candidates": []}, "no candidate 1; it has 0"),
        ({"candidates": None}, "no candidate 1; it has 0"),
        ({"candidates": [1]}, "/candidates/0/stages: expected the list"),
        ({"candidates": [{"stages": [{"layers": [1]}]}]}, "/candidates/0/stages/0/layers/0"),
        ({"candidates": [{"stages": [1]}]}, "/candidates/0/stages/0"),
    ],
)
def test_evaluate_an_answer_without_a_plan(file, answer, words):
    """Tests that an answer that cannot serve as a plan is refused with pointers into it."""
    called = partita("evaluate", file(chain()), file({"status": "x", "problem_digest": "x", **answer}, "plan.json"))
    assert called.exit_code == 2
    assert words in called.err


def test_both_from_standard_input():
    """Tests that one input cannot be two files."""
    called = partita("evaluate", "-", "-")
    assert called.exit_code == 2
    assert "only one of" in called.err


def test_evaluate_the_answer_to_another_problem(file, tmp_path):
    """Tests that an answer is not priced for another problem, and that both digests are named."""
    path = str(tmp_path / "answer.json")
    assert partita("plan", file(chain()), "-o", path).exit_code == 0
    theirs = json.loads(Path(path).read_text())["problem_digest"]
    other = file(chain(training__num_microbatches=9), "other.json")
    called = partita("evaluate", other, path)
    assert (called.exit_code, called.out) == (2, "")
    assert called.err.startswith(f"{path}: this answer is for another problem: its problem_digest is {theirs}")
    ours = json.loads(partita("plan", other, "--json").out)["problem_digest"]
    assert ours in called.err
    del (broken := json.loads(Path(path).read_text()))["problem"]["model"]
    assert partita("evaluate", other, file(broken, "broken.json")).exit_code == 2


def test_evaluate_an_answer_that_was_searched_for_otherwise(file, tmp_path):
    """Tests that options of the search do not make another problem."""
    path, problem = str(tmp_path / "answer.json"), file(chain())
    assert partita("plan", problem, "--candidates", "1", "--time-limit", "4", "-o", path).exit_code == 0
    assert partita("evaluate", problem, path).exit_code == 0
