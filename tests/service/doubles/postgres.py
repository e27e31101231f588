"""A PostgreSQL of its own for tests, where one is installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

USER = "postgres"
"""Who runs it where tests run as root, which PostgreSQL refuses to be."""


def programs():
    """Give the folder of PostgreSQL's programs; None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    path = str(found[-1]) if found else shutil.which("initdb")
    return Path(path).parent if path else None


@dataclass
class Server:
    """A running server: the address of an empty database, and how to end and start it again at once."""

    address: str
    restart: Callable[[], None]


@contextmanager
def postgres():
    """Run a server that listens on a socket in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="partita-postgres-"))
    run = []
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
        run = ["runuser", "-u", USER, "--"]
    data, bin_ = folder / "data", programs()

    def do(*command):
        subprocess.run([*run, *map(str, command)], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    try:
        do(bin_ / "initdb", "-D", data, "-U", "partita", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=200"
        do(bin_ / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            do(bin_ / "createdb", "-h", folder, "-U", "partita", "partita")
            again = ("-D", data, "-m", "immediate", "-w", "-l", folder / "log", "-o", options, "restart")
            yield Server(f"postgresql://partita@/partita?host={folder}", lambda: do(bin_ / "pg_ctl", *again))
        finally:
            do(bin_ / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
