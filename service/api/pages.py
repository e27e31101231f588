"""The page at /, and the files that it and /docs load: all from the package, none from anywhere else."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.responses import Response

from partita.service.problem_document import NOT_FOUND, Refusal

router = APIRouter(include_in_schema=False)

_HTML, _CSS = "text/html; charset=utf-8", "text/css; charset=utf-8"
_SCRIPT, _IMAGE = "text/javascript; charset=utf-8", "image/svg+xml"

ASSETS = {
    **{name: _CSS for name in ("docs.css", "page.css", "views.css")},
    **{
        f"{name}.js": _SCRIPT
        for name in (
            *("access", "api", "chart", "docs", "dom", "editor", "follow", "format", "json_places"),
            *("answer", "exports", "live", "main", "recent", "remembered", "tables"),
            *("view_home", "view_plan"),
            *("cuts", "strip", "view_what_if"),
            *("moves", "sides", "view_compare"),
            *("front_form", "view_front"),
            *("batch_follow", "batch_rows", "csv", "grid", "objective", "sorting", "view_batch", "view_batches"),
        )
    },
    "vega.js": _SCRIPT,
    "vega-licenses.txt": "text/plain; charset=utf-8",
    "icon.svg": _IMAGE,
}
"""The files that pages load, with their media types; nothing else of the folder is given away."""

READING = ["GET", "HEAD"]
"""How pages and their files are asked for; the server sends no body for HEAD."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; style-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What a page may do: load from this server, and nothing written into the page itself is run."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the page, and the entity tag of its content."""

    content: bytes
    tag: str


@router.api_route("/", methods=READING)
async def page(request: Request) -> Response:
    """Give the page."""
    return _response(request, "index.html", _HTML)


@router.api_route("/page/{name}", methods=READING)
async def asset(request: Request, name: str) -> Response:
    """Give a file that a page loads."""
    if name not in ASSETS:
        raise Refusal(NOT_FOUND, "there is nothing under this path")
    return _response(request, name, ASSETS[name])


def _response(request: Request, name: str, media_type: str) -> Response:
    """Give a file, unless the browser has it; it asks each time, so that an upgrade is seen at once."""
    file = _read(name)
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=media_type)


@cache
def _read(name: str) -> _File:
    """Read a file from the package."""
    content = files("partita.service").joinpath("page", name).read_bytes()
    return _File(content, f'"{sha256(content).hexdigest()[:32]}"')
