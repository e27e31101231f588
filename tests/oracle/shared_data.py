"""Published inputs of other planners, kept beside the repository."""

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared_file(name: str) -> bytes:
    """Read a file of the data folder; skip the test where it is absent."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"the shared data folder lacks {name}")
    return path.read_bytes()
