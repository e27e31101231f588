"""Tests that what the README shows is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_answer_is_the_real_one(tmp_path: Path) -> None:
    """Tests that planning the README's problem prints the README's answer."""
    problem = re.search(r"cat > small.json <<'END'\n(.*?)\nEND\n", README, re.DOTALL)
    answer = re.search(r"```text\n(model: .*?)\n```", README, re.DOTALL)
    assert problem and answer
    (tmp_path / "small.json").write_text(problem[1], encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "partita.service", "plan", "small.json"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = [line.rstrip() for line in run.stdout.rstrip().split("\n")]
    assert printed == answer[1].split("\n")
