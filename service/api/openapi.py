"""The description of the service for programs (OpenAPI 3.1), with examples that work as they stand."""

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from partita import __version__
from partita.models.answer import Answer
from partita.models.cluster import Cluster
from partita.models.front import Front, FrontRequest
from partita.models.problem import Problem
from partita.models.profile import ModelProfile
from partita.service.api import examples
from partita.service.api.documents import DocumentList, StoredDocument
from partita.service.api.openapi_access import SCHEME, guarded
from partita.service.api.openapi_batches import about_batches
from partita.service.api.openapi_charts import drawing
from partita.service.api.openapi_documents import about_documents, with_references
from partita.service.api.openapi_jobs import about_jobs, asking, exporting, listing, reporting
from partita.service.api.openapi_parts import INCLUDE, Document, failures, json_response, reference
from partita.service.problem_document import ProblemDocument
from partita.service.replies import (
    BatchDocument,
    BatchList,
    BatchResult,
    Evaluated,
    Health,
    JobDocument,
    JobList,
    KeyDocument,
    Report,
)
from partita.service.settings import Settings
from partita.service.solving.references import Reference
from partita.service.solving.variants import BatchRequest
from partita.service.solving.work import Evaluation

__all__ = ["Document", "openapi_document"]

_REFERENCE = "#/components/schemas/{model}"
_MODELS: list[tuple[type[BaseModel], JsonSchemaMode]] = [
    (Problem, "validation"),
    (ModelProfile, "validation"),
    (Cluster, "validation"),
    (Evaluation, "validation"),
    (FrontRequest, "validation"),
    (Answer, "serialization"),
    (Front, "serialization"),
    (Health, "serialization"),
    (BatchRequest, "validation"),
    (BatchDocument, "serialization"),
    (BatchList, "serialization"),
    (BatchResult, "serialization"),
    (JobDocument, "serialization"),
    (JobList, "serialization"),
    (KeyDocument, "serialization"),
    (ProblemDocument, "serialization"),
    (Report, "serialization"),
    (Evaluated, "serialization"),
    (StoredDocument, "serialization"),
    (DocumentList, "serialization"),
    (Reference, "validation"),
]
"""What calls take and give, and in which of these ways."""


def openapi_document(settings: Settings) -> Document:
    """Describe the service with the limits that it has."""
    names, schemas = models_json_schema(
        _MODELS,
        ref_template=_REFERENCE,
    )
    problem, evaluation = names[Problem, "validation"], names[Evaluation, "validation"]
    request, front = names[FrontRequest, "validation"], names[Front, "serialization"]
    answer = names[Answer, "serialization"]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Partita", "version": __version__, "description": _description(settings)},
        "paths": guarded(
            {
                "/v1/plans": {
                    "post": asking("plan", _PLAN, settings, examples.PLANS, problem, answer),
                    "get": listing("list_plans", "plans"),
                },
                **about_jobs("/v1/plans", "plan"),
                "/v1/plans/{job}/export/{format}": {"get": exporting("plan")},
                "/v1/plans/{job}/charts/{name}": {"get": drawing("plan")},
                "/v1/plans/{job}/report": {"get": reporting("plan")},
                "/v1/frontiers": {
                    "post": asking("frontier", _FRONTIER, settings, examples.FRONTIERS, request, front),
                    "get": listing("list_frontiers", "fronts"),
                },
                **about_jobs("/v1/frontiers", "frontier"),
                "/v1/frontiers/{job}/export/{format}": {"get": exporting("frontier")},
                "/v1/frontiers/{job}/charts/{name}": {"get": drawing("frontier")},
                "/v1/frontiers/{job}/report": {"get": reporting("frontier")},
                **about_documents("profile", settings, names[ModelProfile, "validation"]),
                **about_documents("cluster", settings, names[Cluster, "validation"]),
                **about_batches(settings, examples.BATCHES),
                "/v1/evaluations": {"post": _evaluating(settings, evaluation, answer)},
                "/v1/key": {"get": _KEY},
                "/healthz": {"get": _HEALTH},
                "/readyz": {"get": _READY},
                "/metrics": {"get": _METRICS},
            },
            settings,
        ),
        "components": {"schemas": with_references(schemas["$defs"], problem), "securitySchemes": SCHEME},
    }


_HEALTH: Document = {
    "operationId": "health",
    "summary": "Tell whether the server is alive",
    "responses": {"200": json_response("The server is alive.", reference("Health")), **failures([500])},
}
_READY: Document = {
    "operationId": "ready",
    "summary": "Tell whether jobs can be taken and solved",
    "description": "The store can be reached and a worker is alive.",
    "responses": {"200": json_response("The service is ready.", reference("Health")), **failures([500, 503])},
}
_KEY: Document = {
    "operationId": "get_key",
    "summary": "Tell whose key the request has, and what it may do",
    "description": "Where the server asks for no key, the name is null.",
    "responses": {"200": json_response("The key.", reference("KeyDocument")), **failures([500, 503])},
}
_METRICS: Document = {
    "operationId": "metrics",
    "summary": "Give figures for Prometheus",
    "description": "Those of this process, and of the queue that all processes share.",
    "responses": {
        "200": {
            "description": "The figures, in Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
        **failures([500]),
    },
}
_PLAN = (
    "Find ranked plans for a problem",
    "The body is a problem, which is searched within its own search.time_limit_s. The answer's "
    "status is optimal, feasible, infeasible (with the reason and what would help) or no_solution (the time ran out "
    "first). Here and wherever a problem is taken, references may stand for its model and its cluster: to what is "
    "stored under /v1/profiles and /v1/clusters when the request is taken.",
)
_EVALUATE = (
    "Price a given plan",
    "The body holds a problem and a plan: its stages, their sizes, where it is cut, or a form that Megatron, vLLM, "
    "torchtitan or DeepSpeed has. The answer's first candidate is that plan with its costs; the status is infeasible "
    "where it breaks a limit, and the answer then names the limit. The comparison says how far it is from the best, "
    "which is searched for within the problem's search.time_limit_s unless solve is false, and which single move "
    "improves it most.",
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
        f"time limit of {settings.max_time_limit_s:g} s, and solves {settings.solves} at a time.\n\n"
        "From when its first API key is made, and always where others than this machine reach it, every call but those "
        "of health and these pages needs one: Authorization: Bearer partita_…"
    )


_INCLUDE_MORE: Document = {
    **INCLUDE,
    "description": f"{INCLUDE['description']} With 'report' it comes with the same in the words of the command line.",
    "schema": {"type": "string", "enum": ["problem", "report"]},
}


def _evaluating(settings: Settings, body: Document, answer: Document) -> Document:
    """Describe the call that prices a given plan, which is answered at once."""
    killed = f" A solve that outlives its limit by {settings.grace_s:g} s is killed."
    return {
        "operationId": "evaluate",
        "summary": _EVALUATE[0],
        "description": _EVALUATE[1] + killed,
        "parameters": [_INCLUDE_MORE],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": body, "examples": examples.EVALUATIONS}},
        },
        "responses": {
            "200": json_response(
                "The answer, also where the plan breaks a limit.", {"anyOf": [answer, reference("Evaluated")]}
            ),
            **failures([400, 408, 413, 415, 422, 500, 503, 504]),
        },
    }
