"""Linear expressions over PuLP's variables, and the problem they are added to."""

from collections.abc import Iterable
from typing import Any

import pulp

Variable = Any  # pulp.LpVariable; PuLP's own annotations differ between its versions 3 and 4


class Linear:
    """A constant and coefficients by variable; built in place, term by term."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int | float = 0) -> None:
        self.constant: int | float = constant
        self.terms: dict[Variable, int | float] = {}

    def add(self, value: "Variable | Linear | int", factor: int | float = 1) -> "Linear":
        """Add a number, a variable or an expression times a factor; give the expression itself."""
        if factor == 0:
            return self
        if isinstance(value, int | float):
            self.constant += value * factor
        elif isinstance(value, Linear):
            self.constant += value.constant * factor
            for variable, coefficient in value.terms.items():
                self.terms[variable] = self.terms.get(variable, 0) + coefficient * factor
        else:
            self.terms[value] = self.terms.get(value, 0) + factor
        return self

    def add_all(self, values: Iterable[tuple["Variable | Linear | int", int | float]]) -> "Linear":
        """Add several values with their factors."""
        for value, factor in values:
            self.add(value, factor)
        return self


class Program:
    """A PuLP problem under construction.

    Parameters
    ----------
    name
        For people.
    integer
        Whether every variable is an integer, as a backend with exact arithmetic wants; else loads and times are
        continuous.
    """

    def __init__(self, name: str, integer: bool) -> None:
        self.integer = integer
        self.problem = pulp.LpProblem(name, pulp.LpMinimize)
        self.num_rows = 0
        self.contradiction = False

    def binary(self, name: str) -> Variable:
        """Make a variable that is 0 or 1."""
        return self.problem.add_variable(name, 0, 1, pulp.LpInteger)

    def count(self, name: str, most: int) -> Variable:
        """Make a variable for a number of things."""
        return self.problem.add_variable(name, 0, most, pulp.LpInteger)

    def quantity(self, name: str, least: int | float, most: int | float) -> Variable:
        """Make a variable for a time or a number of bytes."""
        return self.problem.add_variable(name, least, most, pulp.LpInteger if self.integer else pulp.LpContinuous)

    def at_least(self, name: str, value: Linear, least: int | float) -> None:
        """Add the row value >= least; a row without variables is checked at once."""
        self._row(name, value, pulp.LpConstraintGE, least)

    def equal(self, name: str, value: Linear, target: int | float) -> None:
        """Add the row value = target."""
        self._row(name, value, pulp.LpConstraintEQ, target)

    def _row(self, name: str, value: Linear, sense: int, right: int | float) -> None:
        terms = {variable: factor for variable, factor in value.terms.items() if factor != 0}
        if not terms:
            holds = value.constant >= right if sense == pulp.LpConstraintGE else value.constant == right
            self.contradiction |= not holds
            return
        row = pulp.LpConstraint(pulp.LpAffineExpression(terms), sense, None, right - value.constant)
        self.problem.addConstraint(row, f"{name}_{self.num_rows}")
        self.num_rows += 1

    def minimize(self, variable: Variable) -> None:
        """Set the objective."""
        self.problem.setObjective(pulp.LpAffineExpression({variable: 1}))
