"""What a solve may do instead of solving; each runs in a process of its own, like the real work.

The body of the task is JSON; where it has a "pid_file", the number of the process is written there first.
"""

import contextlib
import ctypes
import itertools
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from partita.service.solving.outcomes import Answered
from partita.service.solving.talk import Accepted, Step
from partita.service.solving.work import perform


def _begin(task):
    body = json.loads(task.body)
    if "pid_file" in body:
        partial = Path(body["pid_file"] + ".partial")
        partial.write_text(str(os.getpid()))
        partial.rename(body["pid_file"])
    return body


def crash(task, settings, talk):
    _begin(task)
    talk.tell(Accepted(1.0, None))
    ctypes.string_at(0)


def leave(task, settings, talk):
    _begin(task)
    os._exit(7)


def loop(task, settings, talk):
    """Begin a search that never ends, deaf to everything that can be ignored."""
    body = _begin(task)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    talk.tell(Accepted(body.get("time_limit_s", 60.0), None))
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def spin(task, settings, talk):
    """Begin a search that never leaves native code again, and keeps all threads of its process from running."""
    _begin(task)
    talk.tell(Accepted(60.0, None))
    sum(itertools.repeat(0))


def never_reads(task, settings, talk):
    _begin(task)
    while True:
        time.sleep(0.01)


def hog(task, settings, talk):
    _begin(task)
    talk.tell(Accepted(60.0, None))
    kept = []
    while True:
        kept.append(bytes(64 * 2**20))


def error(task, settings, talk):
    raise RuntimeError("a secret of the solver")


def nap(task, settings, talk):
    body = _begin(task)
    talk.tell(Accepted(60.0, None))
    time.sleep(body.get("nap_s", 0.3))
    return Answered(b'{"napped": true}')


def paced(task, settings, talk):
    """Tell a few steps, go on to the time limit or until told to stop (but for a deaf model), and then really solve."""
    body = _begin(task)
    problem = body.get("problem", body)
    talk.tell(Accepted(60.0, None))
    for number in range(3):
        talk.tell(Step("pace", 10.0 - number, float(number), 0.5, None))
        time.sleep(0.12)
    deaf = problem["model"]["name"] == "deaf"
    time.sleep(60) if deaf else talk.stop.wait(problem["search"]["time_limit_s"])
    return perform(task, settings, talk)


def reports(task, settings, talk):
    """Tell about the process itself."""
    facts = {
        "pid": os.getpid(),
        "ignores_interrupt": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        "address_space": __import__("resource").getrlimit(__import__("resource").RLIMIT_AS)[0],
    }
    return Answered(json.dumps(facts).encode())


def large(task, settings, talk):
    return Answered(b"x" * len(task.body))


real = perform


def noted(task, settings, talk):
    """Really solve the problem in the body."""
    return perform(replace(task, body=json.dumps(_begin(task)["problem"]).encode()), settings, talk)


def count(task, settings, talk):
    """Nap, and leave a file for every time that this is begun."""
    body = json.loads(task.body)
    Path(body["count_in"], f"{body['number']}-{os.getpid()}-{time.time_ns()}").touch()
    talk.tell(Accepted(60.0, None))
    time.sleep(body["nap_s"])
    return Answered(b'{"napped": true}')


def chatty(task, settings, talk):
    """Tell far more steps than anybody wants to hear."""
    talk.tell(Accepted(60.0, None))
    for number in range(2000):
        talk.tell(Step("count", float(number)))
        time.sleep(0.0005)
    return Answered(b"{}")
