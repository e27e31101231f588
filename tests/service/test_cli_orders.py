"""``partita plan --orders`` and ``partita export torch-orders``: orders as CSV, in and out."""

import json
from pathlib import Path

import pytest
from cli_calls import partita
from small_problems import chain
from small_timelines import answer_json, training_problem

from partita.models.answer import Answer
from partita.models.document import validate

FOLDED = "0F0,1F0,1B0,0F1,,1F1,1B1,0B0,0B1\n"
"""Two stages on one rank, two microbatches, with a bubble."""
SPLIT = "0F0,0F1,0B0,0I1,0W1\n1F0,1I0,(1F1;1B1)OVERLAP_F_B,1W0\n"
"""A stage on each of two ranks; both kinds of backward pass, and an overlapped pair."""


def two_microbatches(**training):
    """Give the chain with a backward pass, for two microbatches."""
    problem = chain(training={"schedule": "1f1b", "num_microbatches": 2, **training})
    for layer in problem["model"]["layers"]:
        layer |= {"backward_s": 2.0, "weight_gradient_s": 1.0}
    return problem


@pytest.mark.parametrize(("orders", "ranks"), [(FOLDED, [0, 0]), (SPLIT, [0, 1])])
def test_planning_for_given_orders(file, tmp_path, orders, ranks):
    """Tests that the orders of a file replace the schedule, and that the answer holds them with its problem."""
    written = str(tmp_path / "answer.json")
    called = partita("plan", file(two_microbatches()), "--orders", file(orders, "orders.csv"), "-o", written)
    assert (called.exit_code, called.err) == (0, "")
    assert called.out.startswith("three: 3 layers, 2 stages, custom, 2 microbatches")
    answer = validate(Answer, json.loads(Path(written).read_text()))
    assert answer.problem is not None
    assert answer.problem.training.schedules == (answer.candidates[0].schedule,)
    assert [stage.rank for stage in answer.candidates[0].stages] == ranks
    assert partita("plan", written).out == called.out


def test_the_schedule_that_is_replaced_may_be_anything(file):
    """Tests that rules of the problem's own schedule do not count, and that an answer can be the problem."""
    problem = two_microbatches(schedule={"kind": "dualpipe_v", "orders": [["0F7"]]})
    for given in (problem, {"status": "optimal", "problem_digest": "x", "problem": problem}):
        assert partita("plan", file(given), "--orders", file(FOLDED, "orders.csv")).exit_code == 0


def test_orders_from_standard_input(file):
    """Tests that - is standard input, and that it is only one file."""
    called = partita("plan", file(two_microbatches()), "--orders", "-", stdin=b"\xef\xbb\xbf" + FOLDED.encode())
    assert called.exit_code == 0, called.err
    called = partita("plan", "-", "--orders", "-")
    assert (called.exit_code, called.out) == (2, "")
    assert called.err == "partita: only one of PROBLEM and --orders can be standard input; name files for the others\n"


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ("", "empty; write one row per rank"),
        (" \n\n", "empty; write one row per rank"),
        (b"\xff\xfe0", "not text in UTF-8"),
        ('0F0,"', "not CSV"),
        ("0F0,x", "'x' in row 1, cell 2 is no action"),
        ("0F0,0SEND_F0", "'0SEND_F0' in row 1, cell 2 names communication"),
        ("0F0,0B0\n1F0,1B0,1F1,1B1", "row 1: 0F1 is missing; add it"),
        (SPLIT.replace("1W0", "1W0,1F0"), "row 2, action 6: this action stands twice; list it once (got '1F0')"),
        ("0F0,0F2,0F1", "the orders run 3 microbatches; write 3 as num_microbatches, not 2"),
        (FOLDED + "\n0F0", "row 2: rank 1 is without actions; leave it out"),
        ("0F0,0B0,0F1,0B1\n1F1,1F0,1B1,1B0", "deadlock: rank 0 waits at 0B0 for 1B0, rank 1 waits at 1F1 for 0F1"),
        ("0F0,0F1\n1F0,1F1\n2F0,2F1", "orders for 3 ranks, but the devices allow 2"),
    ],
)
def test_bad_orders(file, tmp_path, orders, words):
    """Tests that what is wrong with the orders is told with their file, and with row and action."""
    path = tmp_path / "orders.csv"
    path.write_bytes(orders if isinstance(orders, bytes) else orders.encode())
    called = partita("plan", file(two_microbatches()), "--orders", str(path))
    assert (called.exit_code, called.out) == (2, "")
    assert all(line.startswith(f"{path}: ") for line in called.err.splitlines())
    assert f"{path}: {words}" in called.err


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"training": 1}, "/training: "),
        ([], "document: "),
        (two_microbatches(num_stages=3), "/training/num_stages: the orders run 2 stages; write 2, or leave it out"),
        (two_microbatches(queueing=True, communication="blocking"), "/training/queueing: not supported yet"),
    ],
)
def test_a_problem_that_does_not_go_with_the_orders(file, problem, words):
    """Tests that what is wrong with the problem is told with its own file."""
    path = file(problem)
    called = partita("plan", path, "--orders", file(FOLDED, "orders.csv"))
    assert (called.exit_code, called.out) == (2, "")
    assert f"{path}: {words}" in called.err


