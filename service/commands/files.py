"""Files that the command line reads and writes."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from partita.models.answer import Answer, Candidate
from partita.models.digest import problem_digest
from partita.models.document import read_json, validate
from partita.models.errors import Fault, InvalidInput
from partita.models.front import Front
from partita.models.plan import GivenConfiguration, GivenPlan
from partita.models.problem import Problem
from partita.models.schedule import Schedule
from partita.models.writers.torch_plan import is_torch, read_torch
from partita.models.written_plan import written_plan
from partita.service.reports.formats import place_in_answer

STANDARD = "-"
"""The name that stands for standard input."""
SCHEDULE = "/training/schedule"
"""Where a problem has its schedule."""
ROWS = "write one row per rank, such as 0F0,0F1,0B0,0B1"
"""How orders are written."""

NO_PROBLEM = "this answer does not hold its problem; plan again with -o FILE, or over REST with ?include=problem"
"""Why an answer is not enough by itself."""


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


class OrdersFile:
    """The orders of all ranks as CSV, and where they came from.

    Raises
    ------
    BadFile
        When the file cannot be read or holds anything but actions; what they do is checked with the problem.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            text = read_bytes(name).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise BadFile(name, [f"not text in UTF-8; {ROWS}"]) from None
        if not text.strip():
            raise BadFile(name, [f"empty; {ROWS}"])
        try:
            self._schedule = validate(Schedule, {"kind": "custom", "orders": text})
        except InvalidInput as error:
            raise self.refused(error.faults) from None

    def replace_schedule(self, problem: object) -> object:
        """Put these orders in the place of a problem's schedule; the problem is what ``read_json`` gave."""
        training = problem.get("training") if isinstance(problem, dict) else None
        if not isinstance(problem, dict) or not isinstance(training, dict):
            return problem  # which is refused for that
        return {**problem, "training": {**training, "schedule": self._schedule}}

    def refused(self, faults: Iterable[Fault]) -> BadFile:
        """Make the error for faults in the schedule."""
        return BadFile(self.name, [self._line(fault) for fault in faults])

    def _line(self, fault: Fault) -> str:
        """Give a fault with its place in the file: row and action, or the whole."""
        steps = fault.pointer.removeprefix(SCHEDULE).removeprefix("/orders").removeprefix("/").split("/")
        places = [f"{name} {int(step) + 1}" for name, step in zip(("row", "action"), steps, strict=False) if step]
        return str(replace(fault, pointer=", ".join(places))) if places else fault.detail


class ProblemFile:
    """A problem and where it came from: a file of its own, or an answer that holds it.

    Parameters
    ----------
    name
        Of the file.
    orders
        What replaces the problem's schedule, where given.

    Raises
    ------
    BadFile
        When the file cannot be read or is not valid.
    """

    def __init__(self, name: str, orders: OrdersFile | None = None) -> None:
        self.name = name
        self._orders = orders
        self._prefix = ""
        try:
            data = read_json(read_bytes(name))
            if isinstance(data, dict) and is_answer(data):
                self._prefix = "/problem"
                data = data.get("problem")
                if data is None:
                    raise InvalidInput.at("", NO_PROBLEM, None)
            self.problem = validate(Problem, data if orders is None else orders.replace_schedule(data))
        except InvalidInput as error:
            raise self.refused(error.faults) from None

    def refused(self, faults: Iterable[Fault]) -> BadFile:
        """Make the error for faults in the problem, or in the orders where any is there."""
        faults = list(faults)
        if self._orders is not None:
            ordered = [fault for fault in faults if f"{fault.pointer}/".startswith(f"{SCHEDULE}/")]
            if ordered:
                return self._orders.refused(ordered)
        return BadFile(self.name, [replace(fault, pointer=self._prefix + fault.pointer) for fault in faults])


