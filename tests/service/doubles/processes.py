"""Servers in processes of their own, and what tests want to know about processes."""

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

DOUBLES = Path(__file__).parent
ROOT = DOUBLES.parents[2]


@contextmanager
def running(*arguments, stop=True):
    """Run a server in a process of its own; give its process and a client of it."""
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    process.log = []
    reader = threading.Thread(target=process.log.extend, args=(process.stderr,), daemon=True)
    reader.start()
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, process.log
        with httpx.Client(base_url=found[0], timeout=60, trust_env=False) as client:
            yield process, client
    finally:
        process.kill() if process.poll() is None and not stop else process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()
            process.wait()
            reader.join(30)
            left = reader.is_alive()
            process.stdout.close()
            if not left:  # else this would wait too
                process.stderr.close()
    assert not left, "a process that the server began has outlived it"


@contextmanager
def doubled(double, **settings):
    """Run a server whose solves are doubles, with a store of its own where the settings name none."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = json.dumps({"data": folder, **settings})
        with running(str(DOUBLES / "double_server.py"), double, chosen) as found:
            yield found


@contextmanager
def doubled_worker(double, **settings):
    """Run a worker whose solves are doubles; give its process once it works."""
    command = [sys.executable, str(DOUBLES / "double_worker.py"), double, json.dumps(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert "works on jobs" in process.stdout.readline()
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            finally:
                process.kill()


SOON_S = 10.0
"""What is promised within a second or two, on a machine that is busy with other tests."""


def until(condition, seconds=120.0):
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("waited in vain")


def alive(pid):
    """Tell whether a process runs; one that has ended and was not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pid_in(path):
    """Wait for the number that a double leaves."""
    until(path.exists)
    return int(path.read_text())
