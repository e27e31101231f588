"""The description of the calls about batches."""

from typing import Any

from partita.service.api.batches import NDJSON
from partita.service.api.openapi_parts import BATCH, INCLUDE, KEY, PAGE, Document, failures, json_response, reference
from partita.service.settings import Settings

_TEXT = (
    "The body holds problems, or a base and variants of it as JSON merge patches (RFC 7396), or as NDJSON a problem on "
    'every line, which may also be written {"name": ..., "problem": {...}}. All are taken in one step, or none. Each '
    "problem is a job of its own: a wrong one fails alone, equal ones are solved once."
)


def about_batches(settings: Settings, shown: dict[str, dict[str, Any]]) -> Document:
    """Describe the calls, by their paths."""
    batch = json_response("The batch.", reference("BatchDocument"))
    missing = failures((404, 500, 503))
    lines = {
        "description": "A line for every problem, in the order in which they end.",
        "content": {NDJSON: {"schema": reference("BatchResult")}},
    }
    return {
        "/v1/batches": _all_batches(settings, shown),
        "/v1/batches/{batch}": {
            "get": {
                "operationId": "get_batch",
                "summary": "Give a batch as it stands",
                "description": "How many of its problems are in each state, and a forecast of its end.",
                "parameters": [BATCH],
                "responses": {"200": batch, **missing},
            },
            "delete": {
                "operationId": "cancel_batch",
                "summary": "Cancel a batch",
                "description": "What has ended stays; what runs ends within a second.",
                "parameters": [BATCH],
                "responses": {"200": batch, **missing},
            },
        },
        "/v1/batches/{batch}/results": {
            "get": {
                "operationId": "batch_results",
                "summary": "Give the results of a batch as they arrive",
                "description": "The response ends with the batch; asked again, it has all results from the first on.",
                "parameters": [BATCH],
                "responses": {"200": lines, **missing},
            }
        },
    }


def _all_batches(settings: Settings, shown: dict[str, dict[str, Any]]) -> Document:
    """Describe the calls that begin a batch and list those so far."""
    content = {
        "application/json": {"schema": reference("BatchRequest"), "examples": shown},
        NDJSON: {"schema": {"description": "A problem on every line; a line that is none fails alone."}},
    }
    return {
        "post": {
            "operationId": "batch",
            "summary": "Find plans for many problems",
            "description": f"{_TEXT} A batch may hold {settings.max_variants} problems.",
            "parameters": [INCLUDE, KEY],
            "requestBody": {"required": True, "content": content},
            "responses": {
                "202": json_response("The batch.", reference("BatchDocument"), Location="The batch."),
                **failures((400, 408, 409, 413, 415, 422, 429, 500, 503, 504)),
            },
        },
        "get": {
            "operationId": "list_batches",
            "summary": "List batches",
            "description": "The newest first, without forecasts.",
            "parameters": list(PAGE),
            "responses": {
                "200": json_response("The batches.", reference("BatchList")),
                **failures((422, 500, 503)),
            },
        },
    }
