"""What is done with the body of a request, from its bytes to the bytes of the answer.

It runs in the process of the solve, so that nothing of it can hold up or take down the server.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from partita.models.answer import Answer
from partita.models.base import Model
from partita.models.digest import problem_digest
from partita.models.document import read_json, validate
from partita.models.errors import Fault, InvalidInput, NotSupportedYet
from partita.models.front import Front, FrontRequest
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.service.settings import Settings
from partita.service.solving.documents import canonical
from partita.service.solving.drawing import draw_chart
from partita.service.solving.exporting import write_export
from partita.service.solving.limits import OverLimit, check_limits
from partita.service.solving.outcomes import Answered, Outcome, RefusalKind, Refused
from partita.service.solving.references import Content, ReferenceChanged, filled_in, patched, references_of
from partita.service.solving.reporting import write_report
from partita.service.solving.talk import Accepted, Step, Talk
from partita.service.solving.variants import split

if TYPE_CHECKING:
    from partita.solver.progress import Progress

TaskKind = Literal[
    "plan",
    "evaluation",
    "frontier",
    "batch",
    "ndjson",
    "export",
    "report",
    "chart",
    "references",
    "profile",
    "cluster",
]


class Evaluation(Model):
    """A problem, and a plan to be priced for it; ``solve`` is whether to search for the best plan to compare with."""

    problem: Problem
    plan: GivenPlan
    solve: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked.

    Attributes
    ----------
    kind
        ``plan``: the body is a problem. ``evaluation``: it holds a problem and a plan. ``frontier``: a problem and two
        metrics. ``batch``: many problems, which are not solved but told apart; ``ndjson``: the same, one on every line.
        ``export``: an answer or a front, of which one plan is written for another program. ``report``: the same, told
        in words. ``chart``: the same, of which a picture is made.
        ``references``: what is named in the body of another kind. ``profile``, ``cluster``: what is to be stored.
    body
        JSON as it came.
    base
        JSON to which the body is a merge patch (RFC 7396); None where the body is whole.
    contents
        The stored documents that body and base name.
    """

    kind: TaskKind
    body: bytes
    base: bytes | None = None
    contents: tuple[Content, ...] = ()


def perform(task: Task, settings: Settings, talk: Talk) -> Outcome:
    """Read, check and solve; every refusal of the input is an outcome, not an error.

    Parameters
    ----------
    task
        What is asked.
    settings
        What the server allows.
    talk
        Told when the search begins and how far it is; may stop it.
    """
    if task.kind in ("batch", "ndjson"):
        return _split(task, settings)
    if task.kind == "export":
        return write_export(task.body)
    if task.kind == "chart":
        return draw_chart(task.body)
    if task.kind == "report":
        return write_report(task.body)
    if task.kind == "references":
        return references_of(task.body)
    try:
        data = read_json(task.body)
        base = None if task.base is None else read_json(task.base)
    except InvalidInput as error:
        return Refused("not_json", error.faults)
    try:
        if task.kind in ("profile", "cluster"):
            return Answered(canonical(task.kind, data, settings))
        whole = _whole(task, data) if task.base is None else patched(base, data, task.contents)
        answer, problem = _WORK[task.kind](whole, settings, talk)
    except InvalidInput as error:
        return Refused(refusal_kind(error), error.faults)
    gap = answer.relative_gap if isinstance(answer, Answer) and answer.candidates else None
    return Answered(answer.model_dump_json().encode(), answer.status, problem.model_dump_json().encode(), gap)


def _whole(task: Task, data: object) -> object:
    """Put what the references of a body mean in their places."""
    if task.kind == "plan" or not isinstance(data, dict):
        return filled_in(data, task.contents)
    return {**data, "problem": filled_in(data["problem"], task.contents, "/problem")} if "problem" in data else data


def _split(task: Task, settings: Settings) -> Outcome:
    """Tell the problems of a batch apart."""
    try:
        return split(task.body, task.kind == "ndjson", settings)
    except InvalidInput as error:
        return Refused(refusal_kind(error), error.faults)


def _plan(data: object, settings: Settings, talk: Talk) -> tuple[Answer, Problem]:
    """Find plans for a problem."""
    from partita.solver.planner import plan_problem

    problem = validate(Problem, data)
    check_limits(problem, settings)
    talk.tell(_accepted(problem, problem_digest(problem)))
    return plan_problem(problem, on_progress=lambda state: talk.tell(_step(state)), stop=talk.stop), problem


def _accepted(problem: Problem, digest: str | None) -> Accepted:
    """Tell what kind of problem is searched."""
    schedules = problem.training.schedules
    kind = schedules[0].kind if len(schedules) == 1 else "several"
    return Accepted(problem.search.time_limit_s, digest, kind, len(problem.model.layers))


def _step(state: "Progress") -> Step:
    """Tell how far the search for a plan is."""
    from partita.solver.yardstick import relative_gap

    return Step(state.phase, state.incumbent, state.bound, relative_gap(state.incumbent, state.bound))


def _evaluate(data: object, settings: Settings, talk: Talk) -> tuple[Answer, Problem]:
    """Price a given plan and compare it with the best."""
    from partita.solver.what_if import evaluate_given

    asked = validate(Evaluation, data)
    check_limits(asked.problem, settings, "/problem")
    talk.tell(_accepted(asked.problem, None))
    try:
        return evaluate_given(asked.problem, asked.plan, solve=asked.solve), asked.problem
    except InvalidInput as error:
        raise type(error)(_in_whole_body(error.faults)) from None


def _frontier(data: object, settings: Settings, talk: Talk) -> tuple[Front, Problem]:
    """Find the front of two metrics."""
    from partita.solver.frontier import frontier

    asked = validate(FrontRequest, data)
    check_limits(asked.problem, settings, "/problem")
    digest = ",".join((problem_digest(asked.problem), *asked.metrics, str(asked.points)))
    talk.tell(_accepted(asked.problem, digest))
    talk.tell(Step("front", points=0))
    try:
        front = frontier(
            asked.problem,
            asked.metrics,
            asked.points,
            on_point=lambda state: talk.tell(Step("front", points=state.found)),
            stop=talk.stop,
        )
    except InvalidInput as error:
        raise type(error)(_in_whole_body(error.faults)) from None
    return front, asked.problem


_WORK: dict[TaskKind, Callable[[object, Settings, Talk], tuple[Answer | Front, Problem]]] = {
    "plan": _plan,
    "evaluation": _evaluate,
    "frontier": _frontier,
}
"""What is done for every kind of task."""


def belongs_to_plan(pointer: str) -> bool:
    """Tell whether a pointer of ``evaluate_given`` is into the given plan, with ``/plan`` before it, or the problem."""
    return pointer == "/plan" or pointer.startswith("/plan/")


def _in_whole_body(faults: tuple[Fault, ...]) -> Iterator[Fault]:
    """Turn pointers into the problem into pointers into the whole body; those into the plan are that already."""
    for fault in faults:
        yield fault if belongs_to_plan(fault.pointer) else replace(fault, pointer="/problem" + fault.pointer)


def refusal_kind(error: InvalidInput) -> RefusalKind:
    """Name the kind of refusal."""
    if isinstance(error, ReferenceChanged):
        return "reference_changed"
    if isinstance(error, NotSupportedYet):
        return "not_supported_yet"
    return "over_limit" if isinstance(error, OverLimit) else "invalid_input"
