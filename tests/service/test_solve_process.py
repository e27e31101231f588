"""Solves in real processes: how they end, and that none is left."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import solve_doubles
from processes import SOON_S, alive, pid_in, until

from hard_problem import hard_problem
from partita.service.settings import GIB, Settings
from partita.service.solving.outcomes import Answered, Cancelled, Crashed, Failed, OutOfMemory, Overran, Refused
from partita.service.solving.process import SolveProcess, warm_up
from partita.service.solving.talk import Accepted, Beat, Step
from partita.service.solving.work import Task


def run(work, body=None, **settings):
    return SolveProcess(Task("plan", json.dumps(body or {}).encode()), Settings(**settings), work).run()


def test_gives_what_the_work_gives():
    """Tests that a refusal comes back with its faults."""
    outcome = run(solve_doubles.real, {"model": 1})
    assert isinstance(outcome, Refused)
    assert outcome.kind == "invalid_input"
    assert "/model" in {fault.pointer for fault in outcome.faults}


def test_native_crash():
    """Tests that a segmentation fault takes only its own process, and that the signal is known."""
    assert run(solve_doubles.crash) == Crashed(-signal.SIGSEGV)


def test_exit_without_a_word():
    """Tests that a process that just ends is noticed, with its exit code."""
    assert run(solve_doubles.leave) == Crashed(7)


def test_error_in_the_work():
    """Tests that the trace of an error reaches the server, for its log."""
    outcome = run(solve_doubles.error)
    assert isinstance(outcome, Failed)
    assert "RuntimeError: a secret of the solver" in outcome.trace


def test_memory_is_limited():
    """Tests that a solve that takes ever more memory ends, with the limit named."""
    assert run(solve_doubles.hog, solve_memory_bytes=4 * GIB) == OutOfMemory(4 * GIB)


@pytest.mark.parametrize("limit", [0, 3 * GIB])
def test_process_is_set_up(limit):
    """Tests that Ctrl-C is left to the server and that the memory limit is in force."""
    outcome = run(solve_doubles.reports, solve_memory_bytes=limit)
    assert isinstance(outcome, Answered)
    facts = json.loads(outcome.body)
    assert facts["ignores_interrupt"]
    assert facts["pid"] != os.getpid()
    assert facts["address_space"] == (limit or facts["address_space"])


def test_overrun_is_killed(tmp_path):
    """Tests that the wall-clock limit is hard, whatever the process ignores."""
    begin = time.monotonic()
    path = tmp_path / "pid"
    outcome = run(solve_doubles.loop, {"pid_file": str(path), "time_limit_s": 0.2}, grace_s=0.3)
    assert outcome == Overran(0.5, False)
    assert 0.4 < time.monotonic() - begin < SOON_S
    assert not alive(pid_in(path))


def test_endless_reading_is_killed():
    """Tests that the time before the search begins is limited too."""
    assert run(solve_doubles.never_reads, reading_s=0.3) == Overran(0.3, True)


def test_large_bodies_pass():
    """Tests that bodies and answers beyond the size of a pipe's buffer pass in both directions."""
    task = Task("plan", b"x" * 5_000_000)
    assert SolveProcess(task, Settings(), solve_doubles.large).run() == Answered(b"x" * 5_000_000)


def test_a_process_that_does_not_listen_is_killed():
    """Tests that a body that nobody takes does not hold up the server for ever."""
    process = SolveProcess(Task("plan", b"x" * 50_000_000), Settings(reading_s=0.3), solve_doubles.large)
    from multiprocessing.connection import Connection
    from unittest import mock

    def stopped(self, task):
        process._process and os.kill(process._process.pid, signal.SIGSTOP)
        return send(self, task)

    send = Connection.send
    with mock.patch.object(Connection, "send", stopped):
        assert process.run() == Overran(0.3, True)


