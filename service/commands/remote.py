"""Has a server solve what a command asks, in place of this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import uuid4

import typer

from partita.service.commands.failures import Stopped, say

if TYPE_CHECKING:
    from partita.models.answer import Answer
    from partita.models.errors import Fault
    from partita.models.front import Front, FrontRequest
    from partita.models.plan import GivenPlan
    from partita.models.problem import Problem
    from partita.service.client import Client
    from partita.service.client.jobs import JobKind
    from partita.service.client.synchronous import Told
    from partita.service.problem_document import ProblemDocument
    from partita.service.replies import JobDocument

    Blame = Callable[[Iterator[Fault]], Exception]

ServerUrl = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="Have this server do the work, and follow it there.")
]
ServerKey = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="PARTITA_KEY",
        show_envvar=True,
        help="The API key for --server; better in the environment, since others see command lines.",
    ),
]

Found = TypeVar("Found", "Answer", "Front")


def plan_there(url: str, key: str | None, problem: "Problem", refused: "Blame") -> "Answer":
    """Have a server find plans.

    Parameters
    ----------
    url, key
        Of the server.
    problem
        What is asked.
    refused
        Makes the error for faults in the problem.

    Raises
    ------
    Stopped
        When the server gives no answer.
    """
    from partita.models.answer import Answer
    from partita.service.commands.progress import watching_job

    name = str(uuid4())
    with calling(url, key, refused) as client, watching_job(problem) as told:
        submit = partial(client.submit, problem, key=name)
        ask = partial(client.plan, problem, key=name, on_progress=told)
        return _Interruptible(client, "plan", submit, told).found(Answer, ask)


def frontier_there(url: str, key: str | None, request: "FrontRequest", refused: "Blame") -> "Front":
    """Have a server find a front; the rest is as for ``plan_there``."""
    from partita.models.front import Front
    from partita.service.commands.progress import watching_job

    name, problem, points = str(uuid4()), request.problem, request.points
    metrics = (request.metrics[0], request.metrics[1])
    with calling(url, key, refused, "/problem") as client, watching_job(problem, points) as told:
        submit = partial(client.submit_frontier, problem, metrics, points, key=name)
        ask = partial(client.frontier, problem, metrics, points, key=name, on_progress=told)
        return _Interruptible(client, "frontier", submit, told).found(Front, ask)


def evaluate_there(
    url: str,
    key: str | None,
    problem: "Problem",
    plan: "GivenPlan",
    *,
    solve: bool,
    refused: "Blame",
) -> "Answer":
    """Have a server price a plan; the rest is as for ``plan_there``, faults in the plan begin with ``/plan``."""
    with calling(url, key, refused, "/problem") as client:
        return client.evaluate(problem, plan, solve=solve)


class _Interruptible:
    """A job that Ctrl-C ends with what it has found, and another Ctrl-C without.

    Parameters
    ----------
    client, kind
        Where the job is, and what.
    submit
        Asks for the same job again, to learn its name.
    told
        Told how far it is.
    """

    def __init__(
        self, client: "Client", kind: "JobKind", submit: "Callable[[], JobDocument]", told: "Told | None"
    ) -> None:
        self._client, self._kind, self._submit, self._told = client, kind, submit, told

    def found(self, model: "type[Found]", ask: "Callable[[], Found]") -> "Found":
        """Ask, and give the answer."""
        from partita.service.client.jobs import answer_in

        with suppress(KeyboardInterrupt):
            return ask()
        job = None
        try:
            say("partita: stopping with the best so far; Ctrl-C again cancels")
            job = self._submit()
            if job.state == "queued":
                raise KeyboardInterrupt  # it has found nothing, and may begin much later
            self._client.stop(job.id, self._kind)
            return answer_in(model, self._client.wait(job.id, self._kind, on_progress=self._told))
        except KeyboardInterrupt:
            self._client.cancel((job or self._submit()).id, self._kind)
            raise


@contextmanager
def calling(url: str, key: str | None, refused: "Blame", prefix: str = "") -> "Iterator[Client]":
    """Give a client whose errors end the command as those of this process do; pointers lose the prefix."""
    from partita.service.client import Client, ServiceError

    try:
        with Client(url, key=key) as client:
            yield client
    except ServiceError as error:
        if error.document is not None and error.document.about_input:
            raise refused(_faults(error.document, prefix)) from None
        remedy = "; PARTITA_KEY or --key gives this command its key" if error.status == HTTPStatus.UNAUTHORIZED else ""
        raise Stopped(f"{error}{remedy}") from None


def _faults(document: "ProblemDocument", prefix: str) -> "Iterator[Fault]":
    """Give the places of a problem document as faults."""
    from partita.models.errors import Fault

    if not document.errors:
        yield Fault("", document.detail)
    for place in document.errors:
        yield Fault(place.pointer.removeprefix(prefix), place.detail, place.value, place.code)
