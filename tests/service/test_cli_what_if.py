"""``partita evaluate`` against the best plan, plans as other frameworks write them, and ``partita plan --keep``."""

import json

import pytest
from cli_calls import partita
from small_answers import answer, candidate, metrics, report, stage
from small_problems import chain

from partita.models.answer import Comparison, Infeasibility, Move

BOUNDARY = Move(
    kind="boundary",
    message="move 'b' from stage 1 to stage 0",
    layers=("b",),
    from_stage=1,
    to_stage=0,
    objective_value=9.0,
    gain=3.0,
    relative_gain=0.25,
)


def evaluated(problem, plan, *options):
    """Evaluate a plan; give the answer."""
    return json.loads(partita("evaluate", problem, plan, "--json", *options).out)


def sizes(found):
    """Give how many layers the stages of the first plan have."""
    return [len(stage["layers"]) for stage in found["candidates"][0]["stages"]]


def test_the_report_compares(file):
    """Tests that the distance from the best plan and the best move are told in numbers."""
    called = partita("evaluate", file(chain()), file({"stage_sizes": [1, 2]}, "plan.json"))
    assert called.exit_code == 0
    words = " ".join(called.out.split())
    assert "The best plan has 15.00 s: 28.6 % better than this one. The best single move: move 'b' from" in words
    assert "from stage 1 to stage 0: iteration time 15.00 s, 6.000 s (28.6 %) better." in words


def test_no_search(file):
    """Tests that --no-solve leaves out the search, but not the moves."""
    problem, plan = file(chain()), file({"stage_sizes": [1, 2]}, "plan.json")
    comparison = evaluated(problem, plan, "--no-solve")["comparison"]
    assert (comparison["best_status"], comparison["best_value"]) == (None, None)
    assert comparison["move"]["layers"] == ["b"]
    assert "The best plan" not in partita("evaluate", problem, plan, "--no-solve").out


@pytest.mark.parametrize("plan", ["Et|L", "1,2", "VLLM_PP_LAYER_PARTITION=1,2", "-"])
def test_a_plan_as_text(file, plan):
    """Tests texts as arguments, in files and on standard input."""
    text = "2,1" if plan == "-" else plan
    problem = file(chain())
    found = json.loads(partita("evaluate", problem, plan, "--json", stdin=b"2,1\n").out)
    assert sizes(found) == ([2, 1] if plan in ("-", "Et|L") else [1, 2])
    assert sizes(evaluated(problem, file(text + "\n", "plan.txt"))) == sizes(found)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("Et|x", "Et|x: cannot be read: No such file"),
        ("Et||L", "Et||L: /megatron_layout: stage 1 of 3 is empty"),
        ("1,1", "1,1: /vllm_partition: the numbers add up to 2"),
        ("Ettt|L", "Ettt|L: /megatron_layout: the layout has 5 letters and the model 3 layers"),
        ("--pipeline-model-parallel-layout=Et|x", "/megatron_layout: 'x' at character 4"),
    ],
)
def test_a_text_that_is_no_plan(file, plan, words):
    """Tests that it is refused with place, value and remedy, and exit code 2."""
    called = partita("evaluate", file(chain()), "--", plan)
    assert called.exit_code == 2
    assert words in called.err


def test_a_file_that_is_not_text(file, tmp_path):
    """Tests bytes that are neither text nor JSON."""
    (tmp_path / "plan").write_bytes(b"\xff\xfe")
    called = partita("evaluate", file(chain()), str(tmp_path / "plan"))
    assert called.exit_code == 2
    assert "not" in called.err


def test_a_file_with_the_name_of_a_layout(file, tmp_path, monkeypatch):
    """Tests that a file that exists counts more than its name."""
    monkeypatch.chdir(tmp_path)
    file({"stage_sizes": [2, 1]}, "1,2")
    assert sizes(evaluated(file(chain()), "1,2")) == [2, 1]


