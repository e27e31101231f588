"""``partita import``, ``partita schema``, ``partita serve`` and the options of all."""

import json
import re
import subprocess
import sys

import pytest
from cli_calls import partita, run_partita
from jsonschema_rs import validator_for
from processes import running
from small_problems import chain

from partita import __version__
from partita.models.document import validate
from partita.models.problem import Problem
from partita.service.settings import GIB, MIB

NODES = (
    ("Input0", 0.0, 0.0, 0.0, 0.0),
    ("Embedding(10, 20)", 1.0, 2.0, 100.0, 800.0),
    ("Linear(20, 10)", 3.0, 4.0, 50.0, 800.0),
)
FIGURES = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}"
PIPEDREAM = (
    "".join(
        f"node{number} -- {name} -- {FIGURES.format(*figures)}\n" for number, (name, *figures) in enumerate(NODES, 1)
    )
    + "\tnode1 -- node2\n\tnode2 -- node3\n"
)


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text(PIPEDREAM)
    return str(path)


def test_import(profile):
    """Tests that a profile becomes a problem that is ready to plan."""
    called = partita("import", "pipedream", profile, "--devices", "2")
    assert called.exit_code == 0, called.err
    problem = validate(Problem, json.loads(called.out))
    assert [layer.forward_s for layer in problem.model.layers] == [0.001, 0.003]
    assert problem.cluster.num_devices == 2
    planned = partita("plan", "-", "--json", stdin=called.out.encode())
    assert planned.exit_code == 0
    assert json.loads(planned.out)["status"] == "optimal"


def test_import_options(profile, tmp_path):
    """Tests that options reach the reader, and that the problem can be written to a file."""
    path = tmp_path / "problem.json"
    options = ("--memory-bytes", "3GiB", "--bandwidth", "5e9", "--keep-inputs", "-o", str(path))
    called = partita("import", "pipedream", profile, *options)
    assert (called.exit_code, called.out) == (0, ""), called.err
    problem = validate(Problem, json.loads(path.read_text()))
    assert len(problem.model.layers) == 3
    assert next(iter(problem.cluster.devices.values())).memory_bytes == 3 * GIB
    assert "5000000000" in path.read_text()
    as_number = partita("import", "pipedream", profile, "--memory-bytes", str(5 * MIB))
    assert str(5 * MIB) in as_number.out


def test_import_of_degrees(tmp_path):
    """Tests that Piper's options reach the reader, and that the report shows the degrees of every stage."""
    way = {"id": "vanilla", "timePerSample": 2.0, "parameterSize": 8.0, "memoryUsageA": 8.0, "memoryUsageB": 16.0}
    node = {"name": "block", "TMPCs": {"1": [way], "2": [{**way, "timePerSample": 1.5}]}}
    file = {"maxDevices": 4, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "mbsInBatch": 4}
    file["nodes"] = [{**node, "id": 0}, {**node, "id": 1}]
    file["edges"] = [{"sourceId": 0, "destId": 1, "communicationCost": 8.0}]
    path = tmp_path / "piper.json"
    path.write_text(json.dumps(file))
    called = partita("import", "piper", str(path), "--devices", "2", "--time-unit", "ms", "--no-recompute")
    assert called.exit_code == 0, called.err
    assert "--memory-bytes 954 MiB" in called.err
    problem = validate(Problem, json.loads(called.out))
    assert [layer.backward_s for layer in problem.model.layers] == [0.002, 0.002]
    planned = partita("plan", "-", stdin=called.out.encode())
    assert planned.exit_code == 0, planned.err
    assert "Tensor  Data" in planned.out
    assert "in steady state, without filling and draining" in planned.out
    alone = partita("import", "piper", str(path), "--no-tensor-parallel", "--no-data-parallel")
    training = validate(Problem, json.loads(alone.out)).training
    assert (training.tensor_parallel, training.data_parallel) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing", "-"], "the formats are dnn-partitioning, pipedream, piper"),
        (["dnn-partitioning", "-"], "standard input: "),
        (["dnn-partitioning", "-", "--bandwidth", "1"], "--bandwidth is no option of the format dnn-partitioning"),
        (["pipedream", "-", "--edge-cost-unit", "ms"], "it has --devices, --bandwidth, --memory-bytes, --keep-inputs"),
        (["piper", "-", "--keep-inputs"], "--keep-inputs is no option of the format piper"),
        (["pipedream", "nowhere.txt"], "nowhere.txt: cannot be read"),
        (["pipedream", "-", "-o", "nowhere/problem.json"], "no folder nowhere"),
        (["pipedream", "-", "--devices", "two"], "--devices"),
    ],
)
def test_import_refuses(arguments, words):
    """Tests that what cannot be imported is named, with exit code 2."""
    called = partita("import", *arguments, stdin=b"nonsense")
    assert (called.exit_code, called.out) == (2, "")
    assert words in called.err


@pytest.mark.parametrize(
    "options",
    [["--devices", "0"], ["--devices", "-1"], ["--memory-bytes", "x"], ["--memory-bytes", "0"], ["--bandwidth", "-1"]],
)
def test_import_refuses_values(profile, options):
    """Tests that impossible values of options are refused, with exit code 2 and the value."""
    called = partita("import", "pipedream", profile, *options)
    assert (called.exit_code, called.out) == (2, "")
    assert options[1] in called.err


