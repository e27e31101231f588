"""API keys: made, rotated and revoked while servers run, never stored, and asked for as soon as there is one."""

import json
import re
import time

import pytest
import sqlalchemy as sa
from api_calls import call, document_in
from cli_calls import partita
from key_calls import headers_with, key_store
from processes import running

from partita.service.access.keys import ROLES, Secret, fits, parts_of
from partita.service.api import batches, documents, job_calls
from partita.service.api.guard import role_for
from partita.service.jobs.database import connect
from partita.service.jobs.tables import documents as documents_table

KEY = r"partita_[0-9a-f]{16}_[A-Za-z0-9_-]{43}"


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def keys(tmp_path):
    """Call ``partita keys`` on a database of its own."""
    return lambda *arguments: partita("keys", *arguments, "--data", str(tmp_path / "0"))


def test_a_key_is_shown_once_and_never_stored(keys, tmp_path):
    """Tests that a key is printed alone, and that the database holds only the hash of its secret."""
    made = keys("create", "alice")
    assert made.exit_code == 0
    text = made.out.strip()
    assert re.fullmatch(KEY, text)
    secret = parts_of(text)[1]
    held = b"".join(path.read_bytes() for path in (tmp_path / "0").iterdir())
    assert secret.encode() not in held
    assert "alice" in keys("list").out and secret not in keys("list").out
    assert secret not in repr(Secret(secret=secret))


def test_secrets_are_compared_whole():
    """Tests that only the whole secret fits, and that nothing fits where none is stored."""
    secret = Secret()
    assert fits(secret.secret, secret.hash)
    for wrong in (secret.secret[:-1], secret.secret + "a", "", secret.hash):
        assert not fits(wrong, secret.hash)
    assert not fits("", None)  # not even what the stand-in was made of


def test_keys_are_asked_for_from_the_first_on(make_app, keys):
    """Tests that a running server asks for keys as soon as one is made, and goes on doing so when all are revoked."""
    app = make_app()
    assert call(app, "GET", "/v1/plans", headers={}).status_code == 200
    text = keys("create", "alice", "--role", "read").out.strip()
    refused = call(app, "GET", "/v1/plans", headers={})
    document_in(refused, 401, "no-key")
    assert refused.headers["www-authenticate"] == 'Bearer realm="partita"'
    assert call(app, "GET", "/v1/plans", headers=bearer(text)).status_code == 200
    assert call(app, "GET", "/v1/plans", headers={"Authorization": f"bEARER  {text}"}).status_code == 200
    assert keys("revoke", "alice").exit_code == 0
    for headers in ({}, bearer(text)):
        document_in(call(app, "GET", "/v1/plans", headers=headers), 401, "no-key")


@pytest.mark.parametrize("text", ["", "x", "partita", "partita__", "partita_0000000000000000_", "partita_é_é", "\xff"])
def test_what_is_no_key(make_app, text):
    """Tests that anything but a key is refused in the same way as a wrong one."""
    app = make_app()
    good = key_store(app).create("alice", "solve").text
    for wrong in (text.encode("latin-1"), f"{good}x".encode(), good[:-1].encode(), good.upper().encode()):
        document_in(call(app, "GET", "/v1/plans", headers={"Authorization": b"Bearer " + wrong}), 401, "no-key")
    for scheme in (b"Basic ", b""):
        headers = {"Authorization": scheme + good.encode()}
        document_in(call(app, "GET", "/v1/plans", headers=headers), 401, "no-key")


def test_rotation_lets_both_work_for_a_while(make_app, keys):
    """Tests that the replaced key works until its time is over, also when it is replaced once more."""
    app = make_app()
    first = keys("create", "alice").out.strip()
    second = keys("rotate", "alice", "--grace", "1").out.strip()
    assert first != second
    for text in (first, second):
        assert call(app, "GET", "/v1/plans", headers=bearer(text)).status_code == 200
    assert "replaced ones work until" in keys("list").out
    third = keys("rotate", "alice", "--grace", "0").out.strip()
    time.sleep(0.01)
    assert [call(app, "GET", "/v1/plans", headers=bearer(text)).status_code for text in (first, second, third)] == [
        401,
        401,
        200,
    ]
    assert "replaced ones" not in keys("list").out


def test_a_new_key_of_an_old_name_sees_nothing_of_the_old(make_app, keys):
    """Tests that revoking a key cancels its jobs, and that its name leads to them no more."""
    app = make_app()
    headers = headers_with(app, "alice")
    job = call(app, "POST", "/v1/plans", b"{}", headers).json()["id"]
    assert "its jobs are cancelled" in keys("revoke", "alice").err
    assert states(app) == {job: "cancelled"}
    again = headers_with(app, "alice")
    assert call(app, "GET", "/v1/plans", headers=again).json()["jobs"] == []
    assert call(app, "GET", f"/v1/plans/{job}", headers=again).status_code == 404


def test_keys_may_share_jobs(make_app, keys):
    """Tests that a key that may only look sees the jobs of the key that it shares with, which outlive it."""
    app = make_app()
    headers = headers_with(app, "alice")
    job = call(app, "POST", "/v1/plans", b"{}", headers).json()["id"]
    looks = bearer(keys("create", "wall", "--role", "read", "--share-with", "alice").out.strip())
    assert call(app, "GET", f"/v1/plans/{job}", headers=looks).json()["state"] == "queued"
    document_in(call(app, "DELETE", f"/v1/plans/{job}", headers=looks), 403, "role-too-low")
    assert "shares jobs with alice" in keys("list").out
    assert "cancelled" not in keys("revoke", "wall").err
    assert states(app) == {job: "queued"}