def test_orders_that_cannot_be_read(file):
    """Tests that a file that does not exist is named."""
    called = partita("plan", file(two_microbatches()), "--orders", "nowhere.csv")
    assert called.exit_code == 2
    assert called.err.startswith("nowhere.csv: cannot be read")


def test_export_by_hand(file):
    """Tests the orders of 1F1B on two ranks for three microbatches."""
    called = partita("export", "torch-orders", file(answer_json(training_problem()), "answer.json"))
    assert (called.exit_code, called.err) == (0, "")
    assert called.out == "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"


@pytest.mark.parametrize(
    ("kind", "chunks", "microbatches"),
    [("zb_h1", 1, 5), ("zb_v", 2, 4), ("dualpipe_v", 2, 6), ("interleaved_1f1b", 2, 4), ("forward_only", 1, 3)],
)
def test_exported_orders_are_the_same_plan(file, tmp_path, kind, chunks, microbatches):
    """Tests that planning for exported orders gives the plan again, and exporting that the orders again."""
    problem = training_problem(2, microbatches, chunks, schedule=kind)
    answer = answer_json(problem)
    orders, given = str(tmp_path / "orders.csv"), file(answer["problem"])
    assert partita("export", "torch-orders", file(answer, "answer.json"), "-o", orders).exit_code == 0
    assert len(Path(orders).read_text().splitlines()) == 2
    written = str(tmp_path / "again.json")
    called = partita("plan", given, "--orders", orders, "--candidates", "1", "-o", written)
    assert called.exit_code == 0, called.err
    (first,) = answer["candidates"]
    (again,) = json.loads(Path(written).read_text())["candidates"]
    assert again["metrics"] == first["metrics"]
    assert [stage["rank"] for stage in again["stages"]] == [stage["rank"] for stage in first["stages"]]
    assert partita("export", "torch-orders", written).out == Path(orders).read_text()


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("dualpipe_v", "/candidates/0/stages/1/rank: dualpipe_v runs stage 1 on rank 0 (got 1)"),
        ("zb_v", "/candidates/0/stages/1/rank: zb_v runs stage 1 on rank 0 (got 1)"),
        ({"kind": "looped_bfs", "chunks_per_rank": 3}, "/candidates/0: "),
    ],
)
def test_export_of_a_candidate_that_cannot_run(file, schedule, words):
    """Tests that a plan that is not one of its schedule is refused with its place."""
    answer = answer_json(training_problem())
    given = {"kind": schedule} if isinstance(schedule, str) else schedule
    path = file(answer | {"candidates": [answer["candidates"][0] | {"schedule": given}]}, "answer.json")
    called = partita("export", "torch-orders", path)
    assert (called.exit_code, called.out) == (2, "")
    assert called.err.startswith(f"{path}: {words}")


def test_torch_reads_what_is_exported(file):
    """Tests that torch's own reader finds the actions in the cells."""
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules", reason="torch is not installed")
    answer = answer_json(training_problem(2, 4, 2, schedule="zb_v"))
    text = partita("export", "torch-orders", file(answer, "answer.json")).out
    for row in text.splitlines():
        for cell in row.split(","):
            assert str(schedules._Action.from_str(cell)) == cell
