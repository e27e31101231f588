"""Says what an answer tells in the words of the command line, in a process of its own like all that may take long."""

from pydantic import Field

from partita.models.answer import Answer
from partita.models.base import Model
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.models.quantities import Count
from partita.service.replies import Figure, Report
from partita.service.solving.outcomes import Answered, Refused


class ReportRequest(Model):
    """What is told: of which candidate the figures are, and the answer with its problem."""

    candidate: Count = Field(default=1)
    answer: Answer


def report_body(candidate: int, answer: bytes) -> bytes:
    """Give the body of the task for an answer that is JSON already."""
    return b'{"candidate":%d,"answer":%b}' % (candidate, answer)


def write_report(body: bytes) -> Answered | Refused:
    """Tell what an answer says; it is refused where there is no such candidate."""
    from partita.service.reports.report import explanation, figures, headline, refusal

    asked = validate(ReportRequest, read_json(body))
    answer, problem = asked.answer, asked.answer.problem
    assert problem is not None, "the caller attaches it"
    plans = answer.candidates[asked.candidate - 1 : asked.candidate]
    if not plans and (answer.candidates or asked.candidate > 1):
        detail = f"the answer has {len(answer.candidates)} candidates, and no number {asked.candidate}"
        return Refused("invalid_input", InvalidInput.at("/candidates", detail, str(asked.candidate), "missing").faults)
    rows = [row for plan in plans for row in figures(answer, problem, plan)]
    report = Report(
        headline=headline(answer, problem, None),
        refusal=refusal(answer),
        explanation=tuple(explanation(answer, problem)),
        figures=tuple(Figure(name=name.strip(), text=text, part=name != name.strip()) for name, text in rows),
    )
    return Answered(report.model_dump_json().encode())
