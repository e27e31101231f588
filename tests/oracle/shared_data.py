"""Published inputs of other planners, kept beside the repository."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def shared_file(name: str, folder: str = "data") -> bytes:
    """Read a file of a shared folder; skip the test where it is absent."""
    path = SHARED / folder / name
    if not path.is_file():
        pytest.skip(f"the shared {folder} folder lacks {name}")
    return path.read_bytes()
