"""Traces of requests and jobs, and that nothing of them is there where nobody asks."""

import subprocess
import sys
import uuid

import pytest
from api_calls import call, plan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from small_problems import as_bytes, chain

from partita.service import tracing
from partita.service.tracing import MOST_PHASES, Life, Phase, Traces, traces_from

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def traced(monkeypatch, make_app):
    """Make an application with traces; give it, and what ends them and gives the spans by their names."""
    exporter = InMemorySpanExporter()
    traces = Traces(exporter, "partita")
    monkeypatch.setattr("partita.service.api.app.traces_from", lambda environment: traces)

    def spans():
        traces.close()
        return {span.name: span for span in exporter.get_finished_spans()}

    return make_app(), spans


def test_a_plan_from_request_to_phases(traced):
    """Tests that the request is in its sender's trace and leads to the job, whose trace has its name and its phases."""
    app, spans = traced
    headers = {"Content-Type": "application/json", "Prefer": "wait=30", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    job = plan(app, as_bytes(chain()), headers=headers).headers["location"].rpartition("/")[2]
    found = spans()
    request, root, solve = found["POST /v1/plans"], found["job"], found["solve"]
    assert f"{request.context.trace_id:032x}" == TRACE and f"{request.parent.span_id:016x}" == PARENT
    assert request.links[0].context.span_id == root.context.span_id
    assert request.links[0].context.trace_id == root.context.trace_id == uuid.UUID(job).int
    assert root.parent is None and found["queued"].parent.span_id == solve.parent.span_id == root.context.span_id
    assert found["read"].parent.span_id == found["search"].parent.span_id == solve.context.span_id
    assert root.attributes["partita.state"] == "succeeded" and request.attributes["partita.job"] == job
    assert (
        root.start_time <= solve.start_time == found["read"].start_time <= found["search"].start_time <= root.end_time
    )
    assert root.resource.attributes["service.name"] == "partita"


def test_requests_without_a_job(traced):
    """Tests that other requests have spans too, named by the pattern of their path."""
    app, spans = traced
    call(app, "GET", "/healthz")
    call(app, "GET", "/nothing/here")
    found = spans()
    assert found["GET /healthz"].attributes["http.response.status_code"] == 200
    assert found["GET other"].attributes["http.response.status_code"] == 404 and not found["GET other"].links


def test_phases_are_bounded():
    """Tests that a search of thousands of phases does not become thousands of spans."""
    exporter = InMemorySpanExporter()
    traces = Traces(exporter, None)
    phases = [Phase(f"candidate {number}", 2.0 + number) for number in range(5 * MOST_PHASES)]
    traces.job(Life(str(uuid.uuid4()), "plan", "failed", 1, 0.0, 1.0, 9999.0, phases))
    traces.close()
    found = exporter.get_finished_spans()
    assert len(found) == MOST_PHASES + 4
    assert not next(span for span in found if span.name == "job").status.is_ok


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "odd"},
    ],
)
def test_off(environment):
    """Tests what does not turn traces on."""
    assert traces_from(environment) is None


def test_on():
    """Tests that the variables of OpenTelemetry turn traces on."""
    traces = traces_from({"OTEL_TRACES_EXPORTER": "console"})
    assert traces is not None
    traces.close()


def test_asked_for_but_not_installed(monkeypatch):
    """Tests that a service without the extra says so, and works."""
    warned = []
    monkeypatch.setattr(tracing.LOG, "warning", warned.append)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert traces_from({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}) is None
    assert ".[otel]" in warned[0]


def test_nothing_is_loaded_where_nobody_asks(tmp_path):
    """Tests that an application without traces does not load what writes them."""
    code = "import sys; from partita.service.api.app import create_app; create_app()\n"
    code += "sys.exit(any(name.startswith('opentelemetry.sdk') for name in sys.modules))"
    environment = {"PATH": "", "PYTHONPATH": ":".join(filter(None, sys.path)), "HOME": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
