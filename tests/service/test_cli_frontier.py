"""``partita frontier``: the table, the JSON, files and exit codes; the same over REST."""

import json
from typing import get_args

import pytest
from api_calls import call, document_in, pointers
from cli_calls import partita
from small_problems import as_bytes, chain, too_large

from partita.models.document import validate
from partita.models.front import Front, FrontMetric


def test_table(file):
    """Tests that every point has its line, and that the report says what is proven."""
    called = partita("frontier", file(chain()), "--metrics", "num_devices,iteration_time_s")
    assert called.exit_code == 0
    for words in ("three: devices against iteration time", "complete", "Layers per stage", "Proven: these are all"):
        assert words in called.out
    assert called.err == ""


def test_json_and_file(file, tmp_path):
    """Tests that the front is printed whole, and written with its problem."""
    output = tmp_path / "front.json"
    called = partita("frontier", file(chain()), "--json", "-o", str(output))
    printed, written = validate(Front, json.loads(called.out)), validate(Front, json.loads(output.read_text()))
    assert printed.status == "complete" and printed.points
    assert printed.problem is None and written.problem is not None
    assert written.points == printed.points


def test_infeasible(file):
    """Tests that a problem without a plan ends with code 3 and says why."""
    called = partita("frontier", file(too_large()))
    assert called.exit_code == 3
    assert "No plan" in called.out


def test_limits_that_cannot_hold_together(file):
    """Tests that a problem that only the search can prove to have no plan is explained as by ``plan``."""
    called = partita("frontier", file(chain(limits={"iteration_time_s": 10.0}, constraints={"pins": {"a": 1}})))
    assert called.exit_code == 3
    assert "Limits in force" in called.out or "Needed at least" in called.out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--metrics", "iteration_time_s"], "--metrics"),
        (["--metrics", "iteration_time_s,speed"], "--metrics"),
        (["--metrics", "iteration_time_s,tokens_per_second"], "give another one"),
        (["--points", "1"], "--points"),
        (["--time-limit", "-1"], "--time-limit"),
    ],
)
def test_wrong_options(file, options, named):
    """Tests that a wrong option is named, with code 2."""
    called = partita("frontier", file(chain()), *options)
    assert called.exit_code == 2
    assert named in called.err


def test_over_rest(make_app):
    """Tests that the service gives the same front, and pointers into the whole body."""
    app = make_app()
    body = {"problem": chain(), "metrics": ["num_devices", "iteration_time_s"]}
    front = validate(Front, call(app, "POST", "/v1/frontiers", as_bytes(body)).json())
    assert front.status == "complete"
    assert [point.plan.metrics.num_devices for point in front.points] == [point.values[0] for point in front.points]
    body["metrics"] = ["num_devices", "num_devices"]
    document = document_in(call(app, "POST", "/v1/frontiers", as_bytes(body)), 422, "invalid-input")
    assert pointers(document) == ["/metrics/1"]
    body = {"problem": chain(training__queueing=True, training__communication="blocking")}
    document = document_in(call(app, "POST", "/v1/frontiers", as_bytes(body)), 422, "not-supported-yet")
    assert pointers(document) == ["/problem/training/queueing"]


def test_a_point_is_a_plan(file, tmp_path):
    """Tests that a point of a front is priced, drawn and exported like a plan of an answer, and that it must be one."""
    problem, front = file(chain(training__num_stages=[1, 2])), str(tmp_path / "front.json")
    partita("frontier", problem, "--metrics", "num_devices,iteration_time_s", "-o", front)
    points = json.loads((tmp_path / "front.json").read_text())["points"]
    priced = json.loads(partita("evaluate", problem, front, "--candidate", "2", "--json").out)["candidates"][0]
    assert priced["metrics"] == points[1]["plan"]["metrics"]
    assert partita("timeline", front, "--candidate", "2").exit_code == 0
    for command in (["timeline", front], ["evaluate", problem, front]):
        called = partita(*command, "--candidate", "9")
        assert called.exit_code == 2
        assert f"this front has no point 9; it has {len(points)}" in called.err


def test_help_names_the_metrics():
    """Tests that all metrics of a front are named, and that flags take no value."""
    text = partita("frontier", "--help").out
    assert all(metric in text for metric in get_args(FrontMetric))
    assert "<bool>" not in text
