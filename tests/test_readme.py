"""Tests that what the README shows is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_answer_is_the_real_one(tmp_path: Path) -> None:
    """Tests that planning the README's problem prints the README's answer."""
    problem = re.search(r"cat > problem.json <<'END'\n(.*?)\nEND\n", README, re.DOTALL)
    answer = re.search(r"```text\n(problem: .*?)\n```", README, re.DOTALL)
    assert problem and answer
    (tmp_path / "problem.json").write_text(problem[1], encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "partita.service", "plan", "problem.json"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = [line.rstrip() for line in run.stdout.rstrip().split("\n")]
    assert printed == answer[1].split("\n")


def test_the_other_commands_work(tmp_path: Path) -> None:
    """Tests that pricing a plan and importing a profile work as they are shown."""
    problem = re.search(r"cat > problem.json <<'END'\n(.*?)\nEND\n", README, re.DOTALL)
    commands = re.search(r"```sh\n(echo .*?)```", README, re.DOTALL)
    assert problem and commands
    (tmp_path / "problem.json").write_text(problem[1], encoding="utf-8")
    run = subprocess.run(
        ["sh", "-e", "-c", commands[1].replace(".venv/bin/partita", f"{sys.executable} -m partita.service")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "557.6 ms, the same" in run.stdout
    assert "imported: 2 layers" in run.stdout
