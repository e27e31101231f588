"""The lines of ``partita batch``: problems in, results out, and what is there already."""

import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, get_args

from partita.models.answer import Status
from partita.models.digest import problem_digest
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.service.commands.files import STANDARD, BadFile, read_bytes, write_whole
from partita.service.problem_document import ProblemDocument
from partita.service.refusals import refusal_of
from partita.service.replies import State
from partita.service.settings import Settings
from partita.service.solving.outcomes import Refused
from partita.service.solving.variants import split

UNLIMITED = 2**31


@dataclass(frozen=True, slots=True)
class End:
    """How a problem ended: ``state``, the problem document or the answer as JSON, and the status of the answer."""

    state: State
    failure: bytes | None = None
    answer: bytes | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One problem.

    Attributes
    ----------
    index, name
        Its place in the file, from 0, and its name there.
    body
        Its JSON.
    digest
        That of the problem; of a line that is none, of its text.
    refused
        How it ended already, where it is no problem.
    """

    index: int
    name: str | None
    body: bytes
    digest: str
    refused: End | None = None

    def result(self, end: End) -> bytes:
        """Write its end as a line of NDJSON."""
        head = {"index": self.index, "name": self.name, "digest": self.digest, "status": end.state}
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":"))[:-1]
        failure, answer = end.failure or b"null", end.answer or b"null"
        return b'%b,"failure":%b,"answer":%b}\n' % (text.encode(), failure, answer)


def read_lines(name: str) -> list[Line]:
    """Read the problems of a file.

    Raises
    ------
    BadFile
        When it cannot be read or holds none; what is wrong in one problem is its result.
    """
    try:
        parts = split(read_bytes(name), True, Settings(max_variants=UNLIMITED))
    except InvalidInput as error:
        raise BadFile(name, error.faults) from None
    return [_line(index, each.name, each.body) for index, each in enumerate(parts.variants)]


def _line(index: int, name: str | None, body: bytes) -> Line:
    """Read one problem."""
    try:
        data = read_json(body)
    except InvalidInput as error:
        return _refused(index, name, body, Refused("not_json", error.faults))
    try:
        return Line(index, name, body, problem_digest(validate(Problem, data)))
    except InvalidInput as error:
        return _refused(index, name, body, Refused("invalid_input", error.faults))


def _refused(index: int, name: str | None, body: bytes, why: Refused) -> Line:
    digest = "sha256:" + hashlib.sha256(body).hexdigest()
    return Line(index, name, body, digest, End("failed", refusal_of(why).document()))


def problem_of(line: Line) -> Problem:
    """Give the problem of a line that holds one."""
    return validate(Problem, read_json(line.body))


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier run has found: ends by digest, and the places that are written already."""

    ends: dict[str, End]
    written: frozenset[int]


@contextmanager
def opened(name: str, lines: list[Line]) -> Iterator[tuple[Known, IO[bytes]]]:
    """Open the results of these problems to append to them, and give what they hold; no other run writes to them.

    Raises
    ------
    BadFile
        When another run writes to them, or as ``resume`` does.
    """
    with open(name, "ab") as before:  # stays locked, so that a run that opened what is replaced gets no turn
        _lock(name, before)
        known = resume(name, lines)
        if os.path.samestat(os.fstat(before.fileno()), os.stat(name)):
            yield known, before
            return
        with open(name, "ab") as stream:
            _lock(name, stream)
            yield known, stream


def _lock(name: str, stream: IO[bytes]) -> None:
    """Have a file alone as long as it is open; a device or a pipe, and what knows no locks, is shared."""
    if not _is_regular(stream):
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadFile(name, ["another partita batch writes to it; wait for its end, or give another -o"]) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise


def _is_regular(stream: IO[bytes]) -> bool:
    """Tell a file from a device or a pipe."""
    return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def resume(name: str, lines: list[Line]) -> Known:
    """Read the results that a file holds, and leave in it those of these problems at their places.

    A last line that was torn is removed.

    Raises
    ------
    BadFile
        When the file holds anything else: results of other problems are not thrown away.
    """
    path = Path(name)
    content = path.read_bytes() if path.is_file() else b""
    digests = {line.index: line.digest for line in lines}
    known, ends, kept = set(digests.values()), dict[str, End](), dict[int, bytes]()
    for number, text, whole in _parts(content):
        try:
            index, digest, end = _end_in(text)
        except (InvalidInput, KeyError, TypeError) as error:
            if not whole:
                continue  # torn when the program or the machine went down
            detail = f"line {number} is no result of partita batch; give another -o"
            raise BadFile(name, [detail]) from (None if isinstance(error, InvalidInput) else error)
        if digest not in known and end.state == "succeeded":
            detail = f"line {number} answers a problem that is not in the input ({digest}); give another -o"
            raise BadFile(name, [detail])
        if digest in known:
            ends.setdefault(digest, end)
        if digests.get(index) == digest:
            kept.setdefault(index, text + b"\n")
    remaining = b"".join(kept.values())
    if remaining != content:
        write_whole(name, remaining)
    return Known(ends, frozenset(kept))


def _parts(content: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Give the lines of a file with their numbers, and whether a line has its end."""
    *whole, rest = content.split(b"\n")
    yield from ((number, text, True) for number, text in enumerate(whole, 1) if text.strip())
    if rest.strip():
        yield len(whole) + 1, rest, False


def _end_in(text: bytes) -> tuple[int, str, End]:
    """Read a result: its place, its digest and how it ended; raises ``KeyError`` or ``TypeError`` where it is none."""
    data = read_json(text)
    if not isinstance(data, dict):
        raise TypeError("no result")
    state, index, digest, answer, failure = (data[key] for key in ("status", "index", "digest", "answer", "failure"))
    if not (isinstance(index, int) and isinstance(digest, str)):
        raise TypeError("no place")
    if state == "succeeded" and failure is None:
        if answer["problem_digest"] != digest or answer["status"] not in get_args(Status):
            raise TypeError("no answer to this problem")
        return index, digest, End(state, None, _text(answer), answer["status"])
    if state == "failed" and answer is None:
        validate(ProblemDocument, failure)
        return index, digest, End(state, _text(failure))
    raise TypeError("no end")


def _text(value: object) -> bytes | None:
    """Write JSON; None for null."""
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Output:
    """Where results go as they come: appended to a file, where each is on the disk before the next, or printed.

    Parameters
    ----------
    stream
        The file, or standard output.
    durable
        Whether each is to be on the disk before the next; a device or a pipe has none.
    """

    def __init__(self, stream: IO[bytes], *, durable: bool) -> None:
        self._stream, self._durable = stream, durable and _is_regular(stream)

    def write(self, line: bytes) -> None:
        """Write one line."""
        self._stream.write(line)
        self._stream.flush()
        if self._durable:
            os.fsync(self._stream.fileno())


def check_other(name: str, output: str) -> None:
    """Refuse to write results over the problems.

    Raises
    ------
    BadFile
        When both are one file.
    """
    if name != STANDARD and Path(output).exists() and Path(name).exists() and os.path.samefile(name, output):
        raise BadFile(output, ["this is the file of the problems; give another -o"])
