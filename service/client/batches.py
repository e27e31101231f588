"""The calls about batches and evaluations, as steps."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from partita.models.answer import Answer
from partita.models.base import Model
from partita.service.client.exchange import exchange, listened, parsed
from partita.service.client.jobs import JSON, GivenProblem, as_json
from partita.service.client.steps import Emit, Next, Patience, Send, Steps
from partita.service.replies import BatchDocument, BatchResult, Health

LINES = {"Content-Type": "application/x-ndjson"}

EVALUATED_S = 60.0
"""How long an evaluation may take besides the time limit of its problem, before the connection counts as broken."""

DEFAULT_LIMIT_S = 10.0

MOST_S = 1e7
"""Time limits beyond this are thought to be mistakes, of which the server tells at once."""

GivenProblems = Iterable[GivenProblem] | Mapping[str, GivenProblem]
"""Problems, or problems by the names that their results are to have."""


def problem_lines(problems: GivenProblems) -> bytes:
    """Write problems as NDJSON."""
    if isinstance(problems, Mapping):
        return b"\n".join(as_json({"name": name, "problem": problem}) for name, problem in problems.items())
    return b"\n".join(as_json({"problem": problem}) for problem in problems)


def variants_body(base: GivenProblem, patches: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Write a base and JSON merge patches to it, by the names that their results are to have."""
    return as_json({"base": base, "variants": [{"name": name, "patch": patch} for name, patch in patches.items()]})


def path_of(batch: str) -> str:
    """Give the path of a batch."""
    return f"v1/batches/{quote(batch, safe='')}"


def submitted_batch(
    body: bytes, lines: bool, include_problem: bool, key: str | None, patience: Patience
) -> Steps[BatchDocument]:
    """Take many problems."""
    headers = {**(LINES if lines else JSON), "Idempotency-Key": key or str(uuid4())}
    path = "v1/batches" + ("?include=problem" if include_problem else "")
    reply = yield from exchange(Send("POST", path, body, headers, EVALUATED_S), patience)
    return parsed(BatchDocument, reply.body)


def look_at_batch(batch: str, patience: Patience) -> Steps[BatchDocument]:
    """Give a batch as it stands."""
    reply = yield from exchange(Send("GET", path_of(batch)), patience)
    return parsed(BatchDocument, reply.body)


def cancelled_batch(batch: str, patience: Patience) -> Steps[BatchDocument]:
    """Cancel what has not ended of a batch."""
    reply = yield from exchange(Send("DELETE", path_of(batch)), patience)
    return parsed(BatchDocument, reply.body)


def results(batch: str, patience: Patience) -> Steps[None]:
    """Emit every result of a batch once, as it ends; where the stream breaks it is opened again after a pause."""
    told: set[int] = set()
    stream = Patience(patience.retries, patience.ends)
    while True:
        _, least_s = yield from listened(path_of(batch) + "/results", _lines(told, stream), patience)
        document = yield from look_at_batch(batch, patience)
        if len(told) == document.total:
            return
        yield from stream.pause(least_s)


def _lines(told: set[int], stream: Patience) -> Steps[None]:
    """Read lines until the stream ends, and emit those that are new."""
    while True:
        line: str | None = yield Next()
        stream.check()
        if line is None:
            return
        result = parsed(BatchResult, line)
        stream.failures = 0
        if result.index not in told:
            told.add(result.index)
            yield Emit(result)


def evaluated(
    problem: GivenProblem, plan: Model | Mapping[str, Any], solve: bool, include_problem: bool, patience: Patience
) -> Steps[Answer]:
    """Price a given plan."""
    given = plan.model_dump(mode="json", exclude_defaults=True) if isinstance(plan, Model) else plan
    body = as_json({"problem": problem, "plan": given, "solve": solve})
    path = "v1/evaluations" + ("?include=problem" if include_problem else "")
    reply = yield from exchange(Send("POST", path, body, JSON, EVALUATED_S + _limit_s(problem)), patience)
    return parsed(Answer, reply.body)


def _limit_s(problem: GivenProblem) -> float:
    """Give the time limit of a problem that may not be valid."""
    if not isinstance(problem, Mapping):
        return problem.search.time_limit_s
    search = problem.get("search")
    limit = search.get("time_limit_s") if isinstance(search, Mapping) else None
    return float(limit) if isinstance(limit, int | float) and 0 <= limit <= MOST_S else DEFAULT_LIMIT_S


def ready(patience: Patience) -> Steps[Health]:
    """Tell whether jobs can be taken and solved."""
    reply = yield from exchange(Send("GET", "readyz"), patience)
    return parsed(Health, reply.body)
