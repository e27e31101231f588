"""How many solves run at once, and what happens to the others."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from partita.service.outcomes import Outcome
from partita.service.settings import Settings
from partita.service.solve_process import SolveProcess, Work, warm_up
from partita.service.work import Task, perform


class Busy(Exception):
    """There is no room for another request now; ``retry_after_s`` says when to try again."""

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class Solves:
    """Runs solves in processes of their own, a bounded number at a time.

    Parameters
    ----------
    settings
        The bounds.
    work
        What a process does with a task.
    """

    def __init__(self, settings: Settings, work: Work = perform) -> None:
        self._settings = settings
        self._work = work
        self._present = 0
        self._running: set[SolveProcess] = set()
        self._free = asyncio.Semaphore(settings.solves)
        self._threads = ThreadPoolExecutor(settings.solves + 1, thread_name_prefix="solve")

    @contextmanager
    def admission(self) -> Iterator[None]:
        """Count a request while it is under way.

        Raises
        ------
        Busy
            When too many are under way already.
        """
        most = self._settings.solves + self._settings.max_waiting
        if self._present >= most:
            detail = f"{most} requests are under way, the most that this server takes at once; try again later"
            raise Busy(detail, self._retry_after_s)
        self._present += 1
        try:
            yield
        finally:
            self._present -= 1

    async def solve(self, task: Task) -> Outcome:
        """Solve as soon as there is room; when this is cancelled, the solve is killed.

        Raises
        ------
        Busy
            When no solve ended for too long.
        """
        try:
            async with asyncio.timeout(self._settings.slot_wait_s):
                await self._free.acquire()
        except TimeoutError:
            detail = (
                f"all {self._settings.solves} solves of this server were busy for {self._settings.slot_wait_s:g} s; "
                "try again later"
            )
            raise Busy(detail, self._retry_after_s) from None
        process = SolveProcess(task, self._settings, self._work)
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, process.run)
        except BaseException:
            self._free.release()
            raise
        self._running.add(process)
        running.add_done_callback(lambda _: self._ended(process))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            process.kill()
            raise

    def warm_up(self) -> None:
        """Begin to load the solver, so that the first request need not wait for it."""
        self._threads.submit(warm_up)

    def close(self) -> None:
        """Accept no more solves; kill those that still run and wait until they are gone."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            process.kill()
        self._threads.shutdown(wait=True)

    def _ended(self, process: SolveProcess) -> None:
        """Make room for the next solve."""
        self._running.discard(process)
        self._free.release()

    @property
    def _retry_after_s(self) -> int:
        """When it makes sense to try again, in seconds."""
        return max(1, round(self._settings.slot_wait_s))
