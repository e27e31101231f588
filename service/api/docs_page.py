"""GET /docs: the description of the service for people, without anything from outside."""

import json
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from partita.service.api.openapi import Document
from partita.service.api.pages import HEADERS, READING
from partita.service.problem_document import KINDS

router = APIRouter()


@router.api_route("/docs", methods=READING, include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """Give the page; its examples can be sent from it."""
    return HTMLResponse(render(request.app.state.openapi), headers=HEADERS)


def render(document: Document) -> str:
    """Turn an OpenAPI document into a page."""
    info = document["info"]
    operations = [
        _operation(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in info["description"].split("\n\n"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="/page/icon.svg">'
        f"<title>{escape(info['title'])}</title>"
        '<link rel="stylesheet" href="/page/docs.css"><script type="module" src="/page/docs.js"></script></head><body>'
        f"<h1>{escape(info['title'])} <small>{escape(info['version'])}</small></h1>{paragraphs}"
        '<p>For people: <a href="/">plan on the page</a>. For programs: '
        '<a href="/openapi.json">/openapi.json</a>.</p>'
        '<p><label>API key, where the server asks for one: <input id="key" type="password" autocomplete="off">'
        "</label></p>"
        f"<h2>Calls</h2>{_contents(document)}{''.join(operations)}<h2>Errors</h2>{_kinds()}"
        f"<h2>Schemas</h2>{''.join(schemas)}</body></html>"
    )


def _contents(document: Document) -> str:
    """List all calls, each with a link to it."""
    items = "".join(
        f'<li><a href="#{escape(operation["operationId"])}"><code>{method.upper()} {escape(path)}</code></a> '
        f"{escape(operation['summary'])}</li>"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return f"<details open><summary>All calls</summary><ul>{items}</ul></details>"


def _operation(path: str, method: str, operation: Document) -> str:
    """Show one call, with its examples ready to be sent."""
    verb = method.upper()
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    parameters = "".join(
        f"<li><code>{escape(_parameter(item))}</code> {escape(item['description'])}</li>"
        for item in operation.get("parameters", [])
    )
    responses = "".join(
        f"<li><b>{escape(status)}</b> {escape(response['description'])}{_type_of(response)}</li>"
        for status, response in operation["responses"].items()
    )
    sent = path
    for item in operation.get("parameters", []):
        sent = sent.replace(f"{{{item['name']}}}", str(item.get("example")))
    examples = "".join(
        _example(verb, sent, example["summary"], json.dumps(example["value"], indent=1, ensure_ascii=False))
        for example in content.get("examples", {}).values()
    )
    body = f"<p>Body: {_type(content['schema'])}</p>" if content else ""
    if not content and "{" not in path:
        body = _example(verb, path, "Try it", None)
    return (
        f'<section id="{escape(operation["operationId"])}"><h3><code>{verb} {escape(path)}</code></h3>'
        f"<p><b>{escape(operation['summary'])}.</b> {escape(operation.get('description', ''))}</p>"
        f"<ul>{parameters}</ul>{body}{examples}<details><summary>Responses</summary><ul>{responses}</ul></details>"
        "</section>"
    )


def _parameter(item: Document) -> str:
    """Show how a parameter is written."""
    value = "|".join(item["schema"].get("enum", ["…"]))
    name = str(item["name"])
    return {"query": f"?{name}={value}", "header": f"{name}: {value}"}.get(item["in"], name)


def _example(verb: str, path: str, summary: str, body: str | None) -> str:
    """Show an example with a button that sends it."""
    text = "" if body is None else f'<textarea rows="12" spellcheck="false">{escape(body)}</textarea>'
    return (
        f"<details><summary>{escape(summary)}</summary>"
        f'<div class="example" data-method="{escape(verb)}" data-path="{escape(path)}">{text}'
        '<button type="button">Send</button><output></output><pre hidden></pre></div></details>'
    )


def _kinds() -> str:
    """List the kinds of problem, each under the name that the type of a problem document leads to."""
    rows = "".join(
        f'<tr id="{escape(kind.name)}"><td>{kind.status}</td><td><code>/docs#{escape(kind.name)}</code></td>'
        f"<td>{escape(kind.title)}</td><td>{escape(kind.meaning)}</td></tr>"
        for kind in KINDS
    )
    return f"<table><tr><th>Status</th><th>Type</th><th>Title</th><th>What to do</th></tr>{rows}</table>"


def _schema(name: str, schema: Document) -> str:
    """Show one schema: what it is, and its fields."""
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code></td><td>{_type(part)}</td>"
        f"<td>{_default(field in required, part)}</td><td>{escape(part.get('description', ''))}</td></tr>"
        for field, part in schema.get("properties", {}).items()
    )
    head = "<tr><th>Field</th><th>Type</th><th>Default</th><th>Meaning</th></tr>"
    table = f"<table>{head}{rows}</table>" if rows else _type(schema)
    return (
        f'<details id="schema-{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        f"<pre>{escape(schema.get('description', ''))}</pre>{table}</details>"
    )


def _default(required: bool, part: Document) -> str:
    """Say what holds where a field is left out."""
    return "required" if required else f"<code>{escape(json.dumps(part.get('default'), ensure_ascii=False))}</code>"


def _type_of(response: Document) -> str:
    """Show what a response holds."""
    shown = [f" {_type(content['schema'])}" for content in response.get("content", {}).values()]
    return "".join(shown)


def _type(schema: Any) -> str:
    """Show a type, with links to the schemas that it is made of."""
    if not isinstance(schema, dict):
        return "anything"
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[1])
        return f'<a href="#schema-{name}">{name}</a>'
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(part) for part in schema[key]))
    if "enum" in schema or "const" in schema:
        choices = schema.get("enum", [schema.get("const")])
        return " or ".join(f"<code>{escape(json.dumps(choice))}</code>" for choice in choices)
    if schema.get("type") == "array":
        return f"list of ({_type(schema.get('items'))})"
    if schema.get("type") == "object" and "additionalProperties" in schema and "properties" not in schema:
        return f"object of ({_type(schema['additionalProperties'])})"
    return escape(str(schema.get("type", "anything")))
