"""Writes a plan for another program, in a process of its own like all that may take long."""

from dataclasses import replace
from typing import Literal

from partita.models.answer import Answer
from partita.models.base import Model
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.models.front import Front
from partita.models.quantities import Count
from partita.service.reports.formats import place_in_answer
from partita.service.solving.outcomes import Answered, Refused


class ExportRequest(Model):
    """What is written: the format, which plan, and the answer or the front that has it, with its problem."""

    format: str
    candidate: Count
    answer: Answer | None = None
    front: Front | None = None


def export_body(member: Literal["answer", "front"], answer: bytes, format: str, candidate: int) -> bytes:
    """Give the body of the task for an answer or a front that is JSON already; the format is the name of one."""
    return b'{"format":"%b","candidate":%d,"%b":%b}' % (format.encode(), candidate, member.encode(), answer)


def write_export(body: bytes) -> Answered | Refused:
    """Write a plan; it is refused where the format cannot express it, with pointers into the answer or front."""
    from partita.service.reports.exports import EXPORTS

    asked = validate(ExportRequest, read_json(body))
    found = asked.answer or asked.front
    assert found is not None and found.problem is not None, "the caller gives one of them, with its problem"
    if isinstance(found, Front):
        whole, parts, below, plans = "front", "points", "/plan", tuple(point.plan for point in found.points)
    else:
        whole, parts, below, plans = "answer", "candidates", "", found.candidates
    if asked.candidate > len(plans):
        detail = f"the {whole} has {len(plans)} {parts}, and no number {asked.candidate}"
        return Refused("invalid_input", InvalidInput.at(f"/{parts}", detail, str(asked.candidate), "missing").faults)
    try:
        text = EXPORTS[asked.format](found.problem, plans[asked.candidate - 1])
    except InvalidInput as error:
        place = f"/{parts}/{asked.candidate - 1}{below}"
        faults = (replace(fault, pointer=place_in_answer(fault.pointer, place)) for fault in error.faults)
        return Refused("invalid_input", tuple(faults))
    return Answered(text.encode())
