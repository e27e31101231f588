"""How many solves run at once in this process, and what happens to the others."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock, Thread

from partita.service.metrics import Metrics
from partita.service.settings import Settings
from partita.service.solving.outcomes import Answered, Cancelled, Outcome
from partita.service.solving.process import Heard, SolveProcess, Work, warm_up
from partita.service.solving.talk import Accepted, Message
from partita.service.solving.work import Task, perform


class Busy(Exception):
    """There is no room for another request now; ``retry_after_s`` says when to try again."""

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class Solves:
    """Runs solves in processes of their own, a bounded number at a time, for callers in any event loop.

    Parameters
    ----------
    settings
        The bounds.
    work
        What a process does with a task.

    Attributes
    ----------
    metrics
        What this process has done.
    """

    def __init__(self, settings: Settings, work: Work = perform) -> None:
        self._settings = settings
        self._work = work
        self.metrics = Metrics()
        self._lock = Lock()
        self._present = self._taken = 0
        self._running: set[SolveProcess] = set()
        self._threads = ThreadPoolExecutor(settings.solves, thread_name_prefix="solve")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="read")

    @property
    def free(self) -> bool:
        """Whether a solve could begin at once."""
        return self._taken < self._settings.solves

    @contextmanager
    def admission(self) -> Iterator[None]:
        """Count a request while it is under way.

        Raises
        ------
        Busy
            When too many are under way already.
        """
        most = self._settings.solves + self._settings.max_waiting
        with self._lock:
            if self._present >= most:
                detail = f"{most} requests are under way, the most that this server takes at once; try again later"
                raise Busy(detail, self._retry_after_s)
            self._present += 1
        try:
            yield
        finally:
            with self._lock:
                self._present -= 1

    async def solve(
        self,
        task: Task,
        *,
        heard: Heard = lambda message: True,
        begun: Callable[[SolveProcess], None] = lambda process: None,
        patient: bool = False,
    ) -> Outcome:
        """Solve as soon as there is room; when this is cancelled, the solve is killed.

        Parameters
        ----------
        task
            What is asked.
        heard
            Told what the process says meanwhile.
        begun
            Told, in another thread, when the turn has come.
        patient
            Whether to wait for the turn however long that takes.

        Raises
        ------
        Busy
            When no solve ended for too long.
        """
        accepted = Accepted(0.0, None)

        def listen(message: Message) -> bool:
            nonlocal accepted
            accepted = message if isinstance(message, Accepted) else accepted
            return heard(message)

        process = SolveProcess(task, self._settings, self._work, listen)
        loop, turn = asyncio.get_running_loop(), asyncio.Event()

        def run() -> Outcome:
            loop.call_soon_threadsafe(turn.set)
            begun(process)
            began = time.monotonic()
            outcome = process.run()
            self._count(task.kind, accepted, outcome, time.monotonic() - began)
            return outcome

        with self._lock:
            self._taken += 1
            self._running.add(process)
        try:
            running = self._threads.submit(run)
        except BaseException:
            self._ended(process)
            raise
        running.add_done_callback(lambda _: self._ended(process))
        try:
            if not patient:
                await self._turn(turn, running)
            return await asyncio.shield(asyncio.wrap_future(running))
        except asyncio.CancelledError:
            if not running.cancel():
                process.kill()
            raise

    async def read(self, task: Task) -> Outcome:
        """Have a body read in a process of its own, past those that solve; one at a time."""
        process = SolveProcess(task, self._settings)
        with self._lock:
            self._running.add(process)
        reading = self._reader.submit(process.run)
        try:
            return await asyncio.shield(asyncio.wrap_future(reading))
        except asyncio.CancelledError:
            if not reading.cancel():
                process.kill()
            raise
        finally:
            with self._lock:
                self._running.discard(process)

    async def _turn(self, turn: asyncio.Event, running: "Future[Outcome]") -> None:
        """Wait until a solve begins."""
        try:
            async with asyncio.timeout(self._settings.slot_wait_s):
                await turn.wait()
        except TimeoutError:
            if running.cancel():
                count, waited = self._settings.solves, self._settings.slot_wait_s
                detail = f"all {count} solves of this server were busy for {waited:g} s; try again later"
                raise Busy(detail, self._retry_after_s) from None

    def _count(self, kind: str, accepted: Accepted, outcome: Outcome, seconds: float) -> None:
        """Count a solve that has ended of itself."""
        if isinstance(outcome, Cancelled):
            return
        status, gap = type(outcome).__name__.lower(), None
        if isinstance(outcome, Answered):
            status, gap = outcome.status or status, outcome.relative_gap
        self.metrics.solved(kind, accepted.schedule, accepted.layers, status, seconds, gap)

    def warm_up(self) -> None:
        """Begin to load the solver, so that the first request need not wait for it."""
        Thread(target=warm_up, daemon=True).start()

    def close(self) -> None:
        """Accept no more solves; kill those that still run and wait until they are gone."""
        for threads in (self._threads, self._reader):
            threads.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            process.kill()
        for threads in (self._threads, self._reader):
            threads.shutdown(wait=True)

    def _ended(self, process: SolveProcess) -> None:
        """Make room for the next solve."""
        with self._lock:
            self._running.discard(process)
            self._taken -= 1

    @property
    def _retry_after_s(self) -> int:
        """When it makes sense to try again, in seconds."""
        return max(1, round(self._settings.slot_wait_s))
