"""Quotas: what one key may have waiting, running and asking, and that it does not hold up others."""

import threading

import pytest
import solve_doubles
from api_calls import call, document_in
from batch_calls import ask_batch, results
from cli_calls import partita
from key_calls import headers_with, key_store
from processes import doubled
from small_problems import as_bytes

from partita.service.access.keys import Caller, Quotas
from partita.service.access.quotas import QuotaReached
from partita.service.access.rates import Rates
from partita.service.jobs import batches
from partita.service.jobs.batches import AskedBatch
from partita.service.jobs.records import Asked, Ending
from partita.service.jobs.upkeep import mend
from partita.service.solving.variants import Split, Variant

DONE = Ending("failed", failure=b"{}")


@pytest.fixture
def app(make_app):
    return make_app()


@pytest.fixture
def store(app):
    return app.state.jobs.store


def owner_with(app, name="alice", **most):
    """Make a key, and give its owner."""
    keys = key_store(app)
    return keys.caller(keys.create(name, "solve", None, Quotas(**most)).text).owner


def submit(store, owner, number=0, executor=None):
    return store.submit(Asked(owner, "plan", b"%d" % number), executor)[0]


def batch_of(store, owner, size):
    """Take a batch, and give its jobs in their order."""
    split = Split(None, tuple(Variant(None, b"%d" % (1000 + number)) for number in range(size)))
    batch = batches.submit(store, AskedBatch(owner, split, "x"))
    with store.engine.connect() as connection:
        query = "SELECT id FROM jobs WHERE batch = ? ORDER BY position"
        return list(connection.exec_driver_sql(query, (batch,)).scalars())


def in_queue(store, every):
    """Give which of some jobs are in the queue."""
    lost = set(store.queue.lost(every))
    return [job for job in every if job not in lost]


def finish(store, job):
    assert store.finish(store.begin(job, "slot"), DONE)


def test_no_more_jobs_are_in_the_queue_than_may_run(app, store):
    """Tests that a job waits for its turn until one before it has ended, whichever way, and that all get theirs."""
    alice = owner_with(app, max_running=2)
    every = [submit(store, alice, number).id for number in range(6)]
    assert in_queue(store, every) == every[:2]
    finish(store, every[0])
    assert in_queue(store, every[1:]) == every[1:3]
    store.cancel(every[1], alice)
    assert in_queue(store, every[2:]) == every[2:4]
    store.cancel(every[5], alice)  # it had no turn that another one could get
    assert in_queue(store, every[2:]) == every[2:4]
    finish(store, every[2])
    finish(store, every[3])
    assert in_queue(store, every[4:5]) == every[4:5]


def test_a_batch_of_thousands_is_not_before_others(app, store):
    """Tests that of a large batch only a few are in the queue when another one asks, and single jobs come before it."""
    alice, bob = owner_with(app, max_running=3), owner_with(app, "bob")
    batch = batch_of(store, alice, 300)
    assert in_queue(store, batch) == batch[:3]
    theirs = submit(store, bob).id
    assert in_queue(store, [theirs]) == [theirs]
    single = submit(store, alice, 1).id
    assert in_queue(store, [single]) == []
    finish(store, batch[0])
    assert in_queue(store, [single, *batch[1:]]) == [single, *batch[1:3]]


def test_what_begins_at_once_counts_too(app, store):
    """Tests that a job that would begin past the queue waits where as many run as may."""
    alice = owner_with(app, max_running=1)
    first, second = (submit(store, alice, number, executor="slot") for number in range(2))
    assert (first.state, second.state) == ("running", "queued")
    assert (second.attempt, second.started_at) == (0, None)
    assert in_queue(store, [second.id]) == []
    store.cancel(first.id, alice)
    assert in_queue(store, [second.id]) == [second.id]