def test_keep(file, tmp_path):
    """Tests that yesterday's answer stays in front within the fraction, beyond it not, and is part of the answer."""
    problem, path = file(chain()), str(tmp_path / "answer.json")
    assert partita("evaluate", problem, "1,2", "-o", path).exit_code == 0
    kept = json.loads(partita("plan", problem, "--keep", path, "--keep-if-within", "0.29", "--json").out)
    assert (sizes(kept), kept["status"]) == ([1, 2], "feasible")
    assert kept["warnings"][-1].startswith("search.keep stays in front: its iteration_time is 21 s, the best plan")
    replaced = json.loads(partita("plan", problem, "--keep", path, "--keep-if-within", "0.28", "--json").out)
    assert (sizes(replaced), replaced["status"]) == ([2, 1], "optimal")
    again = str(tmp_path / "again.json")
    partita("plan", problem, "--keep", "1,2", "--keep-if-within", "0.29", "-o", again)
    assert json.loads(partita("plan", again, "--json").out)["candidates"] == kept["candidates"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--keep", "nix.json"), "nix.json: cannot be read"),
        (("--keep", "E||L"), "E||L: /megatron_layout"),
        (("--keep", "1,2", "--keep-if-within", "-1"), "--keep-if-within: must be at least 0 (got -1.0)"),
    ],
)
def test_keep_what_is_no_plan(file, options, words):
    """Tests that it is refused with the option's value."""
    called = partita("plan", file(chain()), *options)
    assert called.exit_code == 2
    assert words in called.err


def compared(status="feasible", value=12.0, **comparison):
    """Report the comparison of a plan of 12 s."""
    facts = {"moves_measured": 7, "all_moves": True, **comparison}
    reason = {"infeasibility": Infeasibility(message="too large")} if status == "infeasible" else {}
    plan = candidate(stage(0, "a", "c"), stage(1, "b"), metrics=metrics(value))
    return " ".join(report(answer(status=status, candidates=(plan,), comparison=Comparison(**facts), **reason)).split())


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (
            {"best_status": "feasible", "best_value": 9.0, "gap": 0.25},
            "plan found has 9.000 s: 25.0 % better than",
        ),
        ({"best_status": "feasible", "best_value": 12.0, "gap": 0.0}, "The search found no better plan."),
        ({"best_status": "no_solution"}, "No other plan was found within the time limit."),
        ({"move": None}, "No single move improves this plan."),
        (
            {"move": BOUNDARY},
            "The best single move: move 'b' from stage 1 to stage 0: iteration time 9",
        ),
        ({"all_moves": False}, "Only 7 moves were measured."),
    ],
)
def test_sentences(comparison, words):
    """Tests what is said of a plan that keeps its limits."""
    assert words in compared(**comparison)


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (
            {"best_status": "optimal", "best_value": 15.0, "gap": -0.25},
            "has 15.00 s: 25.0 % worse than this one",
        ),
        ({"best_status": "infeasible"}, "No plan keeps all limits of the problem."),
        ({"move": None}, "No single move makes this plan keep its limits."),
        (
            {"move": BOUNDARY.model_copy(update={"gain": -3.0})},
            "A single move after which it breaks no limit: move",
        ),
        ({"move": BOUNDARY.model_copy(update={"gain": -3.0})}, "3.000 s (25.0 %) worse."),
        ({"move": BOUNDARY.model_copy(update={"gain": 0.0})}, "iteration time 9.000 s, the same."),
    ],
)
def test_sentences_of_a_plan_that_breaks_limits(comparison, words):
    """Tests what is said of one that does not."""
    assert words in compared("infeasible", **comparison)


def test_nothing_is_said_of_the_best_plan():
    """Tests that a plan that is proven optimal is not compared with itself."""
    said = compared("optimal", best_status="optimal", best_value=12.0, gap=0.0)
    assert "single move" not in said
    assert "The best plan" not in said
