"""The description of the calls that draw answers."""

from typing import Literal

from partita.service.api.openapi_parts import JOB, Document, failures
from partita.service.charts.names import CHARTS, charts_of

_WHOLE = {"plan": "all plans of the answer", "frontier": "all points of the front"}

EXAMPLE: Document = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "description": "Memory of each device by rank. The fullest is stage 0 · node0:0 with 11.6 GiB of 14.9 GiB, 77.6 %.",
    "title": {"text": "Peak memory 11.6 GiB of 14.9 GiB"},
    "width": "container",
    "layer": [
        {
            "data": {"values": [{"row": "stage 0 · node0:0", "item": "weights", "start": 0, "end": 0.559}]},
            "mark": {"type": "bar"},
            "encoding": {
                "y": {"field": "row", "type": "nominal"},
                "x": {"field": "start", "type": "quantitative", "title": "Bytes on each device (GiB)"},
                "x2": {"field": "end"},
                "color": {"field": "item", "type": "nominal"},
            },
        }
    ],
}
"""What the call answers, shortened."""


def drawing(kind: Literal["plan", "frontier"]) -> Document:
    """Describe the call that draws what a job has found."""
    names = charts_of(kind)
    one = [name for name in names if CHARTS[name].shows == "plan"]
    what = "plan of the answer" if kind == "plan" else "point of the front"
    return {
        "operationId": f"draw_{kind}",
        "summary": f"Draw a plan or {_WHOLE[kind]}",
        "description": "A picture as a Vega-Lite 6 specification: any program that knows Vega-Lite draws it. It is as "
        "wide as its container, says in its description what it shows, and needs no evaluation of code: embed it with "
        "the option ast. partita plot draws the same pictures.",
        "parameters": [
            JOB,
            {
                "name": "name",
                "in": "path",
                "required": True,
                "description": " ".join(f"{name}: {CHARTS[name].summary}" for name in names),
                "schema": {
                    "type": "string",
                    "enum": list(names),
                    "x-enum-varnames": [CHARTS[name].title for name in names],
                    "x-enum-descriptions": [CHARTS[name].summary for name in names],
                },
                "example": "memory",
            },
            {
                "name": "candidate",
                "in": "query",
                "required": False,
                "description": f"Which {what} to draw, in {', '.join(one[:-1])} and {one[-1]}.",
                "schema": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1},
            },
            {
                "name": "scenario",
                "in": "query",
                "required": False,
                "description": "Which of several scenarios to draw; the longest if left out.",
                "schema": {"type": "string", "maxLength": 1000},
            },
            {
                "name": "theme",
                "in": "query",
                "required": False,
                "description": "Colors for a light or a dark background.",
                "schema": {"type": "string", "enum": ["light", "dark"], "default": "light"},
            },
        ],
        "responses": {
            "200": {
                "description": "The specification.",
                "content": {"application/json": {"schema": {"type": "object"}, "example": EXAMPLE}},
            },
            **failures((400, 404, 409, 422, 500, 503, 504)),
        },
    }
