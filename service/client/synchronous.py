"""The synchronous client."""

import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from partita.models.answer import Answer
from partita.models.base import Model
from partita.models.front import Front
from partita.service.client import batches, jobs
from partita.service.client.batches import GivenProblems
from partita.service.client.jobs import Asked, GivenProblem, JobKind
from partita.service.client.settings import RETRIES, TIMEOUT_S, Connection, reason_of, reply_of
from partita.service.client.steps import (
    Broken,
    Done,
    Emit,
    Lines,
    Next,
    Open,
    Reply,
    Result,
    Send,
    Sleep,
    Steps,
    advance,
)
from partita.service.replies import BatchDocument, BatchResult, Health, JobDocument, JobList, State

Told = Callable[[JobDocument], None]
"""Told a job at every change of it and, while there is none, every few seconds."""


class Client:
    """The service, for programs that wait.

    Requests are tried again where the server cannot be reached or has no room, with an idempotency key, so that they
    are done once. Every call may raise ``ServiceError``. A client may be used by one thread at a time.

    Parameters
    ----------
    url
        The server's address, such as http://127.0.0.1:8000.
    key
        The API key, where the server asks for one.
    timeout_s
        How long the network may take to connect, to send, or to be silent.
    retries
        How often in a row a call is tried again; eight times take about 20 s.
    transport
        What carries requests, for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._to = Connection(url, key, timeout_s, retries)
        self._http = httpx.Client(base_url=self._to.base_url, headers=self._to.headers, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def plan(
        self,
        problem: GivenProblem,
        *,
        within_s: float | None = None,
        include_problem: bool = False,
        fresh: bool = False,
        key: str | None = None,
        on_progress: Told | None = None,
    ) -> Answer:
        """Find ranked plans for a problem.

        Parameters
        ----------
        problem
            A ``Problem``, or its JSON as Python has it.
        within_s
            When to give up waiting; the job then goes on. None waits until it ends.
        include_problem
            Whether the answer repeats the problem.
        fresh
            Whether to solve even what was answered before.
        key
            An idempotency key, for a request that another process may repeat; by default one of its own.
        on_progress
            Told how far the job is.
        """
        asked = Asked.of("plan", problem, include_problem, fresh, key)
        return self._run(jobs.solved(Answer, asked, self._to.patience(within_s)), on_progress)

    def frontier(
        self,
        problem: GivenProblem,
        metrics: tuple[str, str] = ("iteration_time_s", "peak_memory_bytes"),
        points: int = 20,
        *,
        within_s: float | None = None,
        include_problem: bool = False,
        fresh: bool = False,
        key: str | None = None,
        on_progress: Told | None = None,
    ) -> Front:
        """Find the Pareto front of two metrics, with so many points at most; the rest is as for ``plan``."""
        asked = Asked.of_front(problem, metrics, points, include_problem, fresh, key)
        return self._run(jobs.solved(Front, asked, self._to.patience(within_s)), on_progress)

    def evaluate(
        self,
        problem: GivenProblem,
        plan: Model | Mapping[str, Any],
        *,
        solve: bool = True,
        include_problem: bool = False,
    ) -> Answer:
        """Price a plan, such as ``{"stage_sizes": [3, 3, 1]}``; ``solve`` is whether to compare it with the best."""
        return self._run(batches.evaluated(problem, plan, solve, include_problem, self._to.patience()))

    def submit(
        self, problem: GivenProblem, *, include_problem: bool = False, fresh: bool = False, key: str | None = None
    ) -> JobDocument:
        """Ask for plans without waiting for them; give the job."""
        asked = Asked.of("plan", problem, include_problem, fresh, key)
        return self._run(jobs.submitted(asked, self._to.patience()))

    def submit_frontier(
        self,
        problem: GivenProblem,
        metrics: tuple[str, str] = ("iteration_time_s", "peak_memory_bytes"),
        points: int = 20,
        *,
        include_problem: bool = False,
        fresh: bool = False,
        key: str | None = None,
    ) -> JobDocument:
        """Ask for a front without waiting for it; give the job."""
        asked = Asked.of_front(problem, metrics, points, include_problem, fresh, key)
        return self._run(jobs.submitted(asked, self._to.patience()))

    def job(self, job: str, kind: JobKind = "plan") -> JobDocument:
        """Give a job as it stands, with its answer once it has one."""
        return self._run(jobs.look(kind, job, self._to.patience()))

    def jobs(
        self, kind: JobKind = "plan", *, state: State | None = None, limit: int = 100, before: float | None = None
    ) -> JobList:
        """List the newest jobs outside batches; ``before`` is in seconds since 1970."""
        return self._run(jobs.listed(kind, state, limit, before, self._to.patience()))

    def wait(
        self, job: str, kind: JobKind = "plan", *, within_s: float | None = None, on_progress: Told | None = None
    ) -> JobDocument:
        """Wait until a job ends, and give it."""
        return self._run(jobs.follow(kind, job, self._to.patience(within_s)), on_progress)

    def follow(self, job: str, kind: JobKind = "plan") -> Iterator[JobDocument]:
        """Give a job at every change, the last time when it has ended."""
        return self._each(jobs.followed(kind, job, self._to.patience()))

    def stop(self, job: str, kind: JobKind = "plan") -> JobDocument:
        """Let a search end with what it has found."""
        return self._run(jobs.change(kind, job, "stop", self._to.patience()))

    def cancel(self, job: str, kind: JobKind = "plan") -> JobDocument:
        """Cancel a job."""
        return self._run(jobs.change(kind, job, "cancel", self._to.patience()))

    def export(self, job: str, format: str, candidate: int = 1, kind: JobKind = "plan") -> bytes:
        """Give a plan, or that of a point of a front, for another program in a format of ``partita export``."""
        return self._run(jobs.exported(kind, job, format, candidate, self._to.patience()))

    def submit_batch(
        self, problems: GivenProblems, *, include_problem: bool = False, key: str | None = None
    ) -> BatchDocument:
        """Ask for plans for many problems, or for problems by their names; ``results`` gives them as they arrive."""
        body = batches.problem_lines(problems)
        return self._run(batches.submitted_batch(body, True, include_problem, key, self._to.patience()))

    def submit_variants(
        self,
        base: GivenProblem,
        patches: Mapping[str, Mapping[str, Any]],
        *,
        include_problem: bool = False,
        key: str | None = None,
    ) -> BatchDocument:
        """Ask for plans for variants of a problem: JSON merge patches to it, by their names."""
        body = batches.variants_body(base, patches)
        return self._run(batches.submitted_batch(body, False, include_problem, key, self._to.patience()))

    def batch(self, batch: str) -> BatchDocument:
        """Give a batch as it stands, with a forecast of its end."""
        return self._run(batches.look_at_batch(batch, self._to.patience()))

    def results(self, batch: str) -> Iterator[BatchResult]:
        """Give every result of a batch once, in the order in which they end."""
        return self._each(batches.results(batch, self._to.patience()))

    def cancel_batch(self, batch: str) -> BatchDocument:
        """Cancel what has not ended of a batch."""
        return self._run(batches.cancelled_batch(batch, self._to.patience()))

    def ready(self) -> Health:
        """Tell that the server takes and solves jobs; raises where it does not."""
        return self._run(batches.ready(self._to.patience()))

    def _run(self, steps: Steps[Result], told: Told | None = None) -> Result:
        """Carry out steps, and give their result; ``told`` gets what they emit."""
        carried = _Carrier(self._http, self._to)
        try:
            answer, error = None, None
            while not isinstance(step := advance(steps, answer, error), Done):
                if isinstance(step, Emit):
                    answer, error = None, None
                    if told is not None:
                        told(step.value)
                else:
                    answer, error = carried.out(step)
            result: Result = step.result
            return result
        finally:
            carried.close()

    def _each(self, steps: Steps[None]) -> Iterator[Any]:
        """Carry out steps, and give what they emit."""
        carried = _Carrier(self._http, self._to)
        try:
            answer, error = None, None
            while not isinstance(step := advance(steps, answer, error), Done):
                if isinstance(step, Emit):
                    answer, error = None, None
                    yield step.value
                else:
                    answer, error = carried.out(step)
        finally:
            carried.close()


class _Carrier:
    """Carries out the steps of one call."""

    def __init__(self, http: httpx.Client, to: Connection) -> None:
        self._http, self._to = http, to
        self._stream: httpx.Response | None = None
        self._lines: Iterator[str] = iter(())

    def out(self, step: Send | Open | Next | Sleep) -> tuple[Reply | str | None, Broken | None]:
        """Carry out a step, and give its answer or what went wrong."""
        try:
            match step:
                case Sleep(seconds):
                    time.sleep(seconds)
                    return None, None
                case Next():
                    return next(self._lines, None), None
                case Open():
                    return self._open(step), None
            request = self._http.build_request(
                step.method, step.path, content=step.body, headers=step.headers, timeout=self._to.timeout(step)
            )
            return reply_of(self._http.send(request), whole=True), None
        except httpx.HTTPError as error:
            return None, Broken(reason_of(error))

    def close(self) -> None:
        """Close the stream, where one is open."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _open(self, step: Open) -> Reply:
        self.close()
        request = self._http.build_request("GET", step.path, timeout=self._to.timeout(step))
        self._stream = self._http.send(request, stream=True)
        failed = self._stream.status_code != httpx.codes.OK
        if failed:
            self._stream.read()
        self._lines = _lines_of(self._stream)
        return reply_of(self._stream, whole=failed)


def _lines_of(stream: httpx.Response) -> Iterator[str]:
    """Give the lines of a stream."""
    lines = Lines()
    for part in stream.iter_bytes():
        yield from lines.add(part)