@pytest.mark.parametrize("double", [solve_doubles.loop, solve_doubles.spin])
def test_kill_from_another_thread(tmp_path, double):
    """Tests that a running solve can be cancelled at once, also where no Python of its own would run again."""
    path = tmp_path / "pid"
    process = SolveProcess(Task("plan", json.dumps({"pid_file": str(path)}).encode()), Settings(), double)
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(process.run()))
    thread.start()
    pid = pid_in(path)
    begin = time.monotonic()
    process.kill()
    thread.join(5)
    assert outcomes == [Cancelled()]
    assert time.monotonic() - begin < SOON_S
    assert not alive(pid)
    process.kill()  # once more does no harm


def test_kill_before_the_start():
    """Tests that a solve that is cancelled before it began never begins."""
    process = SolveProcess(Task("plan", b"{}"), Settings(), solve_doubles.loop)
    process.kill()
    assert process.run() == Cancelled()


def test_stop_keeps_the_best_plan():
    """Tests that a search that is asked to stop answers with what it has found, and tells how far it is until then."""
    told = []
    task = Task("plan", json.dumps(hard_problem()).encode())

    def heard(message):
        told.append(message)
        if isinstance(message, Beat):
            process.stop()
        return True

    process = SolveProcess(task, Settings(), heard=heard)
    begin = time.monotonic()
    outcome = process.run()
    assert outcome.status == "feasible"
    assert time.monotonic() - begin < 20
    assert isinstance(told[0], Accepted)
    steps = [message for message in told if isinstance(message, Step)]
    assert steps[-1].incumbent > 0


def test_many_steps_are_told_seldom_and_the_last_always():
    """Tests that a solve that tells very much does not flood the server, which still hears how it ended."""
    told = []
    begin = time.monotonic()
    SolveProcess(Task("plan", b"{}"), Settings(), solve_doubles.chatty, lambda message: not told.append(message)).run()
    steps = [message for message in told if isinstance(message, Step)]
    assert steps[-1].incumbent == 1999
    assert 2 < len(steps) <= 12 * (time.monotonic() - begin) + 2


def test_stop_before_the_start():
    """Tests that a stop is not lost where the process has not begun."""
    process = SolveProcess(Task("plan", json.dumps(hard_problem()).encode()), Settings())
    process.stop()
    begin = time.monotonic()
    assert isinstance(process.run(), Answered)
    assert time.monotonic() - begin < 20


def test_who_listens_may_end_the_solve(tmp_path):
    """Tests that the process is ended as soon as its answer is not wanted any more."""
    body = json.dumps({"pid_file": str(tmp_path / "pid")}).encode()
    outcome = SolveProcess(Task("plan", body), Settings(), solve_doubles.loop, lambda message: False).run()
    assert outcome == Cancelled()
    assert not alive(pid_in(tmp_path / "pid"))


def test_starts_fast_when_warm():
    """Tests that the solver is loaded before, not by every process: loading alone takes several times as long."""
    warm_up()
    times, loading = [], []
    for _ in range(5):
        begin = time.monotonic()
        run(solve_doubles.real, {"model": 1})
        times.append(time.monotonic() - begin)
        begin = time.monotonic()
        subprocess.run([sys.executable, "-c", "import partita.solver.planner"], check=True)
        loading.append(time.monotonic() - begin)
    assert min(times) < min(loading) / 2


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_no_orphans(tmp_path, end):
    """Tests that the end of the server, even by force, is the end of its solves."""
    path = tmp_path / "pid"
    program = (
        "import solve_doubles, json; from partita.service.solving.process import SolveProcess;"
        "from partita.service.settings import Settings; from partita.service.solving.work import Task;"
        f"SolveProcess(Task('plan', json.dumps({{'pid_file': {str(path)!r}}}).encode()), Settings(),"
        " solve_doubles.loop).run()"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as server:
        pid = pid_in(path)
        assert alive(pid)
        server.send_signal(end)
    until(lambda: not alive(pid))
