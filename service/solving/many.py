"""Many solves, each in a process of its own, some at a time, for a program that waits for them."""

from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Lock

from partita.service.settings import Settings
from partita.service.solving.outcomes import Cancelled, Outcome
from partita.service.solving.process import SolveProcess, Work, warm_up
from partita.service.solving.work import Task, perform


def solve_all(
    tasks: Mapping[str, Task], settings: Settings, work: Work = perform
) -> Generator[tuple[str, Outcome], None, None]:
    """Solve all tasks, ``settings.solves`` at a time, and give each outcome with its key as it comes.

    However the iterator is left, no process of a solve is left behind; close it where it may be left early.
    """
    lock, running = Lock(), set[SolveProcess]()
    closing = False

    def run(task: Task) -> Outcome:
        process = SolveProcess(task, settings, work)
        with lock:
            if closing:
                return Cancelled()
            running.add(process)
        try:
            return process.run()
        finally:
            with lock:
                running.discard(process)

    threads = ThreadPoolExecutor(settings.solves, thread_name_prefix="solve")
    try:
        if tasks:
            threads.submit(warm_up)
        keys = {threads.submit(run, task): key for key, task in tasks.items()}
        for ended in as_completed(keys):
            yield keys[ended], ended.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        with lock:
            closing = True
            for process in running:
                process.kill()
        threads.shutdown(wait=True)
