"""A server that is killed again and again while it solves a batch."""

import random
import time

from batch_calls import ask_batch, results
from processes import doubled, until


def killed(process):
    """End a server as by a loss of power."""
    process.kill()
    process.wait()


def survive(counts, store, jobs, kills, nap_s, seed):
    """Kill a server at random moments; give the results, and how often each problem was begun.

    Parameters
    ----------
    counts
        An empty folder.
    store
        The settings of the servers, which name one store.
    jobs, nap_s
        How many problems the batch holds, and how long each takes.
    kills, seed
        How often the server is killed, and the seed of the moments.
    """
    rng = random.Random(seed)
    problems = [{"nap_s": nap_s, "count_in": str(counts), "number": number} for number in range(jobs)]
    with doubled("count", **store) as (process, client):
        batch = ask_batch(client, {"problems": problems}).json()["id"]
        until(lambda: client.get(f"/v1/batches/{batch}").json()["succeeded"] >= 1)
        killed(process)
    for _ in range(kills - 1):
        with doubled("count", **store) as (process, client):
            time.sleep(rng.uniform(0.0, 2.0))
            killed(process)
    with doubled("count", **store) as (_, client):
        found = results(client, batch)
        state = client.get(f"/v1/batches/{batch}").json()
        assert state["total"] == state["succeeded"] == jobs
    return found, [len(list(counts.glob(f"{number}-*"))) for number in range(jobs)]
