"""The application without a network: every status and every problem document."""

import asyncio
import json
import logging

import httpx
import pytest
import solve_doubles
from api_calls import JSON, call, document_in, plan, pointers
from small_problems import as_bytes, chain, too_large
from sqlalchemy.exc import OperationalError

from partita.service.settings import GIB


def test_plan(make_app):
    """Tests that a problem is answered, without and with the problem itself."""
    app = make_app()
    short, whole = plan(app, as_bytes(chain())), plan(app, as_bytes(chain()), "?include=problem")
    assert (short.status_code, short.headers["content-type"]) == (200, "application/json")
    assert short.json()["status"] == "optimal"
    assert short.json()["problem"] is None
    assert whole.json()["problem"]["model"]["name"] == "three"
    assert whole.json()["problem_digest"] == short.json()["problem_digest"]


def test_same_problem_same_answer(make_app):
    """Tests that only the effort differs between two answers to one problem."""
    app = make_app()
    first, second = (plan(app, as_bytes(chain())).json() for _ in range(2))
    assert {**first, "solver": None} == {**second, "solver": None}


def test_infeasible_is_200(make_app):
    """Tests that a problem without a plan is an answer, not an error."""
    response = plan(make_app(), as_bytes(too_large()))
    assert response.status_code == 200
    assert response.json()["status"] == "infeasible"
    assert response.json()["infeasibility"]["message"]


def test_evaluation(make_app):
    """Tests that a given plan is priced, and that pointers are into the whole body."""
    app = make_app()
    body = {"problem": chain(), "plan": {"stage_sizes": [1, 2]}}
    assert call(app, "POST", "/v1/evaluations", as_bytes(body)).json()["status"] == "feasible"
    body["problem"]["model"]["layers"][1]["forward_s"] = "2"
    document = document_in(call(app, "POST", "/v1/evaluations", as_bytes(body)), 422, "invalid-input")
    assert pointers(document) == ["/problem/model/layers/1/forward_s"]


def test_health(make_app):
    """Tests that the health needs no solve."""
    response = call(make_app(solves=1, max_waiting=0), "GET", "/healthz", headers={})
    assert (response.status_code, response.json()["status"]) == (200, "ok")


@pytest.mark.parametrize("kind", ["plans", "evaluations"])
@pytest.mark.parametrize(("body", "pointer"), [(b"", ""), (b'{"a": NaN}', "/a"), (b"[" * 99, ""), (b"{}x", "")])
def test_not_json(make_app, kind, body, pointer):
    """Tests that a body that is no strict JSON has a 400 with a pointer."""
    document = document_in(call(make_app(), "POST", f"/v1/{kind}", body), 400, "not-json")
    assert pointers(document) == [pointer]


def test_invalid_input_names_every_fault(make_app):
    """Tests that all faults come at once, each with pointer, value, code and remedy."""
    body = chain(training__num_microbatches=0, search__solver="guess")
    document = document_in(plan(make_app(), as_bytes(body)), 422, "invalid-input")
    assert {(place.pointer, place.value) for place in document.errors} == {
        ("/training/num_microbatches", "0"),
        ("/search/solver", "'guess'"),
    }
    assert all(place.code and place.detail for place in document.errors)
    assert "2 things" in document.detail


def test_input_is_not_echoed(make_app):
    """Tests that a large or private value does not come back whole."""
    secret = "x" * 500 + "secret"
    response = plan(make_app(), as_bytes(chain(objective=secret)))
    document_in(response, 422, "invalid-input")
    assert "secret" not in response.text


def test_not_supported_yet(make_app):
    """Tests that what is valid but not there yet has a type of its own."""
    document_in(
        plan(make_app(), as_bytes(chain(training__queueing=True, training__communication="blocking"))),
        422,
        "not-supported-yet",
    )


def test_over_limit(make_app):
    """Tests that a limit of the server is stated."""
    document = document_in(plan(make_app(max_time_limit_s=2), as_bytes(chain())), 422, "over-limit")
    assert pointers(document) == ["/search/time_limit_s"]
    assert "at most 2" in document.errors[0].detail


@pytest.mark.parametrize("query", ["?include=everything", "?include="])
def test_wrong_query(make_app, query):
    """Tests that a wrong query parameter is named."""
    document = document_in(plan(make_app(), as_bytes(chain()), query), 422, "invalid-input")
    assert document.errors[0].parameter == "include"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "nonsense"},
        {"Content-Type": "application/json", "Content-Encoding": "br"},
    ],
)
def test_wrong_content_type(make_app, headers):
    """Tests that only JSON in UTF-8 is taken."""
    document_in(plan(make_app(), b"{}", headers=headers), 415, "wrong-type")


@pytest.mark.parametrize("value", ["application/json; charset=UTF-8", "Application/JSON", 'application/json; a="b"'])
def test_content_type_with_parameters(make_app, value):
    """Tests that parameters and case of the content type do not matter."""
    document_in(plan(make_app(), b"{", headers={"Content-Type": value, "Prefer": "wait=30"}), 400, "not-json")


def test_too_large_body(make_app):
    """Tests that the limit on the body is exact and stated."""
    app = make_app(max_body_bytes=100)
    document_in(plan(app, b"[" * 100), 400, "not-json")
    document = document_in(plan(app, b"[" * 101), 413, "body-too-large")
    assert "100 bytes" in document.detail
    assert pointers(document) == [""]


