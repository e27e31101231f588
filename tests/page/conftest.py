"""A browser, a real server, and pages that may do nothing that a user should not see."""

import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DOUBLES = str(ROOT / "tests" / "service" / "doubles")
CHROMIUM = shutil.which("chromium")
OFTEN = re.compile(r"Failed to load resource: the server responded with a status of (\d+)|net::ERR_")
"""What the browser itself writes about responses that are refusals, and about servers that are away."""

if DOUBLES not in sys.path:  # where tests of the service have their helpers
    sys.path.insert(0, DOUBLES)
SEARCHED = [str(ROOT / "src"), DOUBLES, *filter(None, [os.environ.get("PYTHONPATH")])]
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(SEARCHED))


@pytest.fixture(scope="package")
def browser():
    """Debian's Chromium.

    Closed after the tests of this folder: while it is driven its event loop runs in this thread, and other tests run
    loops of their own.
    """
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server as users start it; its process, and a client of it."""
    from processes import running  # after the lines above that let it be found

    folder = str(tmp_path_factory.mktemp("data"))
    with running("-m", "partita.service", "serve", "--port", "0", "--slot-wait", "60", "--data", folder) as found:
        yield found


class Watch:
    """What a page did.

    ``allowed`` are the statuses of refusals that a test brings about, 0 for a server that is away.
    """

    def __init__(self, page, origin):
        self.page, self.origin, self.allowed, self.wrong = page, origin, set(), []
        page.on("console", self.written)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", self.asked)

    def written(self, message):
        known = OFTEN.search(message.text)
        status = int(known[1] or 0) if known else None
        if message.type in ("error", "warning") and status not in self.allowed:
            self.wrong.append(f"{message.type}: {message.text}")

    def asked(self, request):
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.wrong.append(f"request: {request.url}")


@pytest.fixture
def visit(browser):
    """Open pages; a test fails where one of them writes an error or asks another origin for something."""
    watches = []

    def open_page(address, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(30_000)
        page = context.new_page()
        parts = urlsplit(str(address))
        page.watch = Watch(page, f"{parts.scheme}://{parts.netloc}")
        watches.append(page.watch)
        page.goto(str(address))
        return page

    yield open_page
    wrong = [line for watch in watches for line in watch.wrong]
    for watch in watches:
        watch.page.context.close()
    assert wrong == []


@pytest.fixture
def home(visit, server):
    """The page where problems are written."""
    return visit(server[1].base_url)
