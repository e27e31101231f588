"""Calls of the command line, in this process and in one of its own."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest import mock

from partita.service.cli import main


class Called(NamedTuple):
    """How a command ended."""

    exit_code: int
    out: str
    err: str


def partita(*arguments, stdin=b""):
    """Run a command in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    given = io.TextIOWrapper(io.BytesIO(stdin))
    code = 0
    command = mock.patch("sys.argv", ["partita", *arguments])
    with redirect_stdout(out), redirect_stderr(err), mock.patch("sys.stdin", given), command:
        try:
            main()
        except SystemExit as ending:
            code = ending.code or 0
    return Called(code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())


def run_partita(*arguments, environment=None):
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "partita.service", *arguments],
        capture_output=True,
        env={**os.environ, **(environment or {})},
        timeout=60,
    )