def test_too_large_body_without_a_length(make_app):
    """Tests that the limit holds for a body that comes in parts, and for one whose length is a lie."""

    async def parts():
        for _ in range(3):
            yield b"[" * 40

    app = make_app(max_body_bytes=100)
    document_in(plan(app, parts()), 413, "body-too-large")
    document_in(plan(app, b"{}", headers={**JSON, "Content-Length": "101"}), 413, "body-too-large")


def test_late_body(make_app):
    """Tests that a body that stops on its way is given up."""

    async def slowly():
        yield b"{"
        await asyncio.sleep(5)

    document_in(plan(make_app(body_timeout_s=0.1), slowly()), 408, "body-late")


def test_nothing_here(make_app):
    """Tests that unknown paths and wrong methods have problem documents too."""
    app = make_app()
    for path in ("/v1", "/v1/plans/", "/docs/nothing.js", "/page/../settings.py"):
        document_in(call(app, "GET", path), 404, "not-found")
    response = call(app, "DELETE", "/v1/plans")
    document_in(response, 405, "wrong-method")
    assert response.headers["allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("work", "settings", "status", "name", "words"),
    [
        (solve_doubles.crash, {}, 500, "solve-crashed", "SIGSEGV"),
        (solve_doubles.leave, {}, 500, "solve-crashed", "exit code 7"),
        (solve_doubles.error, {}, 500, "internal-error", "the server's log"),
        (solve_doubles.hog, {"solve_memory_bytes": 2 * GIB}, 422, "out-of-memory", f"{2 * GIB} bytes"),
        (solve_doubles.loop, {"grace_s": 0.1}, 504, "solve-overran", "after 0.3 s"),
        (solve_doubles.never_reads, {"reading_s": 0.2}, 504, "solve-overran", "reading the body"),
    ],
)
def test_solve_that_goes_wrong(make_app, work, settings, status, name, words, caplog):
    """Tests that each way to fail has its document, and that the log has what the client must not see."""
    with caplog.at_level(logging.ERROR, "partita.service"):
        response = plan(make_app(work, **settings), as_bytes({"time_limit_s": 0.2}))
    document = document_in(response, status, name)
    assert words in document.detail
    assert "secret" not in response.text
    if status == 500:
        assert document.instance in caplog.text
    assert ("a secret of the solver" in caplog.text) == (work is solve_doubles.error)


def test_signal_without_a_name(make_app):
    """Tests that a signal that has no name is told by its number."""
    from partita.service.refusals import _how_ended

    assert _how_ended(-60) == "killed by signal 60"


def test_error_in_the_service_itself(make_app, monkeypatch, caplog):
    """Tests that even an error of the service is a problem document that tells nothing about it."""
    app = make_app()

    async def broken(asked, **how):
        raise RuntimeError("private")

    monkeypatch.setattr(app.state.jobs, "submit", broken)
    response = plan(app, b"{}")
    document = document_in(response, 500, "internal-error")
    assert "private" not in response.text
    assert document.instance in caplog.text


def test_the_store_cannot_be_reached(make_app, monkeypatch):
    """Tests that a store that is away for a while is no error of the service, and that nothing about it is told."""
    app = make_app()

    async def away(*_):
        raise OperationalError("SELECT private", {}, Exception("private"))

    monkeypatch.setattr(app.state.jobs, "get", away)
    response = call(app, "GET", "/v1/plans/6b9b7a5e-0c3f-4f57-9d5f-0f1e2d3c4b5a")
    document_in(response, 503, "not-ready")
    assert "private" not in response.text
    assert int(response.headers["retry-after"]) >= 1


def test_busy(make_app):
    """Tests that a server with all slots taken says when to try again."""
    app = make_app(solve_doubles.nap, solves=1, slot_wait_s=0.05)

    async def two():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            bodies = (json.dumps({"nap_s": 1.5}), "{}")
            return await asyncio.gather(
                *(client.post("/v1/evaluations", content=body, headers=JSON) for body in bodies)
            )

    first, second = sorted(asyncio.run(two()), key=lambda response: response.status_code)
    assert first.status_code == 200
    document_in(second, 503, "busy")
    assert int(second.headers["retry-after"]) >= 1


def test_too_many_at_once(make_app):
    """Tests that a server that has no room at all refuses before it reads the body."""
    app = make_app(max_waiting=0, solves=1)
    with app.state.solves.admission():
        response = plan(app, b"{}")
    document_in(response, 503, "busy")
    assert "retry-after" in response.headers


def test_exports_are_counted_like_other_requests(make_app):
    """Tests that a server that has no room writes no plan for another program."""
    app = make_app(max_waiting=0, solves=1)
    location = plan(app, as_bytes(chain())).headers["location"]
    with app.state.solves.admission():
        response = call(app, "GET", f"{location}/export/deepspeed")
    document_in(response, 503, "busy")
    assert call(app, "GET", f"{location}/export/deepspeed").status_code == 200


def test_files_of_the_page_are_sent_once(make_app):
    """Tests that a browser that has a file of the page is not sent it again, and is asked to look each time."""
    app = make_app()
    for path in ("/", "/page/main.js"):
        first = call(app, "GET", path, headers={})
        assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
        again = call(app, "GET", path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
