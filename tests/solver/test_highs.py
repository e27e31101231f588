"""Tests of HiGHS, several times in one process."""

from random import Random

import numpy as np
import pytest

from partita.solver.backends.highs import Highs
from partita.solver.deadline import Deadline
from partita.solver.linear_bound import IMPOSSIBLE, Box, LinearBound
from partita.solver.program.linear import Linear, Program


def knapsacks(seed: int) -> Program:
    """Give a program that HiGHS searches with all its threads."""
    random, program = Random(seed), Program("knapsacks", integer=False)
    items = [program.binary(f"item{number}") for number in range(60)]
    value = program.quantity("value", 0, 10**6)
    program.minimize(value)
    program.at_least("worth", Linear().add(value).add_all((each, random.randint(1, 50)) for each in items), 1500)
    for number in range(20):
        row = Linear(100).add_all((each, -random.randint(1, 30)) for each in items)
        program.at_least(f"sack{number}", row, 0)
    return program


@pytest.mark.parametrize("order", [(4, 1, 2), (1, 3, 1)])
def test_other_numbers_of_threads(order: tuple[int, ...]) -> None:
    """Tests that a solve may have more or fewer threads than those before it, also with a relaxation in between."""
    found = []
    for threads in order:
        relaxation = LinearBound(0, np.array([1, 1]))
        relaxation.add(np.array([[2, -3]]), np.array([1]), np.array([IMPOSSIBLE]))
        assert relaxation.solve(Box(np.array([0, 2]), np.array([9, 2])), 9).bound == 4
        outcome = Highs(seed=0, workers=threads).solve(knapsacks(1).problem, Deadline.after(60), lambda bound: None)
        assert outcome.found and outcome.exhausted
        found.append(outcome.bound)
    assert len(set(found)) == 1
