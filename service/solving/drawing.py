"""Makes a picture of an answer, in a process of its own like all that may take long."""

import json
from dataclasses import replace

from partita.models.answer import Answer
from partita.models.base import Model
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.models.front import Front
from partita.models.quantities import Count
from partita.service.charts.names import Themes
from partita.service.reports.formats import place_in_answer
from partita.service.solving.outcomes import Answered, Refused


class ChartRequest(Model):
    """What is drawn: the name of a picture, of which plan, in which scenario and how, and of what; one is None."""

    name: str
    candidate: Count
    scenario: str | None
    theme: Themes
    answer: Answer | None
    front: Front | None


def chart_body(member: str, answer: bytes, **asked: object) -> bytes:
    """Give the body of the task for an ``answer`` or a ``front`` that is JSON already, with what is asked of it."""
    other = "front" if member == "answer" else "answer"
    head = json.dumps({**asked, other: None}).encode()
    return b'%b,"%b":%b}' % (head[:-1], member.encode(), answer)


def draw_chart(body: bytes) -> Answered | Refused:
    """Make the specification of a picture; what cannot be drawn is refused with pointers into the answer."""
    from partita.service.charts.charts import Wanted, draw

    asked = validate(ChartRequest, read_json(body))
    shown = asked.answer or asked.front
    assert shown is not None, "the body holds one of them"
    try:
        spec = draw(Wanted(asked.name, asked.candidate, asked.scenario, asked.theme), shown)
    except InvalidInput as error:
        place = f"/candidates/{asked.candidate - 1}" if asked.answer else f"/points/{asked.candidate - 1}/plan"
        faults = (replace(fault, pointer=place_in_answer(fault.pointer, place)) for fault in error.faults)
        return Refused("invalid_input", tuple(faults))
    return Answered(json.dumps(spec, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())
