"""Says what an answer tells in the words of the command line, in a process of its own like all that may take long."""

from typing import Literal

from pydantic import Field

from partita.models.answer import Answer
from partita.models.base import Model
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.models.front import Front
from partita.models.quantities import Count
from partita.service.replies import Figure, Report
from partita.service.solving.outcomes import Answered, Refused


class ReportRequest(Model):
    """What is told: an answer, and of which candidate the figures are, or a front; each with its problem."""

    candidate: Count = Field(default=1)
    answer: Answer | None = None
    front: Front | None = None


def report_body(member: Literal["answer", "front"], answer: bytes, candidate: int = 1) -> bytes:
    """Give the body of the task for an answer or a front that is JSON already."""
    return b'{"candidate":%d,"%b":%b}' % (candidate, member.encode(), answer)


def write_report(body: bytes) -> Answered | Refused:
    """Tell what an answer or a front says; an answer is refused where there is no such candidate."""
    asked = validate(ReportRequest, read_json(body))
    if asked.front is not None:
        return Answered(_of_front(asked.front).model_dump_json().encode())
    assert asked.answer is not None, "the caller gives one of the two"
    try:
        return Answered(_of_answer(asked.answer, asked.candidate).model_dump_json().encode())
    except InvalidInput as error:
        return Refused("invalid_input", error.faults)


def _of_answer(answer: Answer, candidate: int) -> Report:
    """Tell what an answer says; raises InvalidInput where there is no such candidate."""
    from partita.service.charts.times import bottleneck_words
    from partita.service.reports.report import explanation, figures, headline, refusal

    problem = answer.problem
    assert problem is not None, "the caller attaches it"
    plans = answer.candidates[candidate - 1 : candidate]
    if not plans and (answer.candidates or candidate > 1):
        detail = f"the answer has {len(answer.candidates)} candidates, and no number {candidate}"
        raise InvalidInput.at("/candidates", detail, str(candidate), "missing")
    rows = [row for plan in plans for row in figures(answer, problem, plan)]
    return Report(
        headline=headline(answer, problem, None),
        refusal=refusal(answer),
        explanation=tuple(explanation(answer, problem)),
        figures=tuple(Figure(name=name.strip(), text=text, part=name != name.strip()) for name, text in rows),
        bottleneck=bottleneck_words(problem, plans[0]) if plans else None,
    )


def _of_front(front: Front) -> Report:
    """Tell what a front says."""
    from partita.service.reports.front import front_explanation, front_headline, front_refusal

    assert front.problem is not None, "the caller attaches it"
    return Report(
        headline=front_headline(front, front.problem, None),
        refusal=front_refusal(front),
        explanation=tuple(front_explanation(front, front.problem)),
        figures=(),
        bottleneck=None,
    )
