"""How soon the page is there and how long its largest ordinary picture takes, in Chromium on this machine.

Run as ``.venv/bin/python benchmarks/page.py``; needs Chromium, and Playwright of the extra ``dev``. The goals are a
second each. Beside the first paint stands that of /docs, which is plain HTML; beside the timeline of 16 ranks and 64
microbatches one of 4 and 16, which has a sixteenth of its bars.
"""

import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

RUNS = 5
LARGE, SMALL = (16, 64), (4, 16)
"""Ranks and microbatches."""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
DRAW = """async (path) => {
  await import("/page/vega.js");
  const begin = performance.now();
  const specification = await (await fetch(path)).json();
  const fetched = performance.now();
  const frame = document.createElement("div");
  document.body.append(frame);
  const options = { ast: true, actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
  const { view } = await vegaEmbed(frame, specification, options);
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const drawn = performance.now();
  view.finalize();
  frame.remove();
  return [(fetched - begin) / 1000, (drawn - fetched) / 1000];
}"""
"""Gives the seconds until a picture is here, and until it is drawn."""


def problem(ranks: int, microbatches: int) -> dict[str, Any]:
    """Give a chain with three layers for every rank."""
    layers = [
        {
            "name": f"block.{number}",
            "forward_s": 1e-3 * (8 + number % 5),
            "backward_s": 2e-3 * (8 + number % 4),
            "weight_bytes": 10**8,
            "activation_bytes": 10**8,
            "output_bytes": 10**7,
        }
        for number in range(3 * ranks)
    ]
    fabric = {"bandwidth_bytes_per_s": 3e11, "latency_s": 3e-6}
    return {
        "model": {"layers": layers},
        "cluster": {
            "devices": {"gpu": {"memory_bytes": "80GB"}},
            "nodes": [{"name": "node", "device": "gpu", "count": ranks, "fabric": fabric}],
        },
        "training": {"schedule": "1f1b", "num_stages": ranks, "num_microbatches": microbatches},
        "search": {"candidates": 1},
    }


def planned(address: str, asked: dict[str, Any]) -> str:
    """Plan a problem; give the path of its timeline."""
    headers = {"Content-Type": "application/json", "Prefer": "wait=60"}
    request = urllib.request.Request(f"{address}/v1/plans", json.dumps(asked).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return f"{response.headers['Location']}/charts/timeline"


def painted(browser: Browser, address: str) -> float:
    """Give the seconds until a browser that knows nothing of the server shows something."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    seconds = float(page.evaluate(PAINT))
    context.close()
    return seconds


def drawn(page: Page, path: str) -> tuple[float, float]:
    """Give the medians of fetching and of drawing a picture."""
    runs = [page.evaluate(DRAW, path) for _ in range(RUNS)]
    return median(each[0] for each in runs), median(each[1] for each in runs)


def measure(browser: Browser, address: str) -> None:
    """Measure, and print what was found."""
    print(f"Chromium {browser.version}, Python {platform.python_version()}, {platform.machine()}, medians of {RUNS}")
    page_s, docs_s = (median(painted(browser, f"{address}{path}") for _ in range(RUNS)) for path in ("/", "/docs"))
    print(f"first contentful paint {page_s:.2f} s, {page_s / docs_s:.1f} times that of /docs")
    page = browser.new_page()
    page.goto(address)
    (fetch_s, draw_s), (few_fetch_s, few_draw_s) = (
        drawn(page, planned(address, problem(*size))) for size in (LARGE, SMALL)
    )
    ranks, microbatches = LARGE
    print(
        f"timeline of {ranks} ranks and {microbatches} microbatches: here after {fetch_s:.2f} s, drawn {draw_s:.2f} s "
        f"later; {(fetch_s + draw_s) / (few_fetch_s + few_draw_s):.1f} times that of {SMALL[0]} and {SMALL[1]}"
    )


def main() -> None:
    """Start a server and a browser, and measure."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("there is no chromium on this machine")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "partita.service", "serve", "--port", "0", "--data", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            address = re.search(r"http://[^/\s]+", server.stdout.readline())
            try:
                assert address, "the server says where it is"
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                    measure(browser, address[0])
                    browser.close()
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
