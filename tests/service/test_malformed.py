"""Tests that 600 spoiled problems are answered or refused with a pointer and a remedy, and never crash."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from partita.models.errors import Fault
from partita.service.settings import Settings
from partita.service.solving.outcomes import Answered, Refused
from partita.service.solving.talk import Talk
from partita.service.solving.work import Task, perform
from strategies import seeded_problem

Place = tuple[str | int, ...]

HOSTILE = [
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "-1", "-0.5", "1e300", "1e-300", "1" + "0" * 30, "9" * 500,
    "true", "false", "null", '""', '"x"', '"12"', '"12 GB"', '"-3GiB"', '"1e9B"', '"\\u0000"', '"\\ud800"', "[]", "{}",
    "[[]]", '{"a": 1}', '["a", "a"]', "[-1]", "[" * 100 + "]" * 100, '{"forward_s": NaN}', "0", "0.0", "2.5",
]  # fmt: skip
"""Values as JSON text, put in place of good ones; some are good in some places."""

MARK = "@hostile@"


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Go through every place of a document below its root."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


def parent_of(document: Any, place: Place) -> Any:
    """Give the object or list that holds a place."""
    for key in place[:-1]:
        document = document[key]
    return document


def spoiled(seed: int) -> bytes:
    """Take a random problem and spoil it in one to three places."""
    random = Random(seed)
    problem = seeded_problem(seed % 60) | {"search": {"time_limit_s": 1.0, "candidates": 2}}
    hostile = []
    for _ in range(random.randint(1, 3)):
        place = random.choice(list(places(problem)))
        holder, key = parent_of(problem, place), place[-1]
        match random.randrange(5):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[random.choice(["forward_S", "", "x" * 300, "__class__", "~/"])] = holder[key]
            case 2 if isinstance(holder, list):
                holder.append(holder[key])
            case 3 if isinstance(holder, list) and len(holder) > 1:
                random.shuffle(holder)
            case _:
                holder[key] = MARK
                hostile.append(random.choice(HOSTILE))
    text = json.dumps(problem)
    for value in hostile:
        text = text.replace(f'"{MARK}"', value, 1)
    return text.encode()


@pytest.mark.parametrize("first", range(0, 600, 50))
def test_spoiled_problems(first: int) -> None:
    """Tests fifty of them: an answer that is JSON, or a refusal of which every fault says where and what."""
    refused = 0
    for seed in range(first, first + 50):
        outcome = perform(Task("plan", spoiled(seed)), Settings(), Talk())
        if isinstance(outcome, Answered):
            assert json.loads(outcome.body)["status"] in ("optimal", "feasible", "infeasible", "no_solution")
            continue
        assert isinstance(outcome, Refused)
        assert outcome.faults
        refused += 1
        for fault in outcome.faults:
            check_fault(fault)
    assert refused > 20


def check_fault(fault: Fault) -> None:
    """Check that a fault has a pointer, a short value and words."""
    assert fault.pointer == "" or fault.pointer.startswith("/")
    assert len(fault.detail) > 10
    assert fault.value is None or len(fault.value) <= 90
    assert "Traceback" not in fault.detail and "pydantic" not in fault.detail
