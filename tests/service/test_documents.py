"""Stored profiles and clusters, and problems that name them."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import sqlalchemy as sa
from api_calls import call, document_in, pointers
from cli_calls import partita
from key_calls import headers_with
from small_problems import as_bytes, chain

from partita.models.cluster import Cluster
from partita.models.document import read_json, validate
from partita.models.profile import ModelProfile
from partita.service.api import examples
from partita.service.documents.document_store import DocumentStore, Limits, NoRoom
from partita.service.settings import Settings
from partita.service.solving.documents import canonical
from partita.service.solving.outcomes import Answered, Refused
from partita.service.solving.references import Content, patched
from partita.service.solving.talk import Talk
from partita.service.solving.work import perform

MODEL, CLUSTER = chain()["model"], chain()["cluster"]
JSON = {"Content-Type": "application/json"}
PATIENT, AT_ONCE = {**JSON, "Prefer": "wait=30"}, {**JSON, "Prefer": "respond-async"}
LINES = {"Content-Type": "application/x-ndjson"}


def put(app, path, body, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(app, "PUT", f"/v1/{path}", body if isinstance(body, bytes) else as_bytes(body), JSON | names)


def named(**changes):
    """Give the chain with its model and its cluster by name."""
    return {**chain(), "model": {"ref": "m"}, "cluster": {"ref": "c"}, **changes}


@pytest.fixture
def app(make_app):
    """An application that stores the model and the cluster of the chain."""
    app = make_app()
    app.digests = [
        put(app, path, body).json()["digest"] for path, body in (("profiles/m", MODEL), ("clusters/c", CLUSTER))
    ]
    return app


def test_stored_listed_given_removed(make_app):
    """Tests the life of a document, and that its digest is that of the bytes that are given."""
    app = make_app()
    first = put(app, "profiles/bert-24.v1", MODEL)
    stored = first.json()
    assert (first.status_code, first.headers["location"]) == (201, "/v1/profiles/bert-24.v1")
    assert first.headers["etag"] == f'"{stored["digest"]}"'
    assert stored["reference"] == {"ref": "bert-24.v1", "digest": stored["digest"]}
    got = call(app, "GET", "/v1/profiles/bert-24.v1", headers={})
    assert stored["digest"] == "sha256:" + hashlib.sha256(got.content).hexdigest()
    assert (got.headers["etag"], len(got.content)) == (first.headers["etag"], stored["bytes"])
    assert validate(ModelProfile, got.json()) == validate(ModelProfile, MODEL)
    again = put(app, "profiles/bert-24.v1", MODEL)
    assert (again.status_code, again.json()) == (200, stored)
    changed = put(app, "profiles/bert-24.v1", {**MODEL, "name": "other"})
    assert (changed.status_code, changed.json()["created_at"]) == (200, stored["created_at"])
    assert changed.json()["digest"] != stored["digest"]
    put(app, "profiles/a", MODEL)
    assert [each["name"] for each in call(app, "GET", "/v1/profiles").json()["documents"]] == ["a", "bert-24.v1"]
    assert call(app, "GET", "/v1/clusters").json() == {"documents": []}
    assert call(app, "DELETE", "/v1/profiles/a").status_code == 204
    for name in ("a", "%00", "-", "a%0A"):
        for method in ("GET", "DELETE"):
            document_in(call(app, method, f"/v1/profiles/{name}"), 404, "not-found")


@pytest.mark.parametrize("problem", [examples.CHAIN, examples.GRAPH, examples.COMPARISON, examples.TOO_LARGE, chain()])
def test_what_is_stored_means_the_same(problem):
    """Tests that the canonical form of a document reads as the document, and is its own canonical form."""
    for kind, member, model in (("profile", "model", ModelProfile), ("cluster", "cluster", Cluster)):
        text = canonical(kind, problem[member], Settings())
        assert validate(model, read_json(text)) == validate(model, problem[member])
        assert canonical(kind, read_json(text), Settings()) == text


def test_two_ways_of_writing_one_document_have_one_digest(make_app):
    """Tests that sizes with units, defaults and the order of members do not count."""
    app = make_app()
    first = put(app, "clusters/c", CLUSTER)
    otherwise = json.loads(json.dumps(CLUSTER).replace('"1GB"', "1000000000"))
    otherwise = {"links": [], **dict(reversed(otherwise.items()))}
    assert put(app, "clusters/c", otherwise).json() == first.json()


def test_changes_may_say_what_they_expect(make_app):
    """Tests If-Match and If-None-Match for new names, changes, removal, and what the client has."""
    app = make_app()
    other = {**MODEL, "name": "other"}
    document_in(put(app, "profiles/m", MODEL, If_Match="*"), 412, "not-as-expected")
    tag = put(app, "profiles/m", MODEL, If_None_Match="*").headers["etag"]
    document_in(put(app, "profiles/m", other, If_None_Match="*"), 412, "not-as-expected")
    document_in(put(app, "profiles/m", other, If_Match='"sha256:0"'), 412, "not-as-expected")
    document_in(put(app, "profiles/m", other, If_Match=f"W/{tag}"), 412, "not-as-expected")
    assert call(app, "GET", "/v1/profiles/m", headers={"If-None-Match": f'"x", W/{tag}'}).status_code == 304
    changed = put(app, "profiles/m", other, If_Match=f'"x", {tag}')
    assert changed.status_code == 200
    assert call(app, "GET", "/v1/profiles/m", headers={"If-None-Match": tag}).status_code == 200
    document_in(call(app, "DELETE", "/v1/profiles/m", headers={"If-Match": tag}), 412, "not-as-expected")
    assert call(app, "DELETE", "/v1/profiles/m", headers={"If-Match": changed.headers["etag"]}).status_code == 204


def test_the_last_room_is_given_once(make_app):
    """Tests that of requests at the same time only as many store something as there is room for."""
    store = DocumentStore(make_app().state.jobs.store.engine, Limits(count=1, total_bytes=100))
    together = Barrier(4)

    def put(name):
        try:
            store.put("local", "cluster", name, b"{}", lambda stored: together.wait(60) >= 0)
        except NoRoom:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(put, "abcd")) == 1
    assert len(store.listed("local", "cluster")) == 1


def test_what_is_not_stored(make_app):
    """Tests that a document is checked like the part of a problem that it is, and its name, number and size are."""
    app = make_app(max_layers=3, max_documents=2, max_document_bytes=600)
    wrong = {**MODEL, "layers": [{"name": "a", "forward_s": -1}]}
    assert pointers(document_in(put(app, "profiles/m", wrong), 422, "invalid-input")) == ["/layers/0/forward_s"]
    document_in(put(app, "profiles/m", b"{"), 400, "not-json")
    document_in(put(app, "clusters/c", MODEL), 422, "invalid-input")
    many = {"layers": [{"name": f"l{number}", "forward_s": 1.0} for number in range(4)]}
    assert pointers(document_in(put(app, "profiles/m", many), 422, "over-limit")) == ["/layers"]
    for name in ("-m", "a%20b", "a%0A", "x" * 101):
        assert document_in(put(app, f"profiles/{name}", MODEL), 422, "invalid-input").errors[0].parameter == "name"
    assert [put(app, f"profiles/m{number}", MODEL).status_code for number in range(3)] == [201, 201, 422]
    assert put(app, "profiles/m0", {**MODEL, "name": "changed"}).status_code == 200
    large = {"layers": [{"name": name * 200, "forward_s": 1.0} for name in "xyz"]}
    detail = document_in(put(app, "profiles/m0", large), 422, "over-limit").detail
    assert "one owner may have 600" in detail


def test_problems_by_name_are_answered_like_whole_ones(app):
    """Tests plans, fronts and evaluations with references, without and with digests."""
    whole = call(app, "POST", "/v1/plans", as_bytes(chain()), PATIENT).json()
    by_name = call(app, "POST", "/v1/plans?include=problem", as_bytes(named()), PATIENT)
    assert {**by_name.json(), "problem": None} == whole  # from the store: it is the same problem
    assert by_name.json()["problem"]["model"]["name"] == "three"
    pinned = named(model={"ref": "m", "digest": app.digests[0]}, cluster={"ref": "c", "digest": app.digests[1]})
    evaluated = {"problem": pinned, "plan": {"stage_sizes": [2, 1]}, "solve": False}
    answer = call(app, "POST", "/v1/evaluations", as_bytes(evaluated), PATIENT).json()
    assert answer["problem_digest"] == whole["problem_digest"]
    front = {"problem": named(), "metrics": ["iteration_time_s", "peak_memory_bytes"]}
    assert call(app, "POST", "/v1/frontiers", as_bytes(front), PATIENT).json()["status"] == "complete"


def test_a_changed_content_is_not_answered_from_an_old_solve(app):
    """Tests that the same request is answered from the store while its references mean the same, and anew after."""
    first = call(app, "POST", "/v1/plans", as_bytes(named()), PATIENT)
    assert "age" in call(app, "POST", "/v1/plans", as_bytes(named()), AT_ONCE).headers
    slower = json.loads(json.dumps(MODEL).replace("3.0", "30.0"))
    put(app, "profiles/m", slower)
    second = call(app, "POST", "/v1/plans", as_bytes(named()), PATIENT)
    assert "age" not in second.headers
    assert second.json()["best_bound"] > 5 * first.json()["best_bound"]
    put(app, "profiles/m", MODEL)
    back = call(app, "POST", "/v1/plans", as_bytes(named()), AT_ONCE)
    assert "age" in back.headers and back.json() == first.json()


def test_references_that_lead_nowhere(app):
    """Tests that every call says which reference is unknown, and which digest is not that of what is stored."""
    old = app.digests[0]
    put(app, "profiles/m", {**MODEL, "name": "other"})
    bodies = (
        ("/v1/plans", "", lambda problem: problem),
        (
            "/v1/frontiers",
            "/problem",
            lambda problem: {"problem": problem, "metrics": ["num_devices", "iteration_time_s"]},
        ),
        ("/v1/evaluations", "/problem", lambda problem: {"problem": problem, "plan": {"stage_sizes": [2, 1]}}),
        ("/v1/batches", "/base", lambda problem: {"base": problem, "variants": [{"patch": {}}]}),
    )
    for path, place, body in bodies:
        unknown = call(app, "POST", path, as_bytes(body(named(model={"ref": "c"}))), AT_ONCE)
        assert pointers(document_in(unknown, 422, "invalid-input")) == [f"{place}/model/ref"]
        changed = call(app, "POST", path, as_bytes(body(named(model={"ref": "m", "digest": old}))), AT_ONCE)
        document = document_in(changed, 409, "reference-changed")
        assert (pointers(document), document.errors[0].value) == ([f"{place}/model/digest"], old)
    for wrong in ({"ref": 1}, {"ref": "m", "digest": "x"}, {"ref": "m", "layers": []}, {"ref": "a b"}):
        refused = call(app, "POST", "/v1/plans", as_bytes(named(model=wrong)), PATIENT)
        assert document_in(refused, 422, "invalid-input").errors[0].pointer.startswith("/model/")


def tasks_of(app):
    """Give what the jobs in the store ask for, in the order of their batch."""
    store = app.state.jobs.store
    with store.engine.connect() as connection:
        names = connection.execute(sa.text("SELECT id FROM jobs ORDER BY created_at, position")).scalars().all()
    return [store.task(name) for name in names]


def outcomes(app):
    """Do what the jobs in the store ask for."""
    return [perform(task, Settings(), Talk()) for task in tasks_of(app)]


def problem_in(outcome):
    assert isinstance(outcome, Answered), outcome
    return json.loads(outcome.problem)


def test_jobs_keep_what_their_references_meant(app):
    """Tests that a job that waits, and a repeated request, do not notice that a document is changed and removed."""
    keyed = {**AT_ONCE, "Idempotency-Key": "one"}
    job = call(app, "POST", "/v1/plans", as_bytes(named()), keyed).json()["id"]
    put(app, "profiles/m", {**MODEL, "name": "other"})
    assert call(app, "POST", "/v1/plans", as_bytes(named()), keyed).json()["id"] == job
    call(app, "DELETE", "/v1/profiles/m")
    assert call(app, "POST", "/v1/plans", as_bytes(named()), keyed).json()["id"] == job
    (outcome,) = outcomes(app)
    assert problem_in(outcome)["model"]["name"] == "three"


def test_references_in_batches(app):
    """Tests references in base, patches and lines: each takes the place of what was there, and fails alone."""
    big = json.loads(json.dumps(CLUSTER).replace('"count": 2', '"count": 3'))
    put(app, "clusters/big", {**big, "devices": {"d": {"memory_bytes": "2GB"}, "e": {"memory_bytes": "3GB"}}})
    variants = [
        {"patch": {}},
        {"patch": {"cluster": {"ref": "big"}}},
        {"patch": {"cluster": {"devices": {"d": {"memory_bytes": "5GB"}}}}},
        {"patch": {"cluster": {"ref": "missing"}}},
        {"patch": {"cluster": {"ref": "c", "digest": f"sha256:{'0' * 64}"}}},
        {"patch": {"model": {"ref": "m", "name": "x"}}},
    ]
    body = {"base": named(), "variants": variants}
    headers = {**JSON, "Idempotency-Key": "batch"}
    batch = call(app, "POST", "/v1/batches", as_bytes(body), headers)
    assert batch.status_code == 202
    for path in ("profiles/m", "clusters/c", "clusters/big"):
        call(app, "DELETE", f"/v1/{path}")
    assert call(app, "POST", "/v1/batches", as_bytes(body), headers).json()["id"] == batch.json()["id"]
    plain, whole, changed, *wrong = outcomes(app)
    assert list(problem_in(plain)["cluster"]["devices"]) == ["d"]
    assert list(problem_in(whole)["cluster"]["devices"]) == ["d", "e"]
    assert problem_in(whole)["cluster"]["nodes"][0]["count"] == 3
    assert problem_in(changed)["cluster"]["devices"]["d"]["memory_bytes"] == 5e9
    assert [outcome.kind for outcome in wrong] == ["invalid_input", "reference_changed", "invalid_input"]
    assert [outcome.faults[0].pointer for outcome in wrong] == ["/cluster/ref", "/cluster/digest", "/model/name"]


def test_references_in_lines(app):
    """Tests that lines may name documents, also with escapes, and that a problem without needs none."""
    escaped = json.dumps(named()).replace('"m"', '"\\u006d"')
    lines = [
        escaped,
        json.dumps({"name": "n", "problem": named()}),
        json.dumps(chain()).replace('"c"', '"z"'),
        json.dumps(named(model={"ref": "x"})),
    ]
    assert call(app, "POST", "/v1/batches", "\n".join(lines).encode(), LINES).status_code == 202
    *right, wrong = outcomes(app)
    assert [problem_in(outcome)["model"]["name"] for outcome in right] == ["three"] * 3
    assert isinstance(wrong, Refused)
    assert [len(task.contents) for task in tasks_of(app)] == [2, 2, 0, 1]  # what it names, and not what others do


def test_a_reference_takes_the_place_of_an_object():
    """Tests that a patch by reference does not mix with what the base holds, and a patch that is none removes it."""
    contents = (Content("cluster", "c", "sha256:0", b'{"nodes": []}'),)
    base = {"cluster": {"devices": {"d": {}}}, "training": {}}
    assert patched(base, {"cluster": {"ref": "c"}}, contents) == {"cluster": {"nodes": []}, "training": {}}
    assert patched(base, {"cluster": None}, contents) == {"training": {}}
    assert patched(base, 3, contents) == 3


def test_documents_go_with_their_key_and_with_their_jobs(make_app, tmp_path):
    """Tests that nothing stored outlives its owner, and that what jobs kept of it is cleared with them."""
    from partita.service.jobs.upkeep import clear

    app = make_app()
    alice = headers_with(app, "alice")
    call(app, "PUT", "/v1/profiles/m", as_bytes(MODEL), alice)
    call(app, "POST", "/v1/plans", as_bytes({**chain(), "model": {"ref": "m"}}), alice)
    counts = "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM attachments)"

    def held():
        with app.state.jobs.store.engine.connect() as connection:
            return tuple(connection.execute(sa.text(counts)).one())

    clear(app.state.jobs.store, 0.0)
    assert held() == (1, 1)
    partita("keys", "revoke", "alice", "--data", str(tmp_path / "0"))
    assert held() == (0, 1)
    clear(app.state.jobs.store, float("inf"))
    assert held() == (0, 0)
