"""Tests that CP-SAT gets exactly the numbers of the program, and none of the two parts that were seen to lie."""

import pytest

from partita.solver.backends.cp_sat import CpSat, CpSatSolver
from partita.solver.deadline import Deadline
from partita.solver.program.linear import Linear, Program

Row = tuple[dict[str, int], int]
"""Coefficients by variable, and what their sum must reach at least."""


def program_of(bounds: dict[str, int], equal: list[Row], at_least: list[Row], objective: str) -> Program:
    """Make a program over variables from 0 to their bounds."""
    program = Program("test", integer=True)
    variables = {name: program.quantity(name, 0, most) for name, most in bounds.items()}
    for add, rows in ((program.equal, equal), (program.at_least, at_least)):
        for terms, right in rows:
            add("row", Linear().add_all((variables[name], factor) for name, factor in terms.items()), right)
    program.minimize(variables[objective])
    return program


def solve(program: Program) -> tuple[bool, bool, float | None]:
    """Solve with the backend; give whether a solution was found, whether all was searched, and the bound."""
    outcome = CpSat(seed=0, workers=1).solve(program.problem, Deadline.after(20), lambda bound: None)
    return outcome.found, outcome.exhausted, outcome.bound


def test_enforced_rows_in_presolve() -> None:
    """Tests a feasible program that CP-SAT 9.15 calls infeasible by its rule "linear + amo"."""
    most = 77004201854
    binaries = ("g4", "g5", "g6", "g7", "y00", "y01", "y10", "y11")
    times = {"c": 33982467968, "d": 33982467968, "makespan": most, "replicas": most, "iteration": most}
    ordered: list[Row] = [({"g5": 1, "g4": -1}, 0), ({"g6": 1, "g5": -1}, 0), ({"g7": 1, "g6": -1}, 0)]
    transfer = {"d": 1, "g4": 10381783435, "g5": -5341789654, "g6": -8080485040, "g7": -1301827113}
    program = program_of(
        dict.fromkeys(binaries, 1) | times,
        [({"y00": 1, "y01": 1}, 1), ({"y10": 1, "y11": 1}, 1)],
        [
            *ordered,
            ({"y01": -1, "y11": -1}, -1),
            ({"c": 1, "g7": -1301827113}, 1381675579),
            (transfer, 1381675579),
            ({"c": -1, "d": -1, "makespan": 1}, 54000000000),
            ({"g4": 1346671363, "g5": 884332754, "replicas": 1, "y00": -25862391174}, -5185448243),
            ({"g5": -294777585, "replicas": 1, "y11": -8431213811}, -6669275196),
            ({"iteration": 1, "makespan": -1, "replicas": -1}, 0),
            ({"g4": 1, "g5": 1, "g6": 1, "g7": 1, "y01": -1, "y10": -1}, -1),
        ],
        "iteration",
    )
    assert solve(program) == (True, True, 59367005384)


def test_one_of_several_lower_bounds() -> None:
    """Tests a feasible program that CP-SAT 9.15 calls infeasible by its "GreaterThanAtLeastOneOf"."""
    most = 808703074764
    program = program_of(
        {"g": 1, "y1": 1, "y2": 1, "F": 40340170485, "makespan": most, "replicas": most, "iteration": most},
        [({"y1": 1, "y2": 1}, 1), ({"F": 1, "g": 19519579116}, 40340170485)],
        [
            ({"F": -8, "makespan": 1}, 306045551413),
            ({"g": -9048790686, "replicas": 1, "y1": -40440960509}, -32962665277),
            ({"g": -47506151103, "replicas": 1, "y2": -211754640435}, -173053992704),
            ({"iteration": 1, "makespan": -1, "replicas": -1}, 50686734150),
        ],
        "iteration",
    )
    assert solve(program) == (True, True, 539824102433)


def test_integers_only() -> None:
    """Tests that a fraction is refused, not rounded."""
    program = Program("test", integer=True)
    variable = program.quantity("x", 0, 10)
    program.at_least("row", Linear().add(variable, 1.5), 2)
    program.minimize(variable)
    with pytest.raises(ValueError, match="not an integer"):
        CpSatSolver(1.0, 0, 1, lambda bound: None).actualSolve(program.problem)
    continuous = Program("test", integer=False)
    continuous.minimize(continuous.quantity("x", 0, 10))
    with pytest.raises(ValueError, match="continuous"):
        CpSatSolver(1.0, 0, 1, lambda bound: None).actualSolve(continuous.problem)
