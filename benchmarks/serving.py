"""How soon the service ends a solve that it is asked to cancel, or to stop with the best plan so far.

Run as ``.venv/bin/python benchmarks/serving.py``; ``make bench`` has the table too. Takes about two minutes. Solves are
those of a server, or of a worker beside a server whose only place is taken. Time runs from the request until it is
answered and the process of the solve has ended, which the kernel says; requests come at random moments of the search.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx

TESTS = Path(__file__).parents[1] / "tests"
sys.path.append(str(TESTS))
sys.path.append(str(TESTS / "service" / "doubles"))

from processes import alive, doubled, doubled_worker, pid_in, until  # noqa: E402

from hard_problem import hard_problem  # noqa: E402

AT_ONCE = {"Content-Type": "application/json", "Prefer": "respond-async"}
SOLVES: dict[str, tuple[str, dict[str, Any]]] = {
    "a loop in native code": ("spin", {}),
    "a search": ("noted", {"problem": hard_problem()}),
}
"""What is solved: the double that does so, and the body of the request."""

CASES = (("cancel", "a loop in native code"), ("cancel", "a search"), ("stop", "a search"))
GOALS = {"cancel": "1 s", "stop": "the best plan is kept"}
PLACES = ("the server", "a worker")
PAUSE_S = 0.5
"""The longest time between the first plan of a search and the request."""


@contextmanager
def solving(double: str, place: str) -> Iterator[httpx.Client]:
    """Run a server, and with it a worker where that is to solve all jobs; give a client of the server."""
    with tempfile.TemporaryDirectory() as folder:
        store = {"data": folder, "solves": 1}
        if place == "the server":
            with doubled(double, **store) as (_, client):
                yield client
            return
        with doubled("loop", **store) as (_, client):
            job = client.post("/v1/plans", json={"time_limit_s": 3600}, headers=AT_ONCE).headers["location"]
            until(lambda: client.get(job).json()["state"] == "running")
            with doubled_worker(double, **store):
                yield client
            client.delete(job)


def seconds_to_end(client: httpx.Client, verb: str, body: dict[str, Any], pause_s: float) -> float:
    """Have something solved and ended after a while; give how long its end took, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "pid"
        response = client.post("/v1/plans", content=json.dumps({**body, "pid_file": str(noted)}), headers=AT_ONCE)
        job, pid = response.headers["location"], pid_in(noted)
        until(lambda: (client.get(job).json()["progress"] or {}).get("incumbent") if body else True)
        time.sleep(pause_s)
        begin = time.monotonic()
        client.delete(job) if verb == "cancel" else client.post(f"{job}/stop")
        while alive(pid):
            time.sleep(0.001)
        taken = time.monotonic() - begin
    document = until(lambda: (found := client.get(job).json())["state"] != "running" and found)
    if verb == "cancel":
        assert document["state"] == "cancelled", document
    else:
        assert document["answer"]["candidates"], document
    return taken


def endings(repeats: int) -> list[str]:
    """Give the table of what was cancelled and stopped."""
    rows = [f"| request | what runs | where | goal | median | worst of {repeats} |", "|---|---|---|---|---|---|"]
    for verb, what in CASES:
        double, body = SOLVES[what]
        for place in PLACES:
            random = Random(0)
            with solving(double, place) as client:
                taken = [seconds_to_end(client, verb, body, random.uniform(0, PAUSE_S)) for _ in range(repeats)]
            figures = f"{statistics.median(taken):.2f} s | {max(taken):.2f} s"
            rows.append(f"| {verb} | {what} | {place} | {GOALS[verb]} | {figures} |")
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20, help="requests of every kind")
    before = os.getloadavg()[0]
    endings(parser.parse_args().repeats)
    print(f"load before: {before:.2f}, after: {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
