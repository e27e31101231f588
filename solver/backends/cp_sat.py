"""CP-SAT behind PuLP: the same problem with integer coefficients, solved exactly.

A generic import would round continuous variables; here every variable and coefficient must be an integer.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pulp
from ortools.sat.python import cp_model

from partita.solver.backends.base import Outcome
from partita.solver.deadline import Deadline
from partita.solver.program.scale import INTEGER, Scale

FIRST_EFFORT = 1.6
"""Deterministic time that one strategy without linear relaxation gets first: most problems end there. What is found by
then is handed back although it may not be the best, because what it rules out makes the rest easier."""

BRIEF_EFFORT, BRIEF_CONFLICTS = 0.25, 4_000
"""Deterministic time and conflicts that a search gets which only breaks a tie; conflicts of few long sums hardly count
as time, but take it."""

STRATEGIES = 8
"""Least number of strategies that then take turns, in steps that do not depend on the machine's speed: the same run
every time. With fewer, CP-SAT 9.15 was seen to go on until its time limit on tiny problems already solved."""


def _distrust(parameters: Any) -> None:
    """Switch off two parts of CP-SAT 9.15 that were seen to call feasible programs infeasible.

    One compares rows with at-most-one sets in presolve (its rule "linear + amo: removed enforcement literal"), the
    other is "GreaterThanAtLeastOneOf" of its precedences. tests/solver/test_cp_sat.py keeps a program for each.
    """
    parameters.presolve_inclusion_work_limit = 0
    parameters.auto_detect_greater_than_at_least_one_of = False


class CpSatSolver(pulp.LpSolver):  # type: ignore[misc]
    """A PuLP solver class that hands integer problems to CP-SAT.

    Parameters
    ----------
    seconds
        Wall-clock time limit.
    seed, workers
        Random seed; the most threads, where that is more than ``STRATEGIES``. The same seed and number of workers give
        the same run.
    on_bound
        Called with every better bound.
    brief
        Give up after a brief effort, whatever is left of the time.
    deadline
        Whose ``stop`` ends the run early.

    Attributes
    ----------
    outcome
        What the last run has shown.
    """

    name = "CP-SAT"

    def __init__(
        self,
        seconds: float,
        seed: int,
        workers: int,
        on_bound: Callable[[float], None],
        brief: bool = False,
        deadline: Deadline | None = None,
    ) -> None:
        super().__init__(mip=True, msg=False, timeLimit=seconds)
        self._seed, self._workers, self._on_bound = seed, workers, on_bound
        self._efforts = [(1, BRIEF_EFFORT)] if brief else [(1, FIRST_EFFORT), (max(STRATEGIES, workers), float("inf"))]
        self._deadline = deadline or Deadline.after(seconds)
        self.outcome = Outcome(False, False, None)

    def available(self) -> bool:
        """Tell that the solver can be used: it comes with the package."""
        return True

    def actualSolve(self, lp: pulp.LpProblem) -> int:
        """Solve a problem, or find something; the values go into its variables, the proof into ``outcome``."""
        model, numbers = _translate(lp)
        ends = monotonic() + max(0.01, self.timeLimit)
        for workers, effort in self._efforts:
            solver = cp_model.CpSolver()
            solver.parameters.random_seed = self._seed
            solver.parameters.num_workers = workers
            solver.parameters.catch_sigint_signal = False
            solver.parameters.interleave_search = workers > 1
            solver.parameters.linearization_level = 1 if workers > 1 else 0
            solver.parameters.max_time_in_seconds = max(0.01, ends - monotonic())
            solver.parameters.max_deterministic_time = effort
            if effort == BRIEF_EFFORT:
                solver.parameters.max_number_of_conflicts = BRIEF_CONFLICTS
            solver.parameters.relative_gap_limit = 0.0
            _distrust(solver.parameters)
            solver.best_bound_callback = lambda bound: self._on_bound(round(bound))
            with self._deadline.stopping(solver.stop_search):
                status = solver.solve(model)
            if status != cp_model.UNKNOWN or monotonic() >= ends or self._deadline.stopped:
                break
        found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        exhausted = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
        # Objectives are integers; CP-SAT gives their bounds as floats that may be off by a little.
        bound = None if status == cp_model.INFEASIBLE else round(solver.best_objective_bound)
        self.outcome = Outcome(found, exhausted, bound)
        variables = lp.variables()
        if found:
            for variable, number in zip(variables, numbers, strict=True):
                variable.varValue = solver.value(number)
        lp.assignStatus(pulp.LpStatusOptimal if found else pulp.LpStatusNotSolved)
        return int(lp.status)


def _translate(lp: pulp.LpProblem) -> tuple[cp_model.CpModel, list[Any]]:
    """Give the same problem as a CP-SAT model, and its variables in PuLP's order.

    Raises
    ------
    ValueError
        When a variable or a coefficient is not an integer.
    """
    model = cp_model.CpModel()
    numbers: list[Any] = []
    by_variable: dict[Any, Any] = {}
    for variable in lp.variables():
        if variable.cat != pulp.LpInteger:
            raise ValueError(f"variable {variable.name} is continuous; CP-SAT takes integers only")
        number = model.new_int_var(_whole(variable.lowBound), _whole(variable.upBound), variable.name)
        numbers.append(number)
        by_variable[variable] = number
    for row in lp.constraints():
        _add_row(model, row, by_variable)
    objective = lp.objective
    model.minimize(
        cp_model.LinearExpr.weighted_sum([by_variable[v] for v in objective], [_whole(f) for f in objective.values()])
    )
    return model, numbers


def _add_row(model: cp_model.CpModel, row: Any, by_variable: dict[Any, Any]) -> None:
    """Add a row; sums of at most a few 0-1 variables become clauses, which propagate faster."""
    variables = [by_variable[variable] for variable in row]
    factors = [_whole(factor) for factor in row.values()]
    right = -_whole(row.constant)
    if row.sense == pulp.LpConstraintGE and all(factor in (1, -1) for factor in factors):
        negative = factors.count(-1)
        if right == 1 - negative and all(variable.upBound == 1 and variable.lowBound == 0 for variable in row):
            model.add_bool_or(
                [var if factor == 1 else var.negated() for var, factor in zip(variables, factors, strict=True)]
            )
            return
    left = cp_model.LinearExpr.weighted_sum(variables, factors)
    if row.sense == pulp.LpConstraintGE:
        model.add(left >= right)
    elif row.sense == pulp.LpConstraintLE:
        model.add(left <= right)
    else:
        model.add(left == right)


def _whole(value: float) -> int:
    """Give an integer that PuLP may have turned into a float."""
    if value != int(value):
        raise ValueError(f"{value} is not an integer; CP-SAT takes integers only")
    return int(value)


class CpSat:
    """CP-SAT as a backend."""

    name = "cp-sat"
    exact = True

    def __init__(self, seed: int, workers: int, brief: bool = False) -> None:
        self._seed, self._workers, self._brief = seed, workers, brief

    def scale(self, largest_time: int, capacity: int) -> Scale:
        """Give the units: ticks and bytes themselves."""
        return INTEGER

    def resolution(self, value: int) -> int:
        """Give the smallest difference: one tick or byte."""
        return 1

    def solve(self, problem: pulp.LpProblem, deadline: Deadline, on_bound: Callable[[float], None]) -> Outcome:
        """Solve a problem within the deadline."""
        solver = CpSatSolver(deadline.remaining, self._seed, self._workers, on_bound, self._brief, deadline)
        solver.actualSolve(problem)
        return solver.outcome
