"""What a solve may do instead of solving; each runs in a process of its own, like the real work.

The body of the task is JSON; where it has a "pid_file", the number of the process is written there first.
"""

import contextlib
import ctypes
import json
import os
import signal
import time
from pathlib import Path

from partita.service.outcomes import Answered
from partita.service.work import perform


def _begin(task):
    body = json.loads(task.body)
    if "pid_file" in body:
        partial = Path(body["pid_file"] + ".partial")
        partial.write_text(str(os.getpid()))
        partial.rename(body["pid_file"])
    return body


def crash(task, settings, accepted):
    _begin(task)
    accepted(1.0)
    ctypes.string_at(0)


def leave(task, settings, accepted):
    _begin(task)
    os._exit(7)


def loop(task, settings, accepted):
    """Begin a search that never ends, deaf to everything that can be ignored."""
    body = _begin(task)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    accepted(body.get("time_limit_s", 60.0))
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def never_reads(task, settings, accepted):
    _begin(task)
    while True:
        time.sleep(0.01)


def hog(task, settings, accepted):
    _begin(task)
    accepted(60.0)
    kept = []
    while True:
        kept.append(bytes(64 * 2**20))


def error(task, settings, accepted):
    raise RuntimeError("a secret of the solver")


def nap(task, settings, accepted):
    body = _begin(task)
    accepted(60.0)
    time.sleep(body.get("nap_s", 0.3))
    return Answered(b'{"napped": true}')


def reports(task, settings, accepted):
    """Tell about the process itself."""
    facts = {
        "pid": os.getpid(),
        "ignores_interrupt": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        "address_space": __import__("resource").getrlimit(__import__("resource").RLIMIT_AS)[0],
    }
    return Answered(json.dumps(facts).encode())


def large(task, settings, accepted):
    return Answered(b"x" * len(task.body))


real = perform