@pytest.mark.parametrize("what", ["problem", "answer", "front"])
def test_schema(what):
    """Tests that the schema holds for what it describes."""
    called = partita("schema", what)
    assert called.exit_code == 0
    document = json.loads(called.out)
    assert document["$schema"].endswith("2020-12/schema")
    judge = validator_for(document)
    instance = chain()
    if what == "answer":
        instance = json.loads(partita("plan", "-", "--json", stdin=json.dumps(chain()).encode()).out)
    if what == "front":
        instance = json.loads(partita("frontier", "-", "--json", stdin=json.dumps(chain()).encode()).out)
    assert judge.is_valid(instance)
    assert not judge.is_valid({**instance, "extra": 1})


def test_schema_of_something_else():
    """Tests that nothing else has a schema."""
    assert partita("schema", "universe").exit_code == 2


def test_version_and_help():
    """Tests that the version and the help of every command are there, and that a usage error has exit code 2."""
    assert partita("--version").out == f"partita {__version__}\n"
    for command in ("plan", "evaluate", "import", "schema", "serve", "worker", "keys"):
        assert partita(command, "--help").exit_code == 0
    assert partita("fly").exit_code == 2
    assert partita().exit_code == 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_serve_only_on_this_machine(host, tmp_path):
    """Tests that without keys the server listens to nobody else, with the reason."""
    called = partita("serve", "--host", host, "--data", str(tmp_path))
    assert called.exit_code == 2
    assert "there are no API keys yet" in called.err


def test_serve_on_a_port_in_use(real_client):
    """Tests that a port in use is one line, not a traceback."""
    called = partita("serve", "--port", str(real_client.base_url.port))
    assert called.exit_code == 1
    assert re.fullmatch(r"partita: cannot listen on 127.0.0.1, port \d+: .*; choose another --port\n", called.err)


@pytest.mark.parametrize(
    ("options", "name"),
    [(["--port", "70000"], "--port"), (["--max-body", "5 stones"], "--max-body"), (["--solves", "0"], "--solves")],
)
def test_serve_refuses_options(options, name):
    """Tests that impossible limits are refused."""
    called = partita("serve", *options)
    assert called.exit_code == 2
    assert name in called.err


def test_limits_from_the_environment(monkeypatch, tmp_path):
    """Tests that every option of the server is an environment variable too."""
    for name, value in {
        "PORT": "0",
        "MAX_BODY": "1MiB",
        "MAX_LAYERS": "7",
        "HOST": "127.0.0.1",
        "DATA": tmp_path,
    }.items():
        monkeypatch.setenv(f"PARTITA_{name}", str(value))
    with running("-m", "partita.service", "serve") as (_, client):
        assert (tmp_path / "partita.sqlite").exists()
        text = client.get("/openapi.json").json()["info"]["description"]
        assert f"{MIB} bytes, 7 layers" in text


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_every_option_of_the_server_has_its_variable(command):
    """Tests that no option was forgotten."""
    text = run_partita(command, "--help", environment={"COLUMNS": "200"}).stdout.decode()
    options = set(re.findall(r"--([a-z-]+)", text)) - {"help"}
    variables = set(re.findall(r"PARTITA_([A-Z_]+)", text))
    assert {option.upper().replace("-", "_") for option in options} == variables


def test_demo():
    """Tests that the demonstration plans its examples, one of them captured from PyTorch."""
    good = subprocess.run([sys.executable, "-m", "partita.service.demo"], capture_output=True, text=True, timeout=120)
    assert good.returncode == 0, good.stderr
    for words in ("gpt-22b", "Iteration time", "equal numbers", "8 stages", "gpt.py:build: 11 layers, 3 stages"):
        assert words in good.stdout


def test_import_tells_what_it_assumed(profile, tmp_path):
    """Tests that one line on standard error names what no option gave, and only that."""
    called = partita("import", "pipedream", profile)
    assert called.err == (
        "pipedream: assumed --devices 4, --memory-bytes 16.0 GiB, --bandwidth 1.25e+09, 4 microbatches\n"
    )
    given = partita("import", "pipedream", profile, "--devices", "2", "--bandwidth", "1e9", "--memory-bytes", "1GiB")
    assert given.err == "pipedream: assumed 2 microbatches\n"
    node = {"supportedOnFpga": 1, "fpgaLatency": 1, "size": 8}
    file = tmp_path / "input.json"
    file.write_text(json.dumps({"maxFPGAs": 3, "maxSizePerFPGA": 1024, "nodes": [{"id": 0, **node}], "edges": []}))
    called = partita("import", "dnn-partitioning", str(file))
    assert called.err == (
        "dnn-partitioning: assumed --devices 3, --memory-bytes 1.00 KiB, --edge-cost-unit ms, 1 microbatch\n"
    )


def test_import_help_has_the_defaults():
    """Tests that the help says what holds where an option is not given, as the readers have it."""
    text = " ".join(run_partita("import", "--help", environment={"COLUMNS": "200"}).stdout.decode().split())
    for words in ("4 (pipedream)", "16GiB (pipedream)", "1.25e9", "default ms"):
        assert words in text
