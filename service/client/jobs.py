"""The calls about plans and fronts, as steps."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import quote
from uuid import uuid4

from partita.models.answer import Answer
from partita.models.front import Front
from partita.models.problem import Problem
from partita.service.client.errors import ServiceError, explained
from partita.service.client.exchange import exchange, listened, parsed
from partita.service.client.steps import Emit, Next, Patience, Reply, Send, Steps
from partita.service.replies import JobDocument, JobList, State

JobKind = Literal["plan", "frontier"]

GivenProblem = Problem | Mapping[str, Any]
"""A problem, or its JSON as Python has it."""

JSON = {"Content-Type": "application/json"}

AT_FIRST_S = 1
"""How long a request waits for its answer before it is followed as a job."""

Found = TypeVar("Found", Answer, Front)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a job.

    Attributes
    ----------
    kind, body
        What is asked, as JSON.
    include_problem
        Whether the answer repeats the problem.
    fresh
        Whether to solve even what was answered before.
    key
        Its idempotency key: however often it is sent, it is done once.
    """

    kind: JobKind
    body: bytes
    include_problem: bool
    fresh: bool
    key: str

    @classmethod
    def of(cls, kind: JobKind, value: object, include_problem: bool, fresh: bool, key: str | None) -> "Asked":
        """Make a request, with a key of its own where none is given."""
        return cls(kind, as_json(value), include_problem, fresh, key or str(uuid4()))

    @classmethod
    def of_front(
        cls,
        problem: GivenProblem,
        metrics: tuple[str, str],
        points: int,
        include_problem: bool,
        fresh: bool,
        key: str | None,
    ) -> "Asked":
        """Make a request for a front."""
        front = {"problem": problem, "metrics": list(metrics), "points": points}
        return cls.of("frontier", front, include_problem, fresh, key)


def as_json(value: object) -> bytes:
    """Write a request, problems in it as short as they can be."""

    def plain(part: object) -> object:
        if isinstance(part, Problem):
            return part.model_dump(mode="json", exclude_defaults=True)
        if isinstance(part, Mapping):
            return {key: plain(each) for key, each in part.items()}
        return part

    try:
        return json.dumps(plain(value), separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ServiceError(f"this cannot be written as JSON: {error}") from None


def path_of(kind: JobKind, job: str = "", rest: str = "") -> str:
    """Give the path of the jobs of a kind, of one of them, or of something of it."""
    return "/".join(filter(None, (f"v1/{kind}s", quote(job, safe=""), rest)))


def ask(asked: Asked, patience: Patience, wait_s: int) -> Steps[tuple[Reply | None, str]]:
    """Ask for a job; give the reply with its answer, None where it goes on after ``wait_s``, and its name."""
    headers = {
        **JSON,
        "Idempotency-Key": asked.key,
        "Prefer": f"wait={wait_s}" if wait_s else "respond-async",
        **({"Cache-Control": "no-cache"} if asked.fresh else {}),
    }
    path = path_of(asked.kind) + ("?include=problem" if asked.include_problem else "")
    reply = yield from exchange(Send("POST", path, asked.body, headers, wait_s), patience)
    job = reply.headers.get("location", "").rpartition("/")[2]
    if not job:
        raise ServiceError(f"the server answered with status {reply.status} and names no job: this is not Partita")
    patience.job = job
    return (reply if reply.status == 200 else None), job


def solved(model: type[Found], asked: Asked, patience: Patience) -> Steps[Found]:
    """Ask, and wait for the answer; emits the job at every change of it.

    Raises
    ------
    ServiceError
        When there is none.
    """
    reply, job = yield from ask(asked, patience, AT_FIRST_S)
    if reply is not None:
        return parsed(model, reply.body)
    document = yield from follow(asked.kind, job, patience)
    return answer_in(model, document)


def submitted(asked: Asked, patience: Patience) -> Steps[JobDocument]:
    """Ask, and give the job."""
    _, job = yield from ask(asked, patience, 0)
    return (yield from look(asked.kind, job, patience))


def answer_in(model: type[Found], job: JobDocument) -> Found:
    """Give the answer of a job that has ended.

    Raises
    ------
    ServiceError
        When it failed or was cancelled.
    """
    if isinstance(job.answer, model):
        return job.answer
    if job.failure is not None:
        raise explained(job.failure, job.id)
    raise ServiceError(f"job {job.id} is {job.state} and has no answer", job=job.id)


def look(kind: JobKind, job: str, patience: Patience) -> Steps[JobDocument]:
    """Give a job as it stands."""
    reply = yield from exchange(Send("GET", path_of(kind, job)), patience)
    return parsed(JobDocument, reply.body)


def change(kind: JobKind, job: str, verb: Literal["stop", "cancel"], patience: Patience) -> Steps[JobDocument]:
    """Stop or cancel a job, and give it as it stands."""
    request = Send("POST", path_of(kind, job, "stop")) if verb == "stop" else Send("DELETE", path_of(kind, job))
    reply = yield from exchange(request, patience)
    return parsed(JobDocument, reply.body)


def exported(kind: JobKind, job: str, format: str, candidate: int, patience: Patience) -> Steps[bytes]:
    """Give a plan of a job as a file for another program."""
    path = f"{path_of(kind, job, 'export')}/{quote(format, safe='')}?candidate={candidate}"
    reply = yield from exchange(Send("GET", path), patience)
    return reply.body


def listed(kind: JobKind, state: State | None, limit: int, before: float | None, patience: Patience) -> Steps[JobList]:
    """List jobs."""
    query = f"?limit={limit}" + (f"&state={state}" if state else "") + (f"&before={before!r}" if before else "")
    reply = yield from exchange(Send("GET", path_of(kind) + query), patience)
    return parsed(JobList, reply.body)


def follow(kind: JobKind, job: str, patience: Patience) -> Steps[JobDocument]:
    """Emit a job at every change and sign of life; give it when it has ended.

    Where the stream of events breaks, the job is looked at, and the stream opened again after a pause.
    """
    patience.job = job
    stream = Patience(patience.retries, patience.ends, job=job)  # counts how often in a row the stream broke
    while True:
        ended, least_s = yield from listened(path_of(kind, job, "events"), _events(stream), patience)
        if ended is not None:
            return ended
        yield from stream.pause(least_s)
        document = yield from look(kind, job, patience)
        if document.state not in ("queued", "running"):
            return document
        yield Emit(document)


def followed(kind: JobKind, job: str, patience: Patience) -> Steps[None]:
    """Emit a job at every change, the last time when it has ended."""
    ended = yield from follow(kind, job, patience)
    yield Emit(ended)


def _events(patience: Patience) -> Steps[JobDocument | None]:
    """Read events; give the job where it has ended, None where the stream ends before."""
    name, last = "", None
    while True:
        line: str | None = yield Next()
        patience.check()
        if line is None:
            return None
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            patience.failures = 0
            last = _told(name, line[5:].strip(), last)
            if name == "end":
                return last
            yield Emit(last)


def _told(name: str, data: str, last: JobDocument | None) -> JobDocument:
    """Give the job that an event tells; a heartbeat tells parts of it."""
    return parsed(JobDocument, data, last if name == "heartbeat" else None)
