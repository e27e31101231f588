"""The store without workers: what is recorded once, what is kept, what is cleared and mended."""

import time
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from partita.service.jobs import store as store_module
from partita.service.jobs.batches import AskedBatch, submit
from partita.service.jobs.database import address, connect, upgrade
from partita.service.jobs.keeper import Keeper, hand_over
from partita.service.jobs.leases import Lease, alive
from partita.service.jobs.queue import Queue
from partita.service.jobs.records import LOCAL, Asked, Ending, Stored
from partita.service.jobs.store import MOST_ATTEMPTS, Claim, Store
from partita.service.jobs.tables import answers, batches, jobs, workers
from partita.service.jobs.upkeep import clear, mend, note, orders
from partita.service.refusals import abandoned
from partita.service.solving.variants import Split, Variant

DONE = Ending("succeeded", "sha256:a", Stored("optimal", b"{}", b"{}", 1.0))


@pytest.fixture
def store(tmp_path):
    engine = connect(address(None, tmp_path))
    upgrade(engine)
    queue = Queue(engine)
    queue.upgrade()
    yield Store(engine, queue, max_queued=100)
    queue.close()
    engine.dispose()


def asked(body=b"{}", owner=LOCAL, **more):
    return Asked(owner, "plan", body, **more)


def rows(store, table):
    with store.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def age(store, job):
    """Let a job have been taken long ago."""
    with store.engine.begin() as connection:
        connection.execute(jobs.update().where(jobs.c.id == job).values(created_at=1.0))


def test_a_job_ends_once(store):
    """Tests that of two ends the first counts, and that a cancelled job stays cancelled."""
    job, _ = store.submit(asked())
    claim = store.begin(job.id, "a")
    assert store.begin(job.id, "b") is None
    assert store.finish(claim, DONE)
    assert not store.finish(claim, Ending("failed", failure=b"{}"))
    assert store.find(job.id, LOCAL).state == "succeeded"
    other, _ = store.submit(asked(b"[]"))
    claim = store.begin(other.id, "a")
    assert store.cancel(other.id, LOCAL).state == "cancelled"
    assert not store.finish(claim, DONE)
    assert store.cancel(job.id, LOCAL).state == "succeeded"


def test_answers_of_another_version_are_not_given(store, monkeypatch):
    """Tests that an answer counts for the version that found it, while a repeated request stays the same."""
    job, _ = store.submit(asked(idempotency_key="key"))
    store.finish(store.begin(job.id, "a"), DONE)
    assert store.known(asked()) is not None
    monkeypatch.setattr(store_module, "__version__", "99")
    assert store.known(asked()) is None
    assert store.under_key(asked(idempotency_key="key")).id == job.id


def test_who_lost_a_job_records_nothing(store):
    """Tests that a worker whose job was given to another one has no say any more, even if it has it again."""
    job, _ = store.submit(asked())
    first = store.begin(job.id, "a")
    store.release("a")
    second = store.begin(job.id, "a")
    assert (first.attempt, second.attempt) == (1, 2)
    assert not store.finish(first, DONE)
    note(store, {first: {"phase": "late"}, second: {"phase": "right"}})
    assert store.find(job.id, LOCAL).phase == "right"
    assert orders(store, [first, second]) == {second: False}
    store.ask_stop(job.id, LOCAL)
    assert orders(store, [second]) == {second: True}


def test_an_owner_sees_its_own_only(store):
    """Tests that no call of the store gives, ends or tells of the jobs and answers of others."""
    job, _ = store.submit(asked(idempotency_key="key"))
    store.finish(store.begin(job.id, "a"), DONE)
    assert store.known(asked()) is not None
    other = asked(owner="other", idempotency_key="key")
    assert store.known(other) is None
    assert store.under_key(other) is None
    assert store.find(job.id, "other") is None
    assert store.listed("other", "plan", None, 10, None) == []
    running, _ = store.submit(asked(b"[]"))
    assert store.cancel(running.id, "other") is None
    assert store.ask_stop(running.id, "other") is None
    assert store.find(running.id, LOCAL) == running


def test_a_job_that_ends_its_workers_is_given_up(store):
    """Tests that a job, and its equals in a batch, fail after many workers were gone over it."""
    split = Split(None, (Variant(None, b"{}"), Variant(None, b"{}")))
    batch = submit(store, AskedBatch(LOCAL, split, "x"))
    with store.engine.connect() as connection:
        leader = connection.execute(sa.select(jobs.c.id).where(jobs.c.leader.is_(None))).scalar_one()
    for _ in range(MOST_ATTEMPTS):
        assert store.begin(leader, "a") is not None
        store.give_up(leader, b"{}")
        store.release("a")
    assert store.begin(leader, "a") is None
    store.give_up(leader, abandoned().document())
    with store.engine.connect() as connection:
        states = connection.execute(sa.select(jobs.c.state).where(jobs.c.batch == batch)).scalars().all()
    assert states == ["failed", "failed"]


