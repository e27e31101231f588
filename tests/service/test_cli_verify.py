"""``partita verify``: exit codes, what it says and what it refuses; needs torch but for what needs no model."""

import json
from pathlib import Path

import pytest
from cli_calls import partita
from small_problems import as_bytes
from small_timelines import answer_json, training_problem

from partita.models.answer import Answer
from partita.models.contract import Contract
from partita.models.document import validate

MODEL = """
import torch

class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.head = torch.nn.Embedding(9, 8), torch.nn.Linear(8, 9, bias=False)
        self.h = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))
        self.head.weight = self.words.weight

    def forward(self, tokens):
        values = self.words(tokens)
        for part in self.h:
            values = values + torch.tanh(part(values))
        return self.head(values)

class Asks(Tied):
    def forward(self, tokens):
        result = super().forward(tokens)
        return result * 2 if torch.compiler.is_exporting() else result

def build():
    print("building")
    return Tied(), (torch.arange(12).reshape(2, 6) % 9,)

def asks():
    return Asks(), build()[1]

def longer():
    return Tied(), (torch.arange(16).reshape(2, 8) % 9,)

def other():
    return torch.nn.Sequential(torch.nn.Embedding(9, 8), torch.nn.Linear(8, 8)), build()[1]

def resting():
    return Tied().requires_grad_(False), build()[1]
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Gives the folder of a model's file and of the answer to its problem, in which two ranks exchange their places."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    folder = tmp_path_factory.mktemp("verify")
    (folder / "a_model.py").write_text(MODEL)
    options = ("--devices", "2", "--microbatches", "4", "--repetitions", "1")
    profiled = partita("profile", f"{folder}/a_model.py:build", *options)
    assert profiled.exit_code == 0, profiled.err
    problem = json.loads(profiled.out)
    problem["training"]["num_stages"] = 2
    called = partita("plan", "-", "-o", str(folder / "answer.json"), stdin=json.dumps(problem).encode())
    assert called.exit_code == 0, called.err
    return folder


def test_a_plan_that_holds(planned):
    """Tests the report of a plan whose stages compute what the module computes."""
    called = partita("verify", f"{planned}/answer.json", f"{planned}/a_model.py:build")
    assert called.exit_code == 0, called.err
    assert called.err == "building\n"
    lines = called.out.splitlines()
    assert lines[0] == "2 stages on 2 ranks, 1f1b, 4 microbatches, 2 iterations, against the module itself"
    assert lines[1].split() == ["losses", "8", "equal", "to", "the", "bit"]
    assert lines[2].startswith("gradients      16  largest difference ")
    assert "of gradient words.weight, iteration" in lines[2]
    assert lines[-1] == "The same: no difference is larger than rounding explains."


def test_what_differs_has_an_exit_code_of_its_own(planned):
    """Tests that a module that runs otherwise than it was captured is told from its stages, with what and where."""
    called = partita("verify", f"{planned}/answer.json", f"{planned}/a_model.py:asks", "--steps", "1")
    assert called.exit_code == 5
    assert "- loss of microbatch 0, iteration 0, rank 1: " in called.out
    assert "Different: " in called.out


def test_recompute_that_saves_some(planned):
    """Tests that a plan with an option of recompute is run by its policy where that is given, else in full."""
    problem = json.loads((planned / "answer.json").read_text())["problem"]
    for layer in problem["model"]["layers"]:
        if any(each.get("recompute") == "full" for each in layer["options"]):
            layer["options"].append({"recompute": "selective", "activation_bytes": 64})
    problem["constraints"] = {"recompute": "selective"}
    path = planned / "selective.json"
    called = partita("plan", "-", "-o", str(path), stdin=json.dumps(problem).encode())
    assert called.exit_code == 0, called.err
    for options, told in [((), True), (("--recompute", "selective"), False)]:
        called = partita("verify", str(path), f"{planned}/a_model.py:build", "--steps", "1", *options)
        assert called.exit_code == 0, called.err
        assert ("recompute by 'selective' ran as full" in called.out) is told
    called = partita("verify", str(path), f"{planned}/a_model.py:build", "--recompute", "selective=aten.m")
    assert called.exit_code == 2
    assert "--recompute: torch has no operation 'aten.m'" in called.err


@pytest.mark.parametrize(
    ("cut", "stages"), [("words,h.1", 3), ("1", 2), ("{folder}/cut.json", 2)], ids=["names", "counts", "file"]
)
def test_other_stages(planned, cut, stages):
    """Tests that stages can be named that the answer does not have."""
    (planned / "cut.json").write_text('{"stage_sizes": [4, 2]}')
    called = partita(
        "verify", f"{planned}/answer.json", f"{planned}/a_model.py:build", "--cut", cut.format(folder=planned)
    )
    assert called.exit_code == 0, called.err
    assert called.out.startswith(f"{stages} stages on {stages} ranks, 1f1b")


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("build", ("--cut", "h.7"), "--cut: /cut_after/0: "),
        ("build", ("--candidate", "99"), "this answer has no candidate 99"),
        ("longer", (), "its inputs are int64[2, 8], those profiled int64[2, 6]; give inputs like these"),
        ("other", (), "its layers are not those of the problem, which has 6, among them 'words'"),
        ("resting", (), "no parameter is trained"),
        ("nothing", (), "has no function 'nothing'"),
    ],
)
def test_verify_refuses(planned, function, options, words):
    """Tests that what cannot be verified is named, with exit code 2."""
    called = partita("verify", f"{planned}/answer.json", f"{planned}/a_model.py:{function}", *options)
    assert (called.exit_code, called.out) == (2, "")
    assert words in called.err


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (lambda original, stage, number: original(stage, number ^ 1), 5, "expected tensor 0 of microbatch 0"),
        (lambda original, stage, number: 1 / 0, 1, "rank 1, 1F0: ZeroDivisionError"),
    ],
    ids=["mixed up", "failed"],
)
def test_ranks_that_fail(planned, monkeypatch, fault, code, words):
    """Tests that a mix-up of microbatches counts as a difference, and any other failure of a rank as one."""
    runtime = pytest.importorskip("partita.models.pytorch.split.runtime")
    name = "get_fwd_recv_ops" if code == 5 else "forward_one_chunk"
    original = getattr(runtime.PipelineStage, name)

    def faulty(self, number, *args, **kwargs):
        if code == 1 and self.stage_index == 0:
            return original(self, number, *args, **kwargs)
        return fault(original, self, number)

    monkeypatch.setattr(runtime.PipelineStage, name, faulty)
    called = partita("verify", f"{planned}/answer.json", f"{planned}/a_model.py:build")
    assert (called.exit_code, called.out) == (code, "")
    assert words in called.err


def test_a_problem_is_no_answer(tmp_path):
    """Tests that a file without a plan is refused before any code of the user runs."""
    path = tmp_path / "problem.json"
    path.write_text(training_problem().model_dump_json())
    called = partita("verify", str(path), "nowhere.py:build")
    assert (called.exit_code, called.out) == (2, "")
    assert "expected an answer, as partita plan PROBLEM -o ANSWER writes it" in called.err


def test_the_contract_of_stages(planned):
    """Tests the file that says what stages exchange and hold, against the answer that it comes from."""
    called = partita("export", "contract", f"{planned}/answer.json")
    assert called.exit_code == 0, called.err
    contract = validate(Contract, json.loads(called.out))
    answer = validate(Answer, json.loads(Path(f"{planned}/answer.json").read_text()))
    assert [stage.layers for stage in contract.stages] == [stage.layers for stage in answer.candidates[0].stages]
    assert [stage.tied_weights for stage in contract.stages] == [("words.weight",), ("words.weight",)]
    (boundary,) = contract.boundaries
    (sent,) = boundary.tensors
    assert (sent.shape, sent.stride, sent.dtype) == ((2, 6, 8), (48, 8, 1), "float32")
    assert (sent.direction, sent.gradient, sent.bytes) == ("forward", True, 2 * 6 * 8 * 4)
    assert [each.direction for each in answer.candidates[0].boundaries[0].tensors] == ["forward", "backward"]


def test_the_contract_of_a_problem_without_tensors(tmp_path):
    """Tests that the contract of a chain says what is known: bytes, and which way."""
    path = tmp_path / "answer.json"
    path.write_bytes(as_bytes(answer_json(training_problem())))
    called = partita("export", "contract", str(path))
    assert called.exit_code == 0, called.err
    contract = validate(Contract, json.loads(called.out))
    assert len(contract.boundaries) == len(contract.stages) - 1
    assert {(each.shape, each.dtype) for boundary in contract.boundaries for each in boundary.tensors} == {(None, None)}
