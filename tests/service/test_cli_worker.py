"""The command ``partita worker``."""

import signal
import subprocess
import sys

import pytest
from processes import ROOT


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_works_until_it_is_told_to_stop(tmp_path, end):
    """Tests that a worker says under which name it works, and ends in order."""
    command = [sys.executable, "-m", "partita.service", "worker", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout.readline().startswith("Partita works on jobs as ")
            process.send_signal(end)
            assert process.wait(30) == 0
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["serve", "worker"])
def test_a_database_that_cannot_be_used(name):
    """Tests that the reason is told in one line."""
    command = [sys.executable, "-m", "partita.service", name, "--database", "postgresql://me:secret@127.0.0.1:1/x"]
    command += ["--port", "0"] if name == "serve" else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 1
    assert "cannot use the database" in done.stderr
    assert "secret" not in done.stderr and "Traceback" not in done.stderr
