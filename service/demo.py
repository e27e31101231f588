"""``python -m partita.service.demo``: the whole way, from problems in files to reports, over HTTP.

It starts the service on a free port, waits until it is alive, sends it the problems, prints the reports and stops it.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from partita.models.answer import Answer
from partita.models.document import read_json, validate
from partita.models.problem import Problem
from partita.service.reports.report import print_report

START_S = 30.0
STOP_S = 15.0
EXAMPLES = (Path("examples") / "gpt-22b.json", Path("examples") / "pytorch" / "gpt.json")
"""A model from published figures, and one that was captured and measured by ``partita profile``."""


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Asks without a proxy, whatever the environment says."""


class DemoFailed(Exception):
    """Why the demonstration did not work."""


def main(arguments: list[str]) -> int:
    """Run the demonstration with the examples, or with the problems in the files named; give the exit code."""
    paths = [Path(each) for each in arguments] or EXAMPLES
    try:
        with service() as url:
            for number, path in enumerate(paths):
                print("\n" * (number > 0) + f"POST {url}/v1/plans < {path}\n", flush=True)
                answer = ask(f"{url}/v1/plans?include=problem", path.read_bytes())
                if answer.problem is None or not answer.candidates:
                    raise DemoFailed(f"the answer has no plan: {answer.status}")
                print_report(answer, answer.problem, sys.stdout, title=path.stem)
    except (DemoFailed, OSError, ValueError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def service() -> Iterator[str]:
    """Run the service on a free loopback port; give its address, and stop it at the end.

    Raises
    ------
    DemoFailed
        When it does not come up or does not stop.
    """
    with tempfile.TemporaryDirectory() as folder, _service(folder) as url:
        yield url


@contextmanager
def _service(folder: str) -> Iterator[str]:
    """Run the service with its store in a folder."""
    command = [sys.executable, "-m", "partita.service", "serve", "--port", "0", "--data", folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        log: list[str] = []
        assert process.stdout is not None
        assert process.stderr is not None
        threading.Thread(target=log.extend, args=(process.stderr,), daemon=True).start()
        try:
            found = re.search(r"http://\S+", process.stdout.readline())
            if found is None:
                raise DemoFailed("the service did not start:\n" + "".join(log[-5:]))
            _wait_until_alive(found[0], process)
            yield found[0]
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise DemoFailed(f"the service did not stop within {STOP_S:g} s") from None


def _wait_until_alive(url: str, process: "subprocess.Popen[str]") -> None:
    """Ask for the health of the service until it answers."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with OPENER.open(f"{url}/healthz", timeout=START_S) as response:
                if json.load(response)["status"] == "ok":
                    return
        except OSError:
            time.sleep(0.05)
    raise DemoFailed(f"the service did not answer within {START_S:g} s")


def ask(url: str, problem: bytes) -> Answer:
    """Send a problem and give the answer.

    Raises
    ------
    DemoFailed
        When the service answers with an error.
    """
    request = urllib.request.Request(url, problem, {"Content-Type": "application/json", "Prefer": "wait=60"})
    limit_s = validate(Problem, read_json(problem)).search.time_limit_s + START_S
    try:
        with OPENER.open(request, timeout=limit_s) as response:
            if response.status == HTTPStatus.ACCEPTED:
                raise DemoFailed("the service did not answer within 60 s")
            return validate(Answer, read_json(response.read()))
    except urllib.error.HTTPError as error:
        with error:
            raise DemoFailed(f"{error.code}: {error.read().decode(errors='replace')}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
