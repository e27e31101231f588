"""``partita profile``."""

import json
from pathlib import Path

import pytest
from cli_calls import partita, run_partita

from partita.models.document import validate
from partita.models.problem import Problem
from partita.service.commands.profile import unsteady

EXAMPLES = Path(__file__).parents[2] / "examples" / "pytorch"

MODEL = """
import torch

class Asks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.spare = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, values):
        result = self.first(values)
        return result.exp().exp() if torch.compiler.is_exporting() else result

def asks():
    return Asks(), (torch.ones(2, 8),)

class Branch(torch.nn.Module):
    def forward(self, values):
        return values if values.sum() > 0 else -values

def build():
    print("building")
    layers = [torch.nn.Linear(8, 8) for _ in range(3)]
    return torch.nn.Sequential(*layers), (torch.ones(2, 8),), lambda outputs: outputs.sum()

class Loud(torch.nn.Module):
    def forward(self, values):
        print("it runs")
        return values.exp()

def loud():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), Loud()), (torch.ones(2, 8),)

def keywords():
    return Loud(), {"values": torch.ones(2)}

def policy(context, operation, *args, **kwargs):
    return operation is torch.ops.aten.addmm.default

def relus():
    layers = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8)) for _ in range(3)]
    return torch.nn.Sequential(*layers), (torch.ones(2, 8),)

def large():
    with torch.device("meta"):
        return torch.nn.Linear(10**6, 10**6), (torch.ones(1, 10**6),)

def branch():
    return Branch(), (torch.ones(2),)

def fails():
    raise RuntimeError("no weights here")

def no_module():
    return "model", (1,)

def no_tuple():
    return torch.nn.Linear(2, 2), torch.ones(2)

number = 3
"""


@pytest.fixture
def model(tmp_path):
    """Gives the name of a file with functions that make models."""
    path = tmp_path / "a_model.py"
    path.write_text(MODEL)
    return str(path)


def test_profile(model):
    """Tests that the problem printed is ready to plan, and that what the user's code prints is not in it."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    options = ("--devices", "2", "--microbatches", "4", "--schedule", "gpipe", "--repetitions", "1")
    called = partita("profile", f"{model}:build", *options)
    assert called.exit_code == 0, called.err
    assert "building" in called.err
    assert "4 layers on cpu" in called.err
    problem = validate(Problem, json.loads(called.out))
    assert [layer.name for layer in problem.model.layers] == ["0", "1", "2", "loss"]
    assert problem.model.name == "a_model.py:build"
    assert all(layer.forward_s > 0 for layer in problem.model.layers)
    planned = partita("plan", "-", "--json", stdin=called.out.encode())
    assert json.loads(planned.out)["status"] == "optimal"


def test_profile_to_a_file(model, tmp_path):
    """Tests the options of layers and links, and that the problem can be written to a file."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    path = tmp_path / "problem.json"
    options = ("--depth", "operations", "--bandwidth", "5e9", "--repetitions", "1", "-o", str(path))
    called = partita("profile", f"{model}:build", *options)
    assert (called.exit_code, called.out) == (0, ""), called.err
    problem = validate(Problem, json.loads(path.read_text()))
    assert problem.model.layers[0].name == "0:linear"
    fabric = problem.cluster.nodes[0].fabric
    assert fabric is not None
    assert fabric.bandwidth_bytes_per_s == 5e9


def test_what_a_module_prints_is_not_in_the_problem(model):
    """Tests that it goes to standard error, whenever it is printed."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    called = partita("profile", f"{model}:loud", "--repetitions", "1")
    assert called.exit_code == 0, called.err
    assert [layer.name for layer in validate(Problem, json.loads(called.out)).model.layers] == ["0", "1", "loss"]
    assert called.err.count("it runs") > 1


def test_profile_with_policies(model):
    """Tests that options of recompute are measured by name: products, operations given, and a function."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    options = ("selective", "gelu=aten.gelu", f"mine={model}:policy")
    flags = [word for option in options for word in ("--recompute", option)]
    called = partita("profile", f"{model}:relus", "--repetitions", "1", *flags)
    assert called.exit_code == 0, called.err
    layer = validate(Problem, json.loads(called.out)).model.layers[1]
    kept = {option.recompute: option.activation_bytes for option in layer.options}
    assert list(kept) == ["full", "selective", "gelu", "mine"]
    assert kept["full"] < kept["gelu"] < kept["selective"] == kept["mine"]
    chosen = json.loads(called.out)
    chosen["constraints"] = {"recompute": "selective"}
    planned = partita("plan", "-", "--json", stdin=json.dumps(chosen).encode())
    assert json.loads(planned.out)["status"] == "optimal"


