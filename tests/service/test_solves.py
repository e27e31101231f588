"""How many solves run at once, and what becomes of the others."""

import asyncio
import json
import time

import pytest
import solve_doubles
from processes import alive, pid_in, until

from partita.service.settings import Settings
from partita.service.solving.outcomes import Answered
from partita.service.solving.solves import Busy, Solves
from partita.service.solving.work import Task


def task(**body):
    return Task("plan", json.dumps(body).encode())


def within(work, scenario, **settings):
    """Run a scenario with solves, and close them."""

    async def run():
        solves = Solves(Settings(**settings), work)
        try:
            return await scenario(solves)
        finally:
            solves.close()

    return asyncio.run(run())


def test_bounded_at_once():
    """Tests that never more solves run than allowed, and that all get their turn."""

    async def scenario(solves):
        await solves.solve(task(nap_s=0))
        begin = time.monotonic()
        outcomes = await asyncio.gather(*(solves.solve(task(nap_s=0.2)) for _ in range(4)))
        return outcomes, time.monotonic() - begin

    outcomes, took = within(solve_doubles.nap, scenario, solves=2)
    assert all(isinstance(outcome, Answered) for outcome in outcomes)
    assert took >= 0.4


def test_busy_when_the_wait_is_too_long():
    """Tests that a request that gets no turn is told when to try again."""

    async def scenario(solves):
        running = asyncio.create_task(solves.solve(task(nap_s=30)))
        await asyncio.sleep(0.05)
        with pytest.raises(Busy, match="busy for") as caught:
            await solves.solve(task())
        running.cancel()
        return caught.value.retry_after_s

    assert within(solve_doubles.nap, scenario, solves=1, slot_wait_s=0.1) == 1


def test_busy_when_too_many_are_under_way():
    """Tests that requests are refused at once beyond the number that may wait, and that those that end make room."""
    solves = Solves(Settings(solves=1, max_waiting=1))
    with solves.admission(), solves.admission(), pytest.raises(Busy, match="2 requests"), solves.admission():
        pass
    with solves.admission():
        pass
    solves.close()


def test_cancelled_solve_is_killed_and_makes_room(tmp_path):
    """Tests that a cancelled solve ends, and that the next one gets its slot."""

    async def scenario(solves):
        path = tmp_path / "first"
        running = asyncio.create_task(solves.solve(task(pid_file=str(path), nap_s=30)))
        pid = await asyncio.to_thread(pid_in, path)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.to_thread(until, lambda: not alive(pid))
        return await solves.solve(task(nap_s=0))

    assert isinstance(within(solve_doubles.nap, scenario, solves=1, slot_wait_s=5), Answered)


def test_cancelled_while_waiting():
    """Tests that a request that leaves while it waits takes no slot with it."""

    async def scenario(solves):
        running = asyncio.create_task(solves.solve(task(nap_s=0.3)))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(solves.solve(task(nap_s=30)))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await running
        return await solves.solve(task(nap_s=0))

    assert isinstance(within(solve_doubles.nap, scenario, solves=1, slot_wait_s=5), Answered)


def test_close_kills_what_runs(tmp_path):
    """Tests that closing leaves no process and that nothing begins afterwards."""

    async def scenario(solves):
        path = tmp_path / "pid"
        running = asyncio.create_task(solves.solve(task(pid_file=str(path))))
        pid = await asyncio.to_thread(pid_in, path)
        await asyncio.to_thread(solves.close)
        assert not alive(pid)
        await running
        with pytest.raises(RuntimeError):
            await solves.solve(task())
        return True

    assert within(solve_doubles.loop, scenario, solves=2)
