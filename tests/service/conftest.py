import os
import signal
import sys
from pathlib import Path

import pytest

from partita.service.api.app import create_app
from partita.service.settings import Settings

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DOUBLES = str(HERE / "doubles")

if DOUBLES not in sys.path:  # the processes of solves find their work by its module
    sys.path.insert(0, DOUBLES)
SEARCHED = [str(ROOT / "src"), DOUBLES, *filter(None, [os.environ.get("PYTHONPATH")])]
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(SEARCHED))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background: programs would be deaf to Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def real_server(tmp_path_factory):
    """A server as users start it."""
    from processes import running  # after the line above that lets it be found

    folder = str(tmp_path_factory.mktemp("data"))
    with running("-m", "partita.service", "serve", "--port", "0", "--slot-wait", "60", "--data", folder) as found:
        yield found


@pytest.fixture(scope="session")
def real_client(real_server):
    return real_server[1]


@pytest.fixture
def file(tmp_path):
    """Write JSON, or a text or bytes as they are, to a file and give its path."""
    from small_problems import as_bytes  # after the line above that lets it be found

    def write(value, name="problem.json"):
        path = tmp_path / name
        text = value.encode() if isinstance(value, str) else value
        path.write_bytes(text if isinstance(text, bytes) else as_bytes(text))
        return str(path)

    return write


@pytest.fixture
def make_app(tmp_path):
    """Make applications whose solves are doubles; none of their processes stays.

    They do not take jobs from the queue: a process can be one worker only.
    """
    made = []

    def make(work=None, **settings):
        app = create_app(
            Settings(**{"data": tmp_path / str(len(made)), **settings}), **({"work": work} if work else {})
        )
        app.state.jobs.open()
        made.append(app)
        return app

    yield make
    for app in made:
        app.state.jobs.close()
