"""The description of the service for programs (OpenAPI 3.1), with examples that work as they stand."""

from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import models_json_schema

from partita import __version__
from partita.models.answer import Answer
from partita.models.front import Front, FrontRequest
from partita.models.problem import Problem
from partita.service import examples
from partita.service.health import Health
from partita.service.problem_document import KINDS, MEDIA_TYPE, ProblemDocument
from partita.service.settings import Settings
from partita.service.work import Evaluation

_REFERENCE = "#/components/schemas/{model}"

Document = dict[str, Any]


def openapi_document(settings: Settings) -> Document:
    """Describe the service with the limits that it has."""
    names, schemas = models_json_schema(
        [
            (Problem, "validation"),
            (Evaluation, "validation"),
            (FrontRequest, "validation"),
            (Answer, "serialization"),
            (Front, "serialization"),
            (Health, "serialization"),
            (ProblemDocument, "serialization"),
        ],
        ref_template=_REFERENCE,
    )
    problem, evaluation = names[Problem, "validation"], names[Evaluation, "validation"]
    request, front = names[FrontRequest, "validation"], names[Front, "serialization"]
    answer, health = names[Answer, "serialization"], names[Health, "serialization"]
    failure = names[ProblemDocument, "serialization"]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Partita", "version": __version__, "description": _description(settings)},
        "paths": {
            "/v1/plans": {
                "post": _solving("plan", _PLAN, settings, problem, examples.PLANS, answer, failure),
            },
            "/v1/evaluations": {
                "post": _solving("evaluate", _EVALUATE, settings, evaluation, examples.EVALUATIONS, answer, failure),
            },
            "/v1/frontiers": {
                "post": _solving("frontier", _FRONTIER, settings, request, examples.FRONTIERS, front, failure),
            },
            "/healthz": {
                "get": {
                    "operationId": "health",
                    "summary": "Tell whether the server is alive",
                    "responses": {"200": _json("The server is alive.", health), **_failures([500], failure)},
                }
            },
        },
        "components": {"schemas": schemas["$defs"]},
    }


_PLAN = (
    "Find ranked plans for a problem",
    "The body is a problem. The answer comes when the search ends, within the problem's own search.time_limit_s; its "
    "status is optimal, feasible, infeasible (with the reason and what would help) or no_solution (the time ran out "
    "first).",
)
_EVALUATE = (
    "Price a given plan",
    "The body holds a problem and a plan: its stages, their sizes, where it is cut, a layout of Megatron or a list of "
    "vLLM. The answer's first candidate is that plan with its costs; the status is infeasible where it breaks a limit, "
    "and the answer then names the limit. The comparison says how far it is from the best plan, which is searched for "
    "within the problem's search.time_limit_s unless solve is false, and which single move improves it most.",
)

_FRONTIER = (
    "Find the Pareto front of two metrics",
    "The body holds a problem, whose objective is not used, two metrics and the most points to give. Every point is a "
    "plan and is proven; the status is complete, sample (the front holds more points than were asked for), partial "
    "(the time ran out), infeasible or no_solution. What is not explored is named.",
)


def _description(settings: Settings) -> str:
    """Say what holds for all calls."""
    return (
        "Partita plans pipeline parallelism and proves how good its plans are. All quantities are in SI units; sizes "
        'may also be written as "80GiB". Errors are problem documents (RFC 9457) with JSON pointers into the body.\n\n'
        f"This server takes bodies of up to {settings.max_body_bytes} bytes, {settings.max_layers} layers, "
        f"{settings.max_devices} devices, {settings.max_candidates} candidates, {settings.max_workers} workers and a "
        f"time limit of {settings.max_time_limit_s:g} s, and solves {settings.solves} at a time."
    )


def _solving(
    name: str,
    texts: tuple[str, str],
    settings: Settings,
    body: Document,
    shown: dict[str, dict[str, Any]],
    answer: Document,
    failure: Document,
) -> Document:
    """Describe an operation that solves."""
    return {
        "operationId": name,
        "summary": texts[0],
        "description": f"{texts[1]} A solve that outlives its limit by {settings.grace_s:g} s is killed.",
        "parameters": [
            {
                "name": "include",
                "in": "query",
                "required": False,
                "description": "With 'problem' the answer also holds the problem.",
                "schema": {"type": "string", "enum": ["problem"]},
            }
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": body, "examples": shown}},
        },
        "responses": {
            "200": _json("The answer, also where there is no plan.", answer),
            **_failures([400, 408, 413, 415, 422, 500, 503, 504], failure),
        },
    }


def _json(description: str, schema: Document) -> Document:
    """Describe a response in JSON."""
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _failures(statuses: Iterable[int], schema: Document) -> Document:
    """Describe responses that are problem documents."""
    responses: Document = {}
    for status in statuses:
        kinds = [kind for kind in KINDS if kind.status == status]
        responses[str(status)] = {
            "description": " ".join(f"{kind.title} ({kind.name}): {kind.meaning}" for kind in kinds),
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
    if "503" in responses:
        responses["503"]["headers"] = {
            "Retry-After": {"description": "Seconds to wait.", "required": True, "schema": {"type": "integer"}}
        }
    return responses
