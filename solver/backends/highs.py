"""HiGHS: behind PuLP as the independent check of CP-SAT, and for small linear programs. It computes in floats."""

from collections.abc import Callable

import highspy
import pulp

from partita.solver.backends.base import Outcome
from partita.solver.backends.quiet import quiet
from partita.solver.deadline import Deadline
from partita.solver.program.scale import Scale, floating

RELATIVE_RESOLUTION = 1e-6
"""Objectives closer than this fraction are one to HiGHS, whose rows hold to 1e-6."""

AS_BEFORE = 0
"""Asks for as many threads as HiGHS had before in this process, where it refuses another number."""


def relaxation() -> highspy.Highs:
    """Give HiGHS for a small linear program that is solved again and again.

    It gets no number of threads: it would refuse to solve where the process has begun with another one.
    """
    with quiet():
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
    for option, value in (("presolve", "off"), ("parallel", "off"), ("random_seed", 0)):
        solver.setOptionValue(option, value)
    return solver


class _Stoppable(pulp.HiGHS):  # type: ignore[misc]
    """PuLP's HiGHS, which can be stopped from another thread: that takes ``solve`` in place of ``run``."""

    deadline: Deadline

    def callSolver(self, lp: pulp.LpProblem) -> None:
        """Run HiGHS until it ends or the deadline is stopped."""
        lp.solverModel.HandleUserInterrupt = True
        with self.deadline.stopping(lp.solverModel.cancelSolve):
            lp.solverModel.solve()


class Highs:
    """HiGHS as a backend."""

    name = "highs"
    exact = False

    def __init__(self, seed: int, workers: int) -> None:
        self._seed, self._workers = seed, workers

    def scale(self, largest_time: int, capacity: int) -> Scale:
        """Give units in which times and bytes are moderate numbers."""
        return floating(largest_time, capacity)

    def resolution(self, value: int) -> int:
        """Give the smallest difference that HiGHS can be trusted with."""
        return max(1, int(value * RELATIVE_RESOLUTION))

    def solve(self, problem: pulp.LpProblem, deadline: Deadline, on_bound: Callable[[float], None]) -> Outcome:
        """Solve a problem within the deadline, judging by HiGHS's own status and bound: PuLP 3 gives neither."""
        for threads in (self._workers, AS_BEFORE):
            solver = _Stoppable(
                msg=False,
                timeLimit=max(0.01, deadline.remaining),
                threads=threads,
                gapRel=0.0,
                presolve="off",
                log_to_console=False,
                random_seed=self._seed,
            )
            solver.deadline = deadline
            with quiet():
                solver.actualSolve(problem)
            if problem.solverModel.getModelStatus() != highspy.HighsModelStatus.kNotset:
                break
        model = problem.solverModel
        status, info = model.getModelStatus(), model.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        optimal = status == highspy.HighsModelStatus.kOptimal
        impossible = status == highspy.HighsModelStatus.kInfeasible
        bound = float(info.mip_dual_bound)
        known = not impossible and abs(bound) < highspy.kHighsInf
        if known:
            on_bound(bound)
        return Outcome(found and not impossible, optimal or impossible, bound if known else None)
