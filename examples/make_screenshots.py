"""Takes the screenshots of README.md from the running page: ``make screenshots`` writes docs/pictures/page-*.png.

Needs Chromium, and Playwright and Pillow of the extra ``dev``.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 1280
MOST_BYTES = 150_000
"""Pictures stay small, for clones and for readers."""

PROBLEM = json.loads((ROOT / "examples" / "gpt-22b.json").read_bytes())


@contextmanager
def served() -> Iterator[str]:
    """Run a server with an empty store; give its address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "partita.service", "serve", "--port", "0", "--data", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            try:
                assert address, "the server says where it is"
                yield address[0]
            finally:
                process.terminate()


def ask(page: Page, problem: object) -> None:
    """Write a problem and have it planned."""
    page.get_by_label("Problem").fill(json.dumps(problem, indent=1))
    page.get_by_role("button", name="Plan", exact=True).click()


def take(page: Page, name: str, height: int) -> None:
    """Write what the window shows from the top."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.mouse.move(0, 0)
    path = PICTURES / f"{name}.png"
    image = Image.open(BytesIO(page.screenshot()))
    image.convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(path, optimize=True)
    size = path.stat().st_size
    assert size <= MOST_BYTES, f"{name} has {size} bytes"
    print(f"{path.relative_to(ROOT)}: {size} bytes")


def plan(page: Page) -> None:
    """Show a plan with its first pictures."""
    ask(page, PROBLEM)
    expect(page.locator(".headline")).to_be_visible(timeout=120_000)
    expect(page.locator(".drawing[aria-busy]")).to_have_count(0, timeout=60_000)
    take(page, "page-plan", 1500)


def faults(page: Page) -> None:
    """Show what is wrong in a problem, at its lines."""
    wrong = json.loads(json.dumps(PROBLEM))
    wrong["model"]["layers"][1]["forward_s"] = -0.1
    wrong["model"]["layers"][1]["output_bites"] = wrong["model"]["layers"][1].pop("output_bytes")
    ask(page, wrong)
    expect(page.get_by_text("things to correct")).to_be_visible(timeout=60_000)
    take(page, "page-problem", 760)


def main() -> None:
    """Take all screenshots."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("this needs chromium (on Debian: apt-get install chromium)")
    PICTURES.mkdir(exist_ok=True)
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for show in (plan, faults):
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, locale="en-US", timezone_id="UTC")
            page.goto(address)
            show(page)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
