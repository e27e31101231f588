"""One key against another, over every call that the description of the service names."""

import pytest
import solve_doubles
from api_calls import call, document_in
from key_calls import headers_with, key_store
from small_problems import as_bytes, chain

from partita.service.api.app import create_app
from partita.service.api.guard import OPEN, role_for
from partita.service.api.openapi import openapi_document
from partita.service.settings import Settings

DOCUMENT = openapi_document(Settings())
CALLS = [(path, method.upper()) for path, methods in DOCUMENT["paths"].items() for method in methods]
GUARDED = [each for each in CALLS if each[0] not in OPEN]
ABOUT_ONE = [(path, method) for path, method in GUARDED if "{" in path and method != "PUT"]
PUTS = [(path, method) for path, method in GUARDED if method == "PUT"]
LISTS = [
    (path, method)
    for path, method in GUARDED
    if "{" not in path and role_for(method, path) == "read" and path != "/v1/key"
]
ASKING = {"/v1/plans", "/v1/frontiers", "/v1/batches", "/v1/evaluations"}
"""The calls that take something new; tests below say what each must not tell of others."""

MISSING = "6b9b7a5e-0c3f-4f57-9d5f-0f1e2d3c4b5a"


DOCUMENTS = {"/v1/profiles/{name}": chain()["model"], "/v1/clusters/{name}": chain()["cluster"]}


class World:
    """An application in which Alice has one of everything, and Bob nothing."""

    def __init__(self, app):
        self.app = app
        self.alice, self.bob = headers_with(app, "alice"), headers_with(app, "bob")
        self.looks = headers_with(app, "looks", "read", "alice")
        key_store(app).limit("alice", requests_per_minute=1_000_000)  # she looks at all she has again and again
        self.names = {thing: self.new(thing) for thing in ("/v1/plans/{job}", "/v1/frontiers/{job}")}
        for thing in ("/v1/batches/{batch}", *DOCUMENTS):
            self.names[thing] = self.new(thing)

    def new(self, thing):
        """Let Alice have one more of a kind of thing."""
        if thing in DOCUMENTS:
            name = f"alices-{len(self.names)}"
            assert self.send("PUT", self.path(thing, name), self.alice, DOCUMENTS[thing]).status_code in (200, 201)
            return name
        response = self.send("POST", thing.split("/{")[0], self.alice, {"problems": [{"number": 1}, {"number": 2}]})
        assert response.status_code == 202, response.text
        return response.json()["id"]

    def send(self, method, path, headers, body=None):
        return call(self.app, method, path, None if body is None else as_bytes(body), headers)

    def thing(self, path):
        """Give what a path is about; a new kind of thing needs a name above."""
        return next(thing for thing in (*self.names, *DOCUMENTS) if path.startswith(thing))

    def path(self, path, name):
        """Give the path of a thing."""
        whole = path.replace(self.thing(path), f"{self.thing(path).split('{')[0]}{name}")
        whole = whole.replace("{format}", "torchtitan").replace("/charts/{name}", "/charts/memory")
        assert "{" not in whole
        return whole

    def state(self):
        """Give all that Alice sees of what she has, but for what time alone changes."""
        paths = [self.path(thing, name) for thing, name in self.names.items()] + [path for path, _ in LISTS]
        return [self.send("GET", path, self.alice).json() | {"forecast": None} for path in paths]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    app = create_app(Settings(data=tmp_path_factory.mktemp("data")))
    app.state.jobs.open()
    yield World(app)
    app.state.jobs.close()


@pytest.mark.parametrize(("path", "method"), CALLS)
def test_every_call_needs_a_key_with_its_role(world, path, method):
    """Tests that nothing but health and pages is there without a key, and nothing changes by one that may only look."""
    response = world.send(method, path, {"Content-Type": "application/json"}, {})
    if path in OPEN:
        assert response.status_code in (200, 503)
        return
    document_in(response, 401, "no-key")
    described = DOCUMENT["paths"][path][method.lower()]["responses"]
    assert "401" in described
    if role_for(method, path) != "read":
        before = world.state()
        document_in(world.send(method, path, world.looks, {}), 403, "role-too-low")
        assert "403" in described
        assert world.state() == before


@pytest.mark.parametrize(("path", "method"), ABOUT_ONE)
def test_nobody_reaches_what_another_one_has(world, path, method):
    """Tests that what belongs to another key is to a caller as what is not there, and stays as it is."""
    thing, before = world.thing(path), world.state()
    theirs = world.send(method, world.path(path, world.names[thing]), world.bob)
    nothing = world.send(method, world.path(path, MISSING), world.bob)
    unlike = {"instance": "", "request_id": ""}
    assert (theirs.status_code, theirs.json() | unlike) == (404, nothing.json() | unlike)
    assert set(theirs.headers) == set(nothing.headers)
    assert world.state() == before
    mine = world.new(thing)
    if thing not in DOCUMENTS:  # a stream of what has not ended would go on
        world.send("DELETE", world.path(thing, mine), world.alice)
    of_plans = path.endswith(("/export/{format}", "/charts/{name}", "/report"))
    expected = (409,) if of_plans else (200, 202, 204)  # what was cancelled has no plan
    assert world.send(method, world.path(path, mine), world.alice).status_code in expected
    world.names[thing] = world.new(thing)


