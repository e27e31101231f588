"""What the service writes to its log: a line for every event, for people or as JSON, in which nothing can hide.

A line has no control characters of what clients sent, and what takes several lines, such as a traceback, is indented,
so that no text can pass for a line of its own.
"""

import json
import logging
from contextvars import ContextVar
from typing import Any

from partita.service.moments import moment

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The request that is being answered, where one is."""

INDENT = "    "


class TextLines(logging.Formatter):
    """Writes lines for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record: when, how grave, what, and for which request."""
        lines = [_visible(line) for line in super().format(record).split("\n")]
        request = REQUEST_ID.get()
        lines[0] = f"{moment(record.created)} {record.levelname} {lines[0]}{'' if request is None else f' [{request}]'}"
        return f"\n{INDENT}".join(lines)


class JsonLines(logging.Formatter):
    """Writes an object of JSON on every line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record with the members of its ``fields``."""
        line: dict[str, Any] = {
            "time": moment(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": REQUEST_ID.get(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_config(as_json: bool) -> dict[str, Any]:
    """Send all logs to standard error: standard output is for the line that says what runs."""
    form = JsonLines if as_json else TextLines
    mine = {"handlers": ["lines"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": form}},
        "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}},
        "loggers": {"uvicorn": mine, "partita": mine},
    }


def _visible(text: str) -> str:
    """Escape what a terminal would not show as it is."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