def test_equals_of_a_cancelled_job_take_their_turn(app, store):
    """Tests that jobs of a batch that waited for a cancelled equal keep to the quota when they go on."""
    alice = owner_with(app, max_running=1)
    split = Split(None, tuple(Variant(None, b"%d" % (number // 2)) for number in range(6)))
    batches.submit(store, AskedBatch(alice, split, "x"))
    with store.engine.connect() as connection:
        query = "SELECT id FROM jobs ORDER BY position"
        every = list(connection.exec_driver_sql(query).scalars())
    assert in_queue(store, every) == every[:1]
    store.cancel(every[0], alice)
    assert in_queue(store, every[1:]) == every[1:2]


def test_raised_quotas_are_used(app, store, tmp_path):
    """Tests that jobs get their turn when the quota is raised, and that mending does not let in those that wait."""
    alice = owner_with(app, max_running=1)
    every = [submit(store, alice, number).id for number in range(4)]
    mend(store, float("inf"))
    assert in_queue(store, every) == every[:1]
    limited = partita("keys", "limit", "alice", "--max-running", "3", "--data", str(tmp_path / "0"))
    assert limited.out == "max_queued  10000\nmax_running  3\nrequests_per_minute  600\n"
    mend(store, float("inf"))
    assert in_queue(store, every) == every[:3]


def test_so_many_jobs_may_wait(app, store):
    """Tests that nothing of what would be too much is kept, and that others are not concerned."""
    alice, bob = owner_with(app, max_queued=3, max_running=1), owner_with(app, "bob")
    batch_of(store, alice, 2)
    with pytest.raises(QuotaReached, match="max_queued is 3"):
        batch_of(store, alice, 2)
    submit(store, alice)
    with pytest.raises(QuotaReached, match="max_queued is 3"):
        submit(store, alice, 1)
    assert len(batch_of(store, bob, 4)) == 4


def test_requests_per_minute():
    """Tests that as many requests as the quota are taken at once, then one whenever its time has come."""
    now = [0.0]
    rates = Rates(lambda: now[0])
    alice, bob = (Caller(name, "read", name, Quotas(requests_per_minute=3)) for name in ("alice", "bob"))
    assert [rates.wait_s(alice) for _ in range(4)] == [0, 0, 0, 20]
    assert rates.wait_s(bob) == 0
    now[0] = 19.5
    assert rates.wait_s(alice) == 1
    now[0] = 20.0
    assert [rates.wait_s(alice) for _ in range(2)] == [0, 20]
    now[0] = 10_000.0
    assert [rates.wait_s(alice) for _ in range(4)] == [0, 0, 0, 20]
    assert rates.wait_s(Caller("local", "admin", None)) == 0


def test_the_refusals_name_the_quota(make_app):
    """Tests that every quota over HTTP is 429 with when to come back, its name and its value."""
    app = make_app(solve_doubles.nap)
    app.state.rates = Rates(clock=lambda: 0.0)  # no request comes back, however slow the machine is
    alice = headers_with(app, "alice")
    key_store(app).limit("alice", max_queued=1, max_running=1, requests_per_minute=5)
    assert call(app, "POST", "/v1/plans", b"1", alice).status_code == 202
    refusals = [call(app, "POST", "/v1/plans", b"2", alice)]
    refusals.append(call(app, "POST", "/v1/batches", as_bytes({"problems": [1, 2]}), alice))
    slow = threading.Thread(target=call, args=(app, "POST", "/v1/evaluations", b'{"nap_s": 3}', alice))
    slow.start()
    while not app.state.rates._evaluating:
        assert slow.is_alive()
    refusals.append(call(app, "POST", "/v1/evaluations", b'{"nap_s": 0}', alice))
    slow.join()
    refusals.append(call(app, "GET", "/v1/plans", headers=alice))
    names = ("max_queued is 1", "max_queued is 1", "max_running is 1", "requests_per_minute is 5")
    for response, name in zip(refusals, names, strict=True):
        assert name in document_in(response, 429, "quota-reached").detail
        assert int(response.headers["retry-after"]) >= 1
    assert call(app, "POST", "/v1/plans", b"3", headers_with(app, "bob")).status_code == 202


def test_what_the_role_forbids_is_counted(make_app):
    """Tests that a key cannot ask without end for what it may not do."""
    app = make_app()
    alice = headers_with(app, "alice", "read")
    key_store(app).limit("alice", requests_per_minute=1)
    document_in(call(app, "POST", "/v1/plans", b"1", alice), 403, "role-too-low")
    document_in(call(app, "POST", "/v1/plans", b"1", alice), 429, "quota-reached")


def test_quotas_of_shared_jobs_are_shared(tmp_path):
    """Tests that a key that shares the jobs of another cannot bring quotas of its own."""
    data = ("--data", str(tmp_path))
    partita("keys", "create", "alice", *data)
    called = partita("keys", "create", "wall", "--share-with", "alice", "--max-running", "99", *data)
    assert called.exit_code == 2
    assert "partita keys limit alice" in called.err
    assert partita("keys", "create", "wall", "--share-with", "alice", *data).exit_code == 0
    partita("keys", "limit", "wall", "--max-running", "5", *data)
    assert "max_running  5" in partita("keys", "limit", "alice", *data).out


def test_the_quota_holds_while_jobs_run(tmp_path):
    """Tests that a server with four slots solves no more jobs of a key at once than may run, and all of them."""
    key = partita("keys", "create", "alice", "--max-running", "2", "--data", str(tmp_path)).out.strip()
    with doubled("nap", solves=4, data=str(tmp_path)) as (_, client):
        client.headers["Authorization"] = f"Bearer {key}"
        batch = ask_batch(client, {"problems": [{"nap_s": 0.2, "number": number} for number in range(8)]}).json()["id"]
        found = results(client, batch)
        jobs = [client.get(f"/v1/plans/{found[number]['job']}").json() for number in range(8)]
    assert {job["state"] for job in jobs} == {"succeeded"}
    for job in jobs:
        together = [each for each in jobs if each["started_at"] <= job["started_at"] < each["finished_at"]]
        assert len(together) <= 2
