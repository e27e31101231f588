"""What the service allows and how much it does at once."""

import os
from dataclasses import dataclass, field
from pathlib import Path

MIB = 2**20
GIB = 2**30
DAY_S = 86_400.0


def default_folder() -> Path:
    """Give the folder for what the service keeps, as desktops have it (XDG)."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state") / "partita"


def _cores() -> int:
    """Give the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of one server.

    Attributes
    ----------
    max_body_bytes
        Largest body of a request.
    body_timeout_s
        Longest time in which a body must have arrived.
    max_layers, max_devices, max_candidates, max_time_limit_s, max_workers
        The most that one problem may hold or ask for.
    solves
        How many problems are solved at the same time; each has a process of its own.
    max_waiting
        How many more requests may be under way at the same time.
    slot_wait_s
        Longest time for which a request waits for its turn.
    reading_s
        Longest time for reading and checking a problem.
    grace_s
        How long a solve may outlive the problem's own time limit before its process is killed.
    solve_memory_bytes
        Address space of one solve; 0 for no limit.
    shutdown_s
        How long a server that stops waits for requests that are being answered.
    data
        Folder of the database, where that is a file.
    database
        Address of PostgreSQL; None for a file of SQLite in ``data``.
    require_keys
        Whether every request needs an API key, even before the first one is made.
    log_json
        Whether the log is JSON, an object on every line, in place of lines for people.
    max_documents, max_document_bytes
        How many profiles and clusters one owner may store, and how large they may be together.
    max_variants
        The most problems of a batch.
    max_queued
        The most jobs that may wait.
    max_wait_s
        The longest time for which a request may wait for its answer.
    lease_s
        After how long without a sign a worker counts as gone, and its jobs are given to others.
    keep_s
        How long jobs and answers are kept after they ended.
    """

    max_body_bytes: int = 32 * MIB
    body_timeout_s: float = 60.0
    max_layers: int = 20_000
    max_devices: int = 20_000
    max_candidates: int = 100
    max_time_limit_s: float = 600.0
    max_workers: int = max(2, _cores())
    solves: int = max(1, _cores() // 2)
    max_waiting: int = 64
    slot_wait_s: float = 10.0
    reading_s: float = 30.0
    grace_s: float = 10.0
    solve_memory_bytes: int = 16 * GIB
    shutdown_s: float = 5.0
    data: Path = field(default_factory=default_folder)
    database: str | None = None
    require_keys: bool = False
    max_documents: int = 1_000
    max_document_bytes: int = 256 * MIB
    log_json: bool = False
    max_variants: int = 10_000
    max_queued: int = 20_000
    max_wait_s: float = 60.0
    lease_s: float = 15.0
    keep_s: float = 30 * DAY_S
