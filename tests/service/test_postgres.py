"""The service with PostgreSQL, and workers in processes of their own."""

import json
import signal
import time

import pytest
import sqlalchemy as sa
from batch_calls import ask_batch, results
from cli_calls import partita
from postgres import postgres, programs
from processes import SOON_S, alive, doubled, doubled_worker, pid_in, until
from small_problems import as_bytes, chain
from survival import survive

from partita.service.jobs.database import address, connect, upgrade
from partita.service.jobs.tables import jobs

AT_ONCE = {"Content-Type": "application/json", "Prefer": "respond-async"}

pytestmark = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed (Debian: postgresql)")


@pytest.fixture(scope="module")
def server():
    with postgres() as found:
        yield found


@pytest.fixture
def database(server, request):
    """Give the address of a new database."""
    name = request.node.name[:60]
    engine = sa.create_engine(address(server.address, None), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return server.address.replace("/partita?", f"/{name}?")


def test_plans_and_batches(database):
    """Tests that the real service answers, remembers and solves batches with PostgreSQL as with SQLite."""
    with doubled("real", database=database, solves=2) as (_, client):
        first = client.post("/v1/plans", content=as_bytes(chain()), headers={**AT_ONCE, "Prefer": "wait=30"})
        assert first.json()["status"] == "optimal"
        assert "age" in client.post("/v1/plans", content=as_bytes(chain()), headers=AT_ONCE).headers
        variants = [{"patch": {"training": {"num_microbatches": number}}} for number in (5, 6, 0)]
        batch = ask_batch(client, {"base": chain(), "variants": variants}).json()["id"]
        found = results(client, batch)
        assert [found[index]["status"] for index in range(3)] == ["succeeded", "succeeded", "failed"]
        listed = client.get("/v1/plans").json()["jobs"]
        assert [job["id"] for job in listed] == [first.headers["location"].rsplit("/", 1)[1]]
        assert client.get("/readyz").status_code == 200


def test_jobs_of_a_killed_worker_are_taken_over(database, tmp_path):
    """Tests that what a worker was solving when it was killed, never to come back, is solved by another."""
    counts = tmp_path / "counts"
    counts.mkdir()
    problems = [{"nap_s": 0.3, "count_in": str(counts), "number": number} for number in range(24)]
    settings = {"solves": 2, "lease_s": 2.0}
    with doubled("count", database=database, **settings) as (_, client):
        with doubled_worker("count", database=database, **settings) as dead:
            batch = ask_batch(client, {"problems": problems}).json()["id"]
            until(lambda: str(dead.pid) in solving(database))
            dead.kill()
            dead.wait()
        found = results(client, batch)
        assert {result["status"] for result in found.values()} == {"succeeded"}
        begun = [len(list(counts.glob(f"{number}-*"))) for number in range(24)]
        assert min(begun) == 1
        assert sum(begun) <= 24 + 2


def test_a_worker_that_was_only_asleep(database, tmp_path):
    """Tests that the jobs of a worker that shows no life are taken over, and that it goes on with others later."""
    counts = tmp_path / "counts"
    counts.mkdir()

    def problems(first):
        return [{"nap_s": 0.5, "count_in": str(counts), "number": first + number} for number in range(6)]

    settings = {"solves": 2, "lease_s": 2.0}
    with doubled("count", database=database, **settings) as (_, client):
        with doubled_worker("count", database=database, **settings) as sleeper:
            batch = ask_batch(client, {"problems": problems(0)}).json()["id"]
            until(lambda: str(sleeper.pid) in solving(database))
            sleeper.send_signal(signal.SIGSTOP)
            try:
                found = results(client, batch)
            finally:
                sleeper.send_signal(signal.SIGCONT)
            assert {result["status"] for result in found.values()} == {"succeeded"}
            until(lambda: ask_batch(client, {"problems": problems(10)}) and str(sleeper.pid) in solving(database))
        for number in range(6):
            assert 1 <= len(list(counts.glob(f"{number}-*"))) <= 2


def test_a_database_that_is_away_for_a_while(server, database, tmp_path):
    """Tests that a batch goes on when its database has crashed and is back, and that nothing is lost."""
    counts = tmp_path / "counts"
    counts.mkdir()
    problems = [{"nap_s": 0.3, "count_in": str(counts), "number": number} for number in range(16)]
    with doubled("count", database=database, solves=2) as (process, client):
        batch = ask_batch(client, {"problems": problems}).json()["id"]
        until(lambda: client.get(f"/v1/batches/{batch}").json()["succeeded"] >= 2)
        server.restart()

        def done():
            response = client.get(f"/v1/batches/{batch}")
            return response.status_code == 200 and response.json()["succeeded"] == 16

        until(done)
        assert process.poll() is None


@pytest.mark.slow
def test_a_large_batch_survives_ten_kills(database, tmp_path):
    """Tests that a batch of 200 is done once each whatever moments the server is killed at."""
    found, begun = survive(tmp_path, {"database": database, "solves": 2}, jobs=200, kills=10, nap_s=0.05, seed=3)
    assert len(found) == 200
    assert min(begun) >= 1
    assert sum(begun) <= 200 + 10 * 2


def solving(database):
    """Give the process numbers of the workers that solve something now."""
    engine = sa.create_engine(address(database, None))
    with engine.connect() as connection:
        query = "SELECT process FROM workers WHERE slot IN (SELECT executor FROM jobs WHERE state = 'running')"
        found = [row[0].split()[0] for row in connection.exec_driver_sql(query)]
    engine.dispose()
    return found


def test_jobs_are_cancelled_and_stopped_from_elsewhere(database, tmp_path):
    """Tests that a server ends soon what a worker solves."""
    with (
        doubled("loop", database=database, solves=1) as (_, client),
        doubled_worker("loop", database=database, solves=1),
    ):
        for number in range(2):
            client.post("/v1/plans", content=json.dumps({"pid_file": str(tmp_path / str(number))}), headers=AT_ONCE)
        pids = [pid_in(tmp_path / str(number)) for number in range(2)]
        begin = time.monotonic()
        for job in client.get("/v1/plans").json()["jobs"]:
            client.delete(f"/v1/plans/{job['id']}")
        until(lambda: not any(map(alive, pids)))
        assert time.monotonic() - begin < SOON_S


def test_a_quota_holds_on_all_workers_together(database):
    """Tests that a server and a worker with four slots in all solve no more jobs of a key at once than may run."""
    key = partita("keys", "create", "alice", "--max-running", "2", "--database", database).out.strip()
    with (
        doubled("nap", database=database, solves=2) as (_, client),
        doubled_worker("nap", database=database, solves=2),
    ):
        client.headers["Authorization"] = f"Bearer {key}"
        batch = ask_batch(client, {"problems": [{"nap_s": 0.2, "number": number} for number in range(10)]}).json()["id"]
        found = results(client, batch)
        jobs = [client.get(f"/v1/plans/{found[number]['job']}").json() for number in range(10)]
    assert {job["state"] for job in jobs} == {"succeeded"}
    for job in jobs:
        together = [each for each in jobs if each["started_at"] <= job["started_at"] < each["finished_at"]]
        assert len(together) <= 2


def test_documents_are_stored_here_too(database):
    """Tests that a problem may name what is stored, and that what is no name is nothing."""
    with doubled("real", database=database, solves=1) as (_, client):
        for path, body in (("profiles/m", chain()["model"]), ("clusters/c", chain()["cluster"])):
            assert client.put(f"/v1/{path}", json=body).status_code == 201
            assert client.put(f"/v1/{path}", json=body, headers={"If-None-Match": "*"}).status_code == 412
        problem = {**chain(), "model": {"ref": "m"}, "cluster": {"ref": "c"}}
        found = client.post("/v1/plans", json=problem, headers={"Prefer": "wait=30"})
        assert found.json()["status"] == "optimal"
        assert client.delete("/v1/profiles/m").status_code == 204
        assert client.get("/v1/profiles/%00").status_code == 404


def test_migrations_fit(database):
    """Tests that the tables are those of the code here too."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = connect(address(database, None))
    upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "partita_version"})
        assert compare_metadata(context, jobs.metadata) == []
    engine.dispose()