def test_profile_says_what_may_surprise(model):
    """Tests that parameters that nothing reads are named, and that code which asks whether it is exported shows."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    called = partita("profile", f"{model}:asks", "--repetitions", "1")
    assert called.exit_code == 0, called.err
    assert "saves 192 bytes as captured but 128 by itself" in called.err
    assert "on no stage, because nothing reads them: spare.weight, spare.bias" in called.err


def test_profile_of_what_has_no_room_here(model):
    """Tests that a model of a trillion parameters is estimated for a device."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    called = partita("profile", f"{model}:large", "--device", "h100")
    assert called.exit_code == 0, called.err
    assert "all estimated" in called.err
    problem = validate(Problem, json.loads(called.out))
    assert problem.model.layers[0].weight_bytes == 4 * (10**12 + 10**6)
    assert list(problem.cluster.devices) == ["h100"]


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("branch", (), "a_model.py:18, in forward"),
        ("fails", (), "RuntimeError: no weights here (a_model.py:51, in fails)"),
        ("no_module", (), "the model is a str"),
        ("no_tuple", (), "give a tuple, with a comma after a single one"),
        ("keywords", (), "the inputs are a dict; give a tuple, with a comma after a single one; for keywords, wrap"),
        ("number", (), "has no function 'number'"),
        ("build", ("--schedule", "2f"), "/training/schedule: unknown schedule"),
        ("build", ("--devices", "0"), "devices: between 1 and"),
        ("build", ("--depth", "0"), "--depth: blocks, points, operations or a number"),
        ("build", ("--repetitions", "0"), "--repetitions"),
        ("build", ("--recompute", "stage"), "--recompute: an option of recompute cannot be called 'stage'"),
        ("build", ("--recompute", "s=aten.x"), "--recompute: torch has no operation 'aten.x'"),
        ("build", ("--recompute", "s", "--recompute", "s=aten.mm"), "--recompute: 's' is given twice"),
        ("build", ("--recompute", "s=no_such:f"), "no_such cannot be imported"),
        ("relus", ("--recompute", "s=aten.mm"), "--recompute: the policy of 's' saves no operation of the layers"),
        ("build", ("--device", "a100"), "--device: the model is measured where it is"),
        ("large", (), "--device: the model is on the meta device; say what to estimate for: a100, h100, h200"),
        ("large", ("--device", "b9"), "a100, h100, h200 (got 'b9')"),
    ],
)
def test_profile_refuses(model, function, options, words):
    """Tests that what cannot be captured or planned is named, with exit code 2."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    called = partita("profile", f"{model}:{function}", *options)
    assert (called.exit_code, called.out) == (2, "")
    assert words in called.err


@pytest.mark.parametrize(
    ("name", "words"),
    [("a_model.py", "expected MODULE:FUNCTION"), ("nowhere.py:build", "no file nowhere.py"), ("no_such:f", "no_such")],
)
def test_profile_refuses_names(name, words):
    """Tests that a module or function that is not there is named, with exit code 2."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    called = partita("profile", name)
    assert (called.exit_code, called.out) == (2, "")
    assert words in called.err


def test_profile_without_torch(model, tmp_path):
    """Tests that the command says what to install where torch is missing."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('No module named torch', name='torch')\n")
    done = run_partita("profile", f"{model}:build", environment={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2
    assert b".venv/bin/pip install -e '.[torch]'" in done.stderr


@pytest.mark.parametrize(("spreads", "words"), [((0.3, 0.02), None), ((0.02, 0.5), "vary by 44")])
def test_unsteady_times_are_told(spreads, words):
    """Tests that layers count by how long they take: here the second takes seven times as long as the first."""
    (first, first_s), (second, second_s) = (("first", 0.1), ("second", 0.7))
    layers = [
        {"name": name, "forward_s": seconds / 2, "backward_s": seconds / 2, "weight_bytes": 0, "activation_bytes": 0}
        for name, seconds in ((first, first_s), (second, second_s))
    ]
    document = json.loads((EXAMPLES / "gpt.json").read_text())
    measurement = document["model"]["measurement"] | {"spreads": dict(zip((first, second), spreads, strict=True))}
    document["model"] = {"layers": layers, "measurement": measurement}
    found = unsteady(validate(Problem, document))
    assert found is None if words is None else words in found
