"""From the bytes of a body to the outcome, in this process."""

import json

import pytest
from small_problems import as_bytes, chain, too_large

from partita.models.answer import Answer
from partita.models.document import validate
from partita.service.settings import Settings
from partita.service.solving.outcomes import Answered, Refused
from partita.service.solving.talk import Accepted, Step, Talk
from partita.service.solving.work import Task, perform


class Noting(Talk):
    """Keeps what is told."""

    def __init__(self):
        super().__init__()
        self.told = []

    def tell(self, message):
        self.told.append(message)


def run(body, kind="plan", base=None, **settings):
    talk = Noting()
    outcome = perform(Task(kind, body, base), Settings(**settings), talk)
    return outcome, [message for message in talk.told if isinstance(message, Accepted)]


def answer_of(body, kind="plan", include_problem=False, **settings):
    outcome, accepted = run(body, kind, **settings)
    assert isinstance(outcome, Answered), outcome
    assert [message.limit_s for message in accepted] == [5.0]
    answer = validate(Answer, json.loads(outcome.with_problem() if include_problem else outcome.body))
    assert outcome.status == answer.status
    return answer


def refusal_of(body, *rest, **settings):
    outcome, accepted = run(body, *rest, **settings)
    assert isinstance(outcome, Refused), outcome
    assert not accepted
    return outcome.kind, [fault.pointer for fault in outcome.faults]


def test_plan():
    """Tests that a small problem is solved, and that the search is announced with its time limit."""
    answer = answer_of(as_bytes(chain()))
    assert answer.status == "optimal"
    assert [len(stage.layers) for stage in answer.candidates[0].stages] == [2, 1]
    assert answer.problem is None


def test_answer_with_problem():
    """Tests that the answer holds the problem where asked, and that it is the same problem."""
    answer = answer_of(as_bytes(chain()), "plan", True)
    assert answer.problem is not None
    assert answer_of(answer.problem.model_dump_json().encode()).problem_digest == answer.problem_digest


def test_the_problem_in_the_answer_is_the_problem():
    """Tests that the problem is put into its place, and nowhere else, whatever the names in it."""
    body = chain(model__name='"problem":null,"problem_digest":')
    outcome, _ = run(as_bytes(body))
    assert json.loads(outcome.with_problem()) == json.loads(outcome.body) | {"problem": json.loads(outcome.problem)}


def test_what_is_told_of_a_search():
    """Tests that the digest tells equal problems, however they are written, and that steps follow."""
    digests = set()
    for memory in ("1GB", 10**9):
        talk = Noting()
        perform(Task("plan", as_bytes(chain(cluster__devices={"d": {"memory_bytes": memory}}))), Settings(), talk)
        first, *steps = talk.told
        digests.add(first.digest)
        assert all(isinstance(step, Step) for step in steps)
    assert len(digests) == 1


def test_a_patch_changes_its_base():
    """Tests that a body with a base is a merge patch, and that what is not valid then is refused."""
    patch = as_bytes({"training": {"num_microbatches": 8}, "search": {"candidates": None}})
    outcome, _ = run(patch, base=as_bytes(chain()))
    problem = json.loads(outcome.problem)
    assert (problem["training"]["num_microbatches"], problem["search"]["candidates"]) == (8, 5)
    assert run(b'{"model": null}', base=as_bytes(chain()))[0].faults[0].pointer == "/model"


def test_infeasible_is_an_answer():
    """Tests that a problem without a plan has an answer that explains it."""
    answer = answer_of(as_bytes(too_large()))
    assert answer.status == "infeasible"
    assert answer.infeasibility is not None


@pytest.mark.parametrize("plan", [{"stage_sizes": [1, 2]}, {"stages": [{"layers": ["a"]}, {"layers": ["b", "c"]}]}])
def test_evaluation(plan):
    """Tests that a plan in either form is priced."""
    answer = answer_of(as_bytes({"problem": chain(), "plan": plan}), "evaluation", True)
    assert answer.status == "feasible"
    assert [list(stage.layers) for stage in answer.candidates[0].stages] == [["a"], ["b", "c"]]
    assert answer.problem is not None


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        (b"", [""]),
        (b"{", [""]),
        (b"\xff", [""]),
        (b'{"a": [NaN]}', ["/a/0"]),
        (b'{"a": 1, "a": 2}', ["/a"]),
        (b"[" * 100_000, [""]),
        (b'{"a": 1e999}', ["/a"]),
    ],
)
def test_not_json(body, pointers):
    """Tests that what is no strict JSON is told apart from what is no problem."""
    assert refusal_of(body) == ("not_json", pointers)


