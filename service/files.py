"""Files that the command line reads and writes."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from partita.models.digest import problem_digest
from partita.models.document import read_json, validate
from partita.models.errors import Fault, InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem

STANDARD = "-"
"""The name that stands for standard input."""


class BadFile(Exception):
    """An input that was refused; its text has a line for each fault, with the name of the file."""

    def __init__(self, name: str, lines: Iterable[object]) -> None:
        shown = "standard input" if name == STANDARD else name
        super().__init__("\n".join(f"{shown}: {line}" for line in lines))


def read_bytes(name: str) -> bytes:
    """Give what is in a file, or on standard input.

    Raises
    ------
    BadFile
        When it cannot be read.
    """
    if name == STANDARD:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadFile(name, [f"cannot be read: {reason}; give the path of a file, or - for standard input"]) from None


class ProblemFile:
    """A problem and where it came from: a file of its own, or an answer that holds it.

    Raises
    ------
    BadFile
        When the file cannot be read or is not valid.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._prefix = ""
        try:
            data = read_json(read_bytes(name))
            if isinstance(data, dict) and is_answer(data):
                self._prefix = "/problem"
                data = data.get("problem")
                if data is None:
                    raise InvalidInput.at("", "this answer does not hold its problem; plan again with -o", None)
            self.problem = validate(Problem, data)
        except InvalidInput as error:
            raise self.refused(error.faults) from None

    def refused(self, faults: Iterable[Fault]) -> BadFile:
        """Make the error for faults in the problem."""
        return BadFile(self.name, [replace(fault, pointer=self._prefix + fault.pointer) for fault in faults])


class PlanFile:
    """A plan and where it came from: a file of its own, or a candidate of an answer.

    Raises
    ------
    BadFile
        When the file cannot be read or is not valid.
    """

    def __init__(self, name: str, rank: int) -> None:
        self.name = name
        self._prefix = ""
        self._answer: dict[str, object] | None = None
        try:
            data = read_json(read_bytes(name))
            if isinstance(data, dict) and is_answer(data):
                self._answer = data
                self._prefix = f"/candidates/{rank - 1}"
                data = _candidate_plan(data, rank)
            self.plan = validate(GivenPlan, data)
        except InvalidInput as error:
            raise self.refused(error.faults) from None

    def check_belongs(self, asked: Problem) -> None:
        """Refuse the plan of an answer to another problem; how the plan was searched for makes no other problem.

        Raises
        ------
        BadFile
            With both digests.
        """
        if self._answer is None:
            return
        theirs, ours = self._answer.get("problem_digest"), problem_digest(asked)
        if theirs == ours or self._searched_otherwise(asked):
            return
        detail = (
            f"this answer is for another problem: its problem_digest is {theirs}, that of the problem given is "
            f'{ours}; to price its plan for this problem all the same, give only {{"stages": [...]}}'
        )
        raise BadFile(self.name, [detail])

    def _searched_otherwise(self, asked: Problem) -> bool:
        """Tell whether the answer's own problem differs from the one asked in nothing but its search."""
        held = (self._answer or {}).get("problem")
        if held is None:
            return False
        try:
            problem = validate(Problem, held)
        except InvalidInput:
            return False
        return problem.model_copy(update={"search": asked.search}) == asked

    def refused(self, faults: Iterable[Fault]) -> BadFile:
        """Make the error for faults in the plan."""
        return BadFile(self.name, [replace(fault, pointer=self._prefix + fault.pointer) for fault in faults])


def stem(name: str) -> str | None:
    """Give the name of a file without folder and ending; None for standard input."""
    return None if name == STANDARD else Path(name).stem


def is_answer(data: dict[str, object]) -> bool:
    """Tell an answer from a problem and from a plan."""
    return "status" in data and "problem_digest" in data


def _candidate_plan(answer: dict[str, object], rank: int) -> object:
    """Take the stages of a candidate as a plan, with the places that they have in the candidate."""
    candidates = answer.get("candidates")
    if not isinstance(candidates, list) or len(candidates) < rank:
        count = len(candidates) if isinstance(candidates, list) else 0
        raise InvalidInput.at("", f"this answer has no candidate {rank}; it has {count}", None)
    candidate = candidates[rank - 1]
    stages = candidate.get("stages") if isinstance(candidate, dict) else None
    if not isinstance(stages, list):
        raise InvalidInput.at("/stages", "expected the list of the candidate's stages", None)
    wanted = ("layers", "devices")
    return {"stages": [_only(wanted, stage) if isinstance(stage, dict) else stage for stage in stages]}


def _only(wanted: Iterable[str], members: dict[str, object]) -> dict[str, object]:
    """Keep some members of an object."""
    return {key: members[key] for key in wanted if key in members}


def check_writable(name: str) -> None:
    """Refuse, before any work, a place where nothing can be written.

    Raises
    ------
    BadFile
        When the folder does not exist or the place is a folder itself.
    """
    path = Path(name)
    if name == STANDARD:
        raise BadFile("-o -", ["give a path; for standard output use --json instead"])
    if path.is_dir():
        raise BadFile(name, ["cannot be written: it is a folder; give the path of a file"])
    if not path.parent.is_dir():
        raise BadFile(name, [f"cannot be written: there is no folder {path.parent}; create it first"])


def write_whole(name: str, text: str) -> None:
    """Write a file so that it is either as before or whole, whatever happens."""
    path = Path(os.path.realpath(name))
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        path.write_text(text, encoding="utf-8")  # a device or a pipe
        return
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """Give the permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
