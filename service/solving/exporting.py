"""Writes a plan of an answer for another program, in a process of its own like all that may take long."""

from dataclasses import replace

from partita.models.answer import Answer
from partita.models.base import Model
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.models.quantities import Count
from partita.service.reports.formats import place_in_answer
from partita.service.solving.outcomes import Answered, Refused


class ExportRequest(Model):
    """What is written: the format, which candidate, and the answer with its problem."""

    format: str
    candidate: Count
    answer: Answer


def export_body(format: str, candidate: int, answer: bytes) -> bytes:
    """Give the body of the task for an answer that is JSON already; the format is the name of one."""
    return b'{"format":"%b","candidate":%d,"answer":%b}' % (format.encode(), candidate, answer)


def write_export(body: bytes) -> Answered | Refused:
    """Write a plan; it is refused where the format cannot express it, with pointers into the answer."""
    from partita.service.reports.exports import EXPORTS

    asked = validate(ExportRequest, read_json(body))
    if asked.answer.problem is None or asked.candidate > len(asked.answer.candidates):
        detail = f"the answer has {len(asked.answer.candidates)} candidates, and no number {asked.candidate}"
        return Refused("invalid_input", InvalidInput.at("/candidates", detail, str(asked.candidate), "missing").faults)
    plan = asked.answer.candidates[asked.candidate - 1]
    try:
        text = EXPORTS[asked.format](asked.answer.problem, plan)
    except InvalidInput as error:
        place = f"/candidates/{asked.candidate - 1}"
        faults = (replace(fault, pointer=place_in_answer(fault.pointer, place)) for fault in error.faults)
        return Refused("invalid_input", tuple(faults))
    return Answered(text.encode())