def test_equals_of_a_cancelled_job_go_on(store):
    """Tests that the end of one job by hand is not the end of those that wait for the same."""
    split = Split(None, tuple(Variant(None, b"{}") for _ in range(3)))
    submit(store, AskedBatch(LOCAL, split, "x"))
    with store.engine.connect() as connection:
        leader = connection.execute(sa.select(jobs.c.id).where(jobs.c.leader.is_(None))).scalar_one()
    store.cancel(leader, LOCAL)
    with store.engine.connect() as connection:
        left = connection.execute(sa.select(jobs.c.id).where(jobs.c.state == "queued", jobs.c.leader.is_(None)))
        waiting = list(left.scalars())
    assert len(waiting) == 2
    assert store.queue.lost(waiting) == []


def test_what_the_queue_lost_is_put_back(store):
    """Tests that a job that waits but is not in the queue, for whatever reason, gets there again."""
    job, _ = store.submit(asked())
    store.queue.drop([job.id])
    assert store.queue.lost([job.id]) == [job.id]
    mend(store, time.time() - 60)
    assert store.queue.lost([job.id]) == [job.id]  # too young to be missed
    age(store, job.id)
    mend(store, time.time() - 60)
    assert store.queue.lost([job.id]) == []


def test_direct_jobs_reach_the_queue(store):
    """Tests that what was solved past the queue waits in it when its process is gone."""
    job, _ = store.submit(asked(), executor="a")
    assert store.queue.lost([job.id]) == [job.id]
    hand_over(store, "a")
    assert store.find(job.id, LOCAL).state == "queued"
    assert store.queue.lost([job.id]) == []


def test_what_is_old_is_cleared(store):
    """Tests that ended jobs, their answers and their batches go when they are old, and nothing else does."""
    old, _ = store.submit(asked())
    store.finish(store.begin(old.id, "a"), DONE)
    submit(store, AskedBatch(LOCAL, Split(b"{}", (Variant("x", b"{}"),)), "x"))
    clear(store, time.time() - 60)
    assert (rows(store, jobs), rows(store, answers), rows(store, batches)) == (2, 1, 1)
    clear(store, time.time() + 60)
    assert (rows(store, jobs), rows(store, answers), rows(store, batches)) == (1, 0, 1)
    assert store.queue.lost([old.id]) == [old.id]


def test_slots_of_processes_that_have_ended_are_free(store):
    """Tests that a slot is held by one process, is taken again after it, and that the living are counted."""
    first, second = (Lease(store.engine, 1, 60.0) for _ in range(2))
    slot = first.acquire()
    assert second.acquire() != slot
    assert first.beat() and second.beat()
    assert alive(store.engine, 60.0) == 2
    assert first.gone() == []
    with store.engine.begin() as connection:
        connection.execute(workers.update().where(workers.c.slot == slot).values(process="1 1"))
    (dead,) = second.gone()
    assert dead.slot == slot
    third = Lease(store.engine, 1, 60.0)
    assert third.acquire() == slot
    assert not first.beat()


def test_one_worker_buries_another_one(store):
    """Tests that a worker without a sign of life is taken over by one other, and can come back afterwards."""
    sleeper, watcher, rival = (Lease(store.engine, 1, 0.0) for _ in range(3))
    for lease in (sleeper, watcher, rival):
        lease.acquire()
    watcher.gone()
    time.sleep(0.01)
    dead = next(seen for seen in watcher.gone() if seen.slot == sleeper.slot)
    assert watcher.bury(dead)
    assert not rival.bury(dead)
    assert not sleeper.beat()
    sleeper.renew()
    assert not sleeper.beat()  # its jobs are being given away
    watcher.remove(sleeper.slot)
    sleeper.renew()
    assert sleeper.beat()


def test_what_nobody_works_on_is_let_go():
    """Tests that a worker gives back what the queue gave it and it does not work on, but not what it just got."""
    given = []
    queue = SimpleNamespace(taken=lambda slot: ["a", "b"], give_back=given.append)
    runner = SimpleNamespace(slot="slot", taken={"b"})
    keeper = Keeper(SimpleNamespace(queue=queue), runner, None, 1.0, 1.0)
    keeper._let_go()
    keeper._let_go()
    assert given == [set(), {"a"}]


def test_claims_of_direct_jobs(store):
    """Tests that the process that took a job at once may end it."""
    job, new = store.submit(asked(), executor="a")
    assert new
    assert store.finish(Claim(job.id, LOCAL, job.attempt), DONE)