class PlanFile:
    """A plan and where it came from: a file, JSON or text, as any export writes it, an answer or front, or text itself.

    Parameters
    ----------
    name
        Of the file; where there is none of this name, it may be a plan as Megatron or vLLM takes it.
    rank
        Which candidate of an answer is taken.

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
            data = _plan_document(name)
            if isinstance(data, dict) and is_answer(data):
                self._answer = data
                self._prefix = _place_of(data, rank)
                data = _candidate_plan(data, rank)
            self.plan = read_torch(data).given() if is_torch(data) else validate(GivenPlan, data)
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


def _plan_document(name: str) -> object:
    """Read a plan from a file, or from its name where it is a plan as text and no file."""
    written = None if name == STANDARD or Path(name).exists() else written_plan(name)
    if written is not None:
        return written
    content = read_bytes(name)
    try:
        return written_plan(content.decode("utf-8-sig")) or read_json(content)
    except UnicodeDecodeError:
        return read_json(content)


class AnswerFile:
    """An answer or a front that holds its problem, and where it came from.

    Attributes
    ----------
    version, problem, candidate
        The version that wrote it, the problem that it holds, and the plan chosen.
    answer, kind
        The whole, and the kind of job that it answers.

    Raises
    ------
    BadFile
        When the file cannot be read, is no valid answer, or lacks its problem or the plan.
    """

    def __init__(self, name: str, rank: int) -> None:
        self.name = name
        try:
            data = read_json(read_bytes(name))
            if not isinstance(data, dict) or not is_answer(data):
                raise InvalidInput.at("", "expected an answer, as partita plan PROBLEM -o ANSWER writes it", None)
            answer = validate(Front, data) if is_front(data) else validate(Answer, data)
            if answer.problem is None:
                raise InvalidInput.at("/problem", NO_PROBLEM, None)
            _candidate_plan(data, rank)
        except InvalidInput as error:
            raise BadFile(name, error.faults) from None
        self._plan_place = _place_of(data, rank)
        self.answer, self.version, self.problem = answer, answer.version, answer.problem
        self.kind: Literal["plan", "frontier"] = "frontier" if isinstance(answer, Front) else "plan"
        plans = [point.plan for point in answer.points] if isinstance(answer, Front) else answer.candidates
        self.candidate: Candidate = plans[rank - 1]

    def refused(self, faults: Iterable[Fault]) -> BadFile:
        """Make the error for faults in the problem or, with pointers from ``/plan`` on, in the candidate."""
        return BadFile(
            self.name, [replace(fault, pointer=place_in_answer(fault.pointer, self._plan_place)) for fault in faults]
        )


def stem(name: str) -> str | None:
    """Give the name of a file without folder and ending; None for standard input."""
    return None if name == STANDARD else Path(name).stem


def is_answer(data: dict[str, object]) -> bool:
    """Tell an answer or a front from a problem and from a plan."""
    return "status" in data and "problem_digest" in data


def is_front(data: dict[str, object]) -> bool:
    """Tell a front from an answer."""
    return "points" in data


def _place_of(answer: dict[str, object], rank: int) -> str:
    """Give the pointer to a plan of an answer or of a front."""
    return f"/points/{rank - 1}/plan" if is_front(answer) else f"/candidates/{rank - 1}"


def _candidate_plan(answer: dict[str, object], rank: int) -> object:
    """Take a plan of an answer, or of a front: its stages and configuration, with the places that they have there."""
    front = is_front(answer)
    candidates = answer.get("points" if front else "candidates")
    if not isinstance(candidates, list) or len(candidates) < rank:
        count = len(candidates) if isinstance(candidates, list) else 0
        what = f"front has no point {rank}" if front else f"answer has no candidate {rank}"
        raise InvalidInput.at("", f"this {what}; it has {count}", None)
    candidate = candidates[rank - 1]
    if front and isinstance(candidate, dict):
        candidate = candidate.get("plan")
    stages = candidate.get("stages") if isinstance(candidate, dict) else None
    if not isinstance(candidate, dict) or not isinstance(stages, list):
        raise InvalidInput.at("/stages", "expected the list of the candidate's stages", None)
    wanted = ("layers", "options", "devices")
    return {
        "stages": [_only(wanted, stage) if isinstance(stage, dict) else stage for stage in stages],
        "configuration": _only(GivenConfiguration.model_fields, candidate),
    }


def _only(wanted: Iterable[str], members: dict[str, object]) -> dict[str, object]:
    """Keep some members of an object."""
    return {key: members[key] for key in wanted if key in members}


def check_writable(name: str, *, otherwise: str = "use --json instead") -> None:
    """Refuse, before any work, a place where nothing can be written; ``otherwise`` leads to standard output.

    Raises
    ------
    BadFile
        When the folder does not exist or the place is a folder itself.
    """
    path = Path(name)
    if name == STANDARD:
        raise BadFile("-o -", [f"give a path; for standard output {otherwise}"])
    if path.is_dir():
        raise BadFile(name, ["cannot be written: it is a folder; give the path of a file"])
    if not path.parent.is_dir():
        raise BadFile(name, [f"cannot be written: there is no folder {path.parent}; create it first"])


def write_whole(name: str, content: str | bytes) -> None:
    """Write a file so that it is either as before or whole, whatever happens; text as UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    path = Path(os.path.realpath(name))
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        path.write_bytes(data)  # a device or a pipe
        return
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
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