@pytest.mark.parametrize(("path", "method"), PUTS)
def test_a_name_is_each_callers_own(world, path, method):
    """Tests that storing under a name that another one has is storing something new, which the other does not see."""
    before = world.state()
    dave = headers_with(world.app, f"dave.{path[4:11]}") | {"If-None-Match": "*"}
    response = world.send(method, world.path(path, world.names[path]), dave, DOCUMENTS[path])
    assert response.status_code == 201
    assert world.state() == before
    member = "model" if "profiles" in path else "cluster"
    problem = {**chain(), member: {"ref": world.names[path]}}
    mine = world.send("POST", "/v1/plans", world.alice, problem)
    theirs = world.send("POST", "/v1/plans", world.bob, problem)
    assert (mine.status_code, theirs.status_code) == (202, 422)
    assert theirs.json()["errors"][0]["code"] == "unknown_reference"


@pytest.mark.parametrize(("path", "method"), LISTS)
def test_lists_hold_the_callers_own(world, path, method):
    """Tests that a list does not tell of what others have."""
    newcomer = headers_with(world.app, f"newcomer{path.replace('/', '.')}")
    mine = world.send(method, path, world.alice)
    theirs = world.send(method, path, newcomer)
    assert theirs.status_code == 200
    assert any(name in mine.text for name in world.names.values())
    assert [value for value in theirs.json().values() if value] == []


def test_no_call_that_takes_something_is_forgotten():
    """Tests that the calls that take something new are those for which tests below say what they must not tell."""
    assert {path for path, method in GUARDED if "{" not in path and method != "GET"} == ASKING


@pytest.mark.parametrize("path", ["/v1/plans", "/v1/frontiers", "/v1/batches"])
def test_an_idempotency_key_is_each_callers_own(world, path):
    """Tests that the same key of another caller is neither the same job nor a conflict."""
    body, other, key = {"problems": [{"number": 3}]}, {"problems": [{"number": 4}]}, {"Idempotency-Key": path}
    first = world.send("POST", path, world.alice | key, body).json()["id"]
    assert world.send("POST", path, world.alice | key, other).status_code == 409
    second = world.send("POST", path, world.bob | key, other)
    assert second.status_code == 202
    assert second.json()["id"] != first


@pytest.mark.parametrize("path", ["/v1/plans", "/v1/frontiers"])
def test_answers_are_each_callers_own(make_app, path):
    """Tests that an equal problem of another caller is solved anew, so that no Age and no haste tells of the first."""
    app = make_app()
    alice, bob = headers_with(app, "alice"), headers_with(app, "bob")
    metrics = ["iteration_time_s", "peak_memory_bytes"]
    body = as_bytes(chain() if path == "/v1/plans" else {"problem": chain(), "metrics": metrics})
    patient = {"Prefer": "wait=30"}
    first, second = (call(app, "POST", path, body, alice | patient) for _ in range(2))
    assert "age" not in first.headers and "age" in second.headers
    other = call(app, "POST", path, body, bob | patient)
    assert other.status_code == 200
    assert "age" not in other.headers
    assert other.json()["solver"] != first.json()["solver"]  # the effort of a solve of its own
    assert other.headers["location"] != first.headers["location"]


def test_a_key_is_told_of_itself_alone(make_app):
    """Tests that a caller learns the name and the role of the key that it shows; without keys it may do all."""
    app = make_app()
    assert call(app, "GET", "/v1/key").json() == {"name": None, "role": "admin"}
    headers = [headers_with(app, "alice"), headers_with(app, "looks", "read", "alice")]
    told = [call(app, "GET", "/v1/key", headers=each).json() for each in headers]
    assert told == [{"name": "alice", "role": "solve"}, {"name": "looks", "role": "read"}]


def test_evaluations_leave_nothing_behind(make_app):
    """Tests that an evaluation is no job that another caller could see."""
    app = make_app(solve_doubles.nap)
    alice, bob = headers_with(app, "alice"), headers_with(app, "bob")
    for headers in (alice, bob):
        response = call(app, "POST", "/v1/evaluations", b'{"nap_s": 0}', headers)
        assert response.json() == {"napped": True}
        assert "age" not in response.headers


def test_the_queue_tells_of_the_callers_own_jobs(world):
    """Tests that place in the queue, forecast and results tell nothing of the jobs of others."""
    carol = headers_with(world.app, "carol")
    mine = world.send("POST", "/v1/plans", carol, {}).json()
    assert mine["ahead"] == 0
    batch = world.send("POST", "/v1/batches", carol, {"problems": [{"number": 5}]}).json()
    assert batch["forecast"]["backlog"] == 2
    assert batch["forecast"]["arrival_per_s"] <= 1.0
    assert world.send("DELETE", f"/v1/plans/{mine['id']}", carol).status_code == 200
    assert world.send("GET", f"/v1/batches/{batch['id']}", carol).json()["forecast"]["backlog"] == 1


def test_a_full_queue_does_not_tell_how_many_wait(make_app):
    """Tests that the refusal by a full queue is the same whatever others have there."""
    app = make_app(max_queued=3)
    alice, bob = headers_with(app, "alice"), headers_with(app, "bob")
    many = as_bytes({"problems": [{"number": number} for number in range(4)]})
    empty = call(app, "POST", "/v1/batches", many, bob)
    call(app, "POST", "/v1/plans", b"{}", alice)
    fuller = call(app, "POST", "/v1/batches", many, bob)
    assert empty.json()["detail"] == fuller.json()["detail"]
    document_in(fuller, 429, "queue-full")
