"""Many jobs, a part at a time: SQLite and PostgreSQL limit how many parameters a statement may have."""

from collections.abc import Iterable

AT_ONCE = 200
"""The most jobs that are named in one statement."""


def in_parts(jobs: Iterable[str]) -> list[list[str]]:
    """Split jobs into parts that can be named at once."""
    every = list(jobs)
    return [every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE)]
