"""Names of requests, and what the log says of them: who, what, with what result, and nothing else."""

import json
import logging
import sys
import uuid

import pytest
import solve_doubles
from api_calls import call, document_in
from key_calls import headers_with
from small_problems import as_bytes, chain

from partita.service.logs import REQUEST_ID, JsonLines, TextLines

SECRET = "a-secret-in-the-body"


@pytest.fixture
def journal(caplog):
    """Give what was logged, as JSON lines and as text."""
    caplog.set_level(logging.INFO, "partita")

    def lines():
        return [json.loads(JsonLines().format(record)) for record in caplog.records]

    return lines


@pytest.mark.parametrize("path", ["/v1/plans", "/healthz", "/nothing", "/v1/plans/x"])
def test_every_answer_repeats_the_name_of_its_request(make_app, path):
    """Tests that a well-formed name is kept, also in problem documents, and that another one is made otherwise."""
    app = make_app()
    given = {"X-Request-ID": "launch-17.attempt_2"}
    response = call(app, "GET", path, headers=given)
    assert response.headers.get_list("x-request-id") == ["launch-17.attempt_2"]
    if response.status_code >= 400:
        assert response.json()["request_id"] == "launch-17.attempt_2"
    for wrong in ("", "a b", "a\tb", "x" * 129, "ä", '"', "<script>"):
        made = call(app, "GET", path, headers={"X-Request-ID": wrong.encode()}).headers["x-request-id"]
        assert uuid.UUID(made)


def test_refusals_and_errors_have_it_too(make_app, monkeypatch):
    """Tests the same of a refusal by the guard, of an error in the service, and of a failed solve."""
    app = make_app(solve_doubles.error)
    named = {"X-Request-ID": "one", "Content-Type": "application/json", "Prefer": "wait=30"}
    failed = call(app, "POST", "/v1/plans", b"{}", named)
    assert (failed.status_code, failed.headers["x-request-id"], failed.json()["request_id"]) == (500, "one", "one")
    job = call(app, "GET", "/v1/plans").json()["jobs"][0]
    assert job["failure"]["request_id"] is None  # others may look at it
    monkeypatch.setattr(app.state.jobs, "list", None)
    broken = call(app, "GET", "/v1/plans", headers=named)
    assert (broken.status_code, broken.headers.get_list("x-request-id")) == (500, ["one"])
    assert document_in(broken, 500, "internal-error").request_id == "one"
    headers_with(app, "alice")
    refused = call(app, "GET", "/v1/plans", headers=named)
    assert (refused.status_code, refused.headers["x-request-id"], refused.json()["request_id"]) == (401, "one", "one")


def test_every_change_has_a_line_in_the_audit_trail(make_app, journal):
    """Tests that the line says who did what to which job with what result, also where it was refused."""
    app = make_app()
    alice, looks = headers_with(app, "alice"), headers_with(app, "looks", "read", "alice")
    job = call(app, "POST", "/v1/plans", b"{}", alice).json()["id"]
    call(app, "GET", f"/v1/plans/{job}", headers=alice)
    call(app, "DELETE", f"/v1/plans/{job}", headers=looks)
    call(app, "DELETE", f"/v1/plans/{job}", headers={"X-Request-ID": "anonymous"})
    call(app, "DELETE", f"/v1/plans/{job}", headers=alice)
    audit = [line for line in journal() if line["logger"] == "partita.audit"]
    told = [(line["key"], line["method"], line["path"], line["status"]) for line in audit]
    path = f"/v1/plans/{job}"
    assert told == [
        ("alice", "POST", "/v1/plans", 202),
        ("looks", "DELETE", path, 403),
        ("nobody", "DELETE", path, 401),
        ("alice", "DELETE", path, 200),
    ]
    assert audit[0]["location"] == path
    assert audit[2]["request_id"] == "anonymous" and audit[2]["message"].startswith(f"nobody DELETE {path}: 401 after")
    assert [line["path"] for line in journal() if line["logger"] == "partita.access"] == [path]


def test_without_keys_the_trail_says_local(make_app, journal):
    """Tests that a change on a server without keys is logged as that of whoever reaches it."""
    call(make_app(), "POST", "/v1/plans", b"{}", {"Content-Type": "application/json", "Prefer": "respond-async"})
    assert [line["key"] for line in journal()] == ["local"]


def test_neither_bodies_nor_keys_are_logged(make_app, journal, caplog):
    """Tests that nothing of a body, a query or a key gets into the log, whatever becomes of the request."""
    app = make_app()
    alice = headers_with(app, "alice") | {"Prefer": "wait=30"}
    key = alice["Authorization"].removeprefix("Bearer ")
    for body in (as_bytes(chain(model__name=SECRET)), as_bytes({SECRET: SECRET}), SECRET.encode()):
        for path in ("/v1/plans", "/v1/evaluations", "/v1/batches", "/v1/frontiers"):
            call(app, "POST", f"{path}?include=problem&note={SECRET}", body, alice)
    call(app, "GET", "/v1/plans", headers={"Authorization": f"Bearer {key}{SECRET}"})
    text = "\n".join([*map(str, journal()), *map(TextLines().format, caplog.records)])
    assert "/v1/batches" in text
    assert SECRET not in text and key not in text and key.rsplit("_", 1)[1] not in text


def test_no_text_passes_for_a_line_of_its_own(make_app, caplog):
    """Tests that line breaks and control characters of clients are harmless in both forms of the log."""
    caplog.set_level(logging.INFO, "partita")
    call(make_app(), "GET", "/x%0A2026-11-30T00:00:00Z%20INFO%20alice%0d%1b[2J%E2%80%A8", headers={})
    logging.getLogger("partita.service").error("told: %s", "first\n2026 INFO forged\r\x1b[2J\u2028end")
    for record in caplog.records:
        text = TextLines().format(record)
        first, *rest = text.split("\n")
        assert first.startswith("20") and all(line.startswith("    ") for line in rest)
        assert all(line.isprintable() for line in (first, *rest))
        assert len(text.splitlines()) == 1 + len(rest)
        assert "\n" not in JsonLines().format(record)


def test_tracebacks_are_kept():
    """Tests that an error is logged with its traceback, and the request that met it."""
    REQUEST_ID.set("one")
    try:
        raise ValueError("reason")
    except ValueError:
        record = logging.LogRecord("partita.service", logging.ERROR, "", 1, "broken", (), sys.exc_info())
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["message"], line["request_id"]) == ("ERROR", "broken", "one")
    assert "ValueError: reason" in line["exception"]
    text = TextLines().format(record)
    assert text.split("\n")[0].endswith("ERROR broken [one]") and "ValueError: reason" in text


def test_errors_of_the_queue_are_lines_like_others(make_app, journal):
    """Tests that what the queue's engine writes goes the way of all that is logged, once."""
    make_app()
    logging.getLogger("dbos").error("away")
    assert [(line["logger"], line["message"]) for line in journal()] == [("dbos", "away")]
