"""Files of the command line: written whole or not at all."""

import os
import stat

import pytest

from partita.service.commands.files import check_writable, write_whole


def test_written_whole(tmp_path):
    """Tests that a file is written with ordinary permissions and nothing beside it."""
    path = tmp_path / "answer.json"
    write_whole(str(path), "né")
    assert path.read_bytes() == "né".encode()
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert os.listdir(tmp_path) == ["answer.json"]


def test_replaced_with_its_permissions(tmp_path):
    """Tests that a file that was there keeps its permissions, and a link stays a link."""
    path, link = tmp_path / "answer.json", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_whole(str(link), "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_old_file_stays_when_writing_fails(tmp_path, monkeypatch):
    """Tests that an error leaves the old file and no other."""
    path = tmp_path / "answer.json"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(str(path), "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["answer.json"]


def test_devices_are_written_to():
    """Tests that a device is written to, not replaced."""
    check_writable("/dev/null")
    write_whole("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