def test_streams_end_with_their_key(make_app, monkeypatch):
    """Tests that an open stream of a job that goes on tells nothing more once its key is revoked."""
    app = make_app()
    job = call(app, "POST", "/v1/plans", b"{}", headers_with(app, "alice")).json()["id"]
    looks = headers_with(app, "wall", "read", "alice")
    events, told = job_calls.event, []

    def event(*given):
        told.append(given)
        if len(told) == 3:
            key_store(app).revoke("wall")
        if len(told) == 20:
            app.state.jobs.begin_to_close()  # else a stream that goes on would do so for ever
        return events(*given)

    for name, value in (("event", event), ("LOOK_S", 0.0), ("BEAT_S", 0.0)):
        monkeypatch.setattr(job_calls, name, value)
    assert call(app, "GET", f"/v1/plans/{job}/events", headers=looks).text.count("event:") == 2


@pytest.mark.parametrize(
    ("module", "method", "path", "body"),
    [
        (job_calls, "POST", "/v1/plans", b"{}"),
        (batches, "POST", "/v1/batches", b'{"problems": [{}]}'),
        (documents, "PUT", "/v1/profiles/m", b'{"layers": [{"name": "a", "forward_s": 1}]}'),
    ],
)
def test_what_arrives_after_its_key_was_revoked_is_not_kept(make_app, monkeypatch, module, method, path, body):
    """Tests that a body that was on its way while the last key was revoked leaves neither a job nor a document."""
    app = make_app()
    headers = headers_with(app, "alice")
    read_body = module.read_body

    async def slowly(*given):
        key_store(app).revoke("alice")
        return await read_body(*given)

    monkeypatch.setattr(module, "read_body", slowly)
    document_in(call(app, method, path, body, headers), 401, "no-key")
    assert states(app) == {}
    with app.state.jobs.store.engine.connect() as connection:
        assert connection.execute(sa.select(documents_table)).all() == []


def states(app):
    """Give the states of all jobs in the store."""
    with app.state.jobs.store.engine.connect() as connection:
        return dict(connection.execute(sa.text("SELECT id, state FROM jobs")).all())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("create", "alice"), "there is a key alice already"),
        (("create", "a b"), "a key cannot be named 'a b'"),
        (("create", "-x\n"), "No such option"),
        (("create", "bob", "--role", "king"), "there is no role 'king'"),
        (("create", "bob", "--share-with", "carol"), "there is no key carol"),
        (("rotate", "bob"), "there is no key bob"),
        (("revoke", "bob"), "there is no key bob"),
    ],
)
def test_what_the_commands_refuse(keys, arguments, reason):
    """Tests that every command says what is wrong, with the exit code of bad input."""
    assert keys("create", "alice").exit_code == 0
    called = keys(*arguments)
    assert called.exit_code == 2
    assert reason in called.err


def test_roles_are_ordered():
    """Tests that each role may do what those before it may, and what calls need."""
    assert ROLES == ("read", "solve", "admin")
    needed = [role_for(*each) for each in (("GET", "/v1/x"), ("POST", "/v1/x"), ("FLY", "/v1/x"), ("GET", "/metrics"))]
    assert needed == ["read", "solve", "solve", "admin"]


def test_with_keys_others_may_reach_the_server(tmp_path, keys):
    """Tests that a server with keys listens to others, asks for one even when all are gone, and logs JSON if told."""
    text = keys("create", "alice").out.strip()
    folder = str(tmp_path / "0")
    arguments = ("serve", "--host", "0.0.0.0", "--port", "0", "--data", folder, "--log-json")
    with running("-m", "partita.service", *arguments) as (process, client):
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/plans").status_code == 401
        assert client.get("/v1/plans", headers=bearer(text)).status_code == 200
        engine = connect(sa.URL.create("sqlite", database=f"{folder}/partita.sqlite"))
        with engine.begin() as connection:
            for table in ("key_secrets", "api_keys"):
                connection.exec_driver_sql(f"DELETE FROM {table}")
        engine.dispose()
        assert client.delete("/v1/plans/x").status_code == 401
    lines = [json.loads(line) for line in process.log]
    (audit,) = [line for line in lines if line["logger"] == "partita.audit"]
    assert [audit[name] for name in ("key", "path", "status")] == ["nobody", "/v1/plans/x", 401]


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        *(("localhost", True), ("localhost:8000", True), ("127.0.0.1:80", True), ("[::1]:8000", True)),
        *(("evil.example", False), ("127.0.0.1.evil.example", False), ("localhost@evil.example", False)),
        *(("a]b[", False), ("[::1", False), ("", False)),
    ],
)
def test_a_server_without_keys_answers_its_own_machine_alone(make_app, host, answered):
    """Tests that a page of the web cannot reach the service by a name that it gives to this machine."""
    response = call(make_app(), "GET", "/v1/plans", headers={"Host": host})
    assert response.status_code == (200 if answered else 401)
    assert answered or "keys create" in response.json()["detail"]