@pytest.mark.parametrize(
    ("problem", "pointers"),
    [
        ([], [""]),
        (chain(training__num_stages=9), ["/training/num_stages"]),
        (chain(model__layers=[{"name": "a", "forward_s": -1}]), ["/model/layers/0/forward_s"]),
        (chain(extra=1), ["/extra"]),
    ],
)
def test_invalid_problem(problem, pointers):
    """Tests that every fault has its place in the body, for plans and for evaluations."""
    assert refusal_of(as_bytes(problem)) == ("invalid_input", pointers)
    whole = as_bytes({"problem": problem, "plan": {"stage_sizes": [1]}})
    assert refusal_of(whole, "evaluation") == ("invalid_input", [f"/problem{pointer}" for pointer in pointers])


@pytest.mark.parametrize(
    ("plan", "start"),
    [
        ({}, "/plan"),
        ({"stage_sizes": [0, 3]}, "/plan/stage_sizes/0"),
        ({"stages": [{"layers": []}]}, "/plan/stages/0/layers"),
    ],
)
def test_invalid_plan(plan, start):
    """Tests that a malformed plan is refused with its place in the body."""
    kind, pointers = refusal_of(as_bytes({"problem": chain(), "plan": plan}), "evaluation")
    assert kind == "invalid_input"
    assert all(pointer.startswith(start) for pointer in pointers)


@pytest.mark.parametrize(
    "plan",
    [
        {"stage_sizes": [1, 1]},
        {"stages": [{"layers": ["a", "nix"]}, {"layers": ["b", "c"]}]},
        {"stages": [{"layers": ["a"], "devices": ["nix:0"]}, {"layers": ["b", "c"], "devices": ["node0:1"]}]},
    ],
)
def test_plan_for_another_problem(plan):
    """Tests that a plan that does not belong to the problem is refused with a pointer into the plan."""
    outcome, _ = run(as_bytes({"problem": chain(), "plan": plan}), "evaluation")
    assert isinstance(outcome, Refused)
    assert outcome.kind == "invalid_input"
    assert all(fault.pointer.startswith("/plan") for fault in outcome.faults)


def test_not_supported_yet():
    """Tests that what cannot be solved yet is told apart from what is wrong, with its place."""
    problem = chain(training__queueing=True, training__communication="blocking")
    outcome, _ = run(as_bytes(problem))
    assert isinstance(outcome, Refused)
    assert outcome.kind == "not_supported_yet"
    assert {fault.code for fault in outcome.faults} == {"not_supported_yet"}
    assert all(fault.pointer == "/training/queueing" for fault in outcome.faults)
    outcome, _ = run(as_bytes({"problem": problem, "plan": {"stage_sizes": [1, 2]}}), "evaluation")
    assert isinstance(outcome, Refused)
    assert all(fault.pointer == "/problem/training/queueing" for fault in outcome.faults)


@pytest.mark.parametrize(
    ("settings", "pointer", "words"),
    [
        ({"max_layers": 2}, "/model/layers", "3 layers; this server allows at most 2"),
        ({"max_devices": 1}, "/cluster/nodes", "2 devices; this server allows at most 1"),
        ({"max_candidates": 1}, "/search/candidates", "2 candidates; this server allows at most 1"),
        ({"max_time_limit_s": 0.5}, "/search/time_limit_s", "5 seconds; this server allows at most 0.5"),
        ({"max_workers": 1}, "/search/workers", "2 workers; this server allows at most 1"),
    ],
)
def test_limits_of_the_server(settings, pointer, words):
    """Tests that every limit is kept and stated, for plans and for evaluations."""
    outcome, _ = run(as_bytes(chain()), **settings)
    assert isinstance(outcome, Refused)
    assert outcome.kind == "over_limit"
    assert [(fault.pointer, fault.detail) for fault in outcome.faults] == [(pointer, words)]
    body = as_bytes({"problem": chain(), "plan": {"stage_sizes": [1, 2]}})
    assert refusal_of(body, "evaluation", **settings) == ("over_limit", [f"/problem{pointer}"])
