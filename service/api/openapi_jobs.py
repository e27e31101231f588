"""The description of the calls about jobs: those of plans and those of fronts."""

from partita.service.api.openapi_parts import (
    INCLUDE,
    JOB,
    KEY,
    LIST,
    Document,
    failures,
    json_response,
    prefer,
    reference,
)
from partita.service.reports.formats import FORMATS
from partita.service.settings import Settings

CANDIDATE: Document = {
    "name": "candidate",
    "in": "query",
    "required": False,
    "description": "Which plan of the answer is meant.",
    "schema": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1},
}

POINT: Document = {**CANDIDATE, "description": "Which point of the front is meant, from 1."}

ASKING = (400, 408, 409, 413, 415, 422, 429, 500, 503, 504)
"""The statuses of problem documents of calls that take a problem."""

WAITING = (
    " The answer comes with 200 where it is there within the time that the request waits, else the job with 202; both "
    "are kept and survive the end of the server. The header Location leads to the job. What was answered before is "
    "answered from the store, with the header Age, unless the request says Cache-Control: no-cache. A client that "
    "leaves while it waits cancels the job, unless it gave an Idempotency-Key."
)


def asking(
    name: str, texts: tuple[str, str], settings: Settings, shown: Document, body: Document, answer: Document
) -> Document:
    """Describe a call that takes a problem and gives an answer or a job."""
    killed = f" A solve that outlives its limit by {settings.grace_s:g} s is killed."
    job = json_response(
        "The job, which goes on.", reference("JobDocument"), Location="The job.", Retry_After="When to look again."
    )
    done = json_response(
        "The answer, also where there is no plan.", answer, Location="The job.", Age="Seconds since it was found."
    )
    return {
        "operationId": name,
        "summary": texts[0],
        "description": texts[1] + WAITING + killed,
        "parameters": [INCLUDE, prefer(settings), KEY],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body, "examples": shown}}},
        "responses": {"200": done, "202": job, **failures(ASKING)},
    }


def listing(name: str, what: str) -> Document:
    """Describe the list of jobs."""
    return {
        "operationId": name,
        "summary": f"List jobs for {what}",
        "description": "The newest first, without their answers and without those of batches.",
        "parameters": list(LIST),
        "responses": {"200": json_response("The jobs.", reference("JobList")), **failures((422, 500, 503))},
    }


_EXPORTED = {"plan": "a plan", "frontier": "the plan of a point"}
"""What is written for another program of the answer to a kind of job."""


def exporting(kind: str) -> Document:
    """Describe the call that writes a plan for another program."""
    media: Document = {}
    for format in FORMATS.values():
        media[format.media_type] = {"schema": {} if format.media_type == "application/json" else {"type": "string"}}
    named = {
        "name": "format",
        "in": "path",
        "required": True,
        "description": "; ".join(f"{name}: {format.summary}" for name, format in FORMATS.items()) + ".",
        "schema": {
            "type": "string",
            "enum": list(FORMATS),
            "x-enum-descriptions": [format.summary for format in FORMATS.values()],
        },
        "example": "torchtitan",
    }
    return {
        "operationId": f"export_{kind}",
        "summary": f"Write {_EXPORTED[kind]} for another program",
        "description": "The text is read back and compared with the plan first. A plan that the other program would "
        "not run as planned is refused, with the reason.",
        "parameters": [JOB, named, CANDIDATE if kind == "plan" else POINT],
        "responses": {
            "200": {"description": "The text.", "content": media},
            **failures((400, 404, 409, 422, 500, 503, 504)),
        },
    }


_TOLD = {
    "plan": "how good the best plan is proven to be, or why there is none and what would help, and what a plan costs",
    "frontier": "what is proven of the front and where more of it may lie, or why there is no plan",
}
"""What the answer to a kind of job says in words."""


def reporting(kind: str) -> Document:
    """Describe the call that tells the answer to a kind of job in words."""
    return {
        "operationId": f"report_{kind}",
        "summary": "Tell what an answer says" if kind == "plan" else "Tell what a front says",
        "description": f"In the words of the command line: {_TOLD[kind]}.",
        "parameters": [JOB, CANDIDATE] if kind == "plan" else [JOB],
        "responses": {
            "200": json_response("The words.", reference("Report")),
            **failures((400, 404, 409, *((422,) if kind == "plan" else ()), 500, 503, 504)),
        },
    }


def about_jobs(path: str, what: str) -> Document:
    """Describe the calls about one job, by their paths."""
    job = json_response("The job.", reference("JobDocument"))
    missing = failures((404, 500, 503))
    events = {
        "description": "Events named progress (at every change) and heartbeat (between) with the job, and end with the "
        "job and its answer.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
    return {
        f"{path}/{{job}}": {
            "get": {
                "operationId": f"get_{what}",
                "summary": "Give a job and its answer",
                "description": "While it runs: its phase, the best value so far, the bound and the gap, and whether it "
                "still improves.",
                "parameters": [JOB, INCLUDE],
                "responses": {"200": job, **failures((404, 422, 500, 503))},
            },
            "delete": {
                "operationId": f"cancel_{what}",
                "summary": "Cancel a job",
                "description": "Its process ends within a second. A job that has ended stays as it is.",
                "parameters": [JOB],
                "responses": {"200": job, **missing},
            },
        },
        f"{path}/{{job}}/events": {
            "get": {
                "operationId": f"follow_{what}",
                "summary": "Follow a job",
                "description": "Server-sent events until the job ends.",
                "parameters": [JOB],
                "responses": {"200": events, **missing},
            }
        },
        f"{path}/{{job}}/stop": {
            "post": {
                "operationId": f"stop_{what}",
                "summary": "Let a job end with what it has found",
                "description": "It then succeeds with the best that it has; a job that waits does so when it begins.",
                "parameters": [JOB],
                "responses": {"200": job, "202": job, **missing},
            }
        },
    }
