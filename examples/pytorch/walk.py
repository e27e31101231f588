"""Profiles, plans and verifies a model, each by a command of partita; what the examples beside this file run."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def walk(script: str, *, profile: Sequence[str]) -> None:
    """Run the three commands for the function ``build`` of a script; end with the exit code of one that fails.

    Parameters
    ----------
    script
        The path of the script.
    profile
        Options of ``partita profile``. Given on the script's own command line, a path is where the problem is written,
        so that it can be kept.
    """
    with tempfile.TemporaryDirectory() as folder:
        problem = sys.argv[1] if sys.argv[1:] else f"{folder}/problem.json"
        answer = f"{folder}/answer.json"
        _partita("profile", f"{script}:build", *profile, "-o", problem)
        _partita("plan", problem, "-o", answer)
        _partita("verify", answer, f"{script}:build")


def _partita(*arguments: str) -> None:
    """Show a command and run it."""
    shown = [Path(each).name if Path(each).is_absolute() else each for each in arguments]
    print(f"$ partita {shlex.join(shown)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "partita.service", *arguments], check=False).returncode
    if code:
        sys.exit(code)
    print(flush=True)
