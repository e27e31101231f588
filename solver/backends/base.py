"""What the search needs to know of a solver's run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pulp

from partita.solver.deadline import Deadline
from partita.solver.program.scale import Scale


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has shown.

    Attributes
    ----------
    found
        Whether the problem's variables hold a solution.
    exhausted
        Whether it is proven that there is no solution, or none better than the one found.
    bound
        Proven bound on the objective, in the problem's unit; None if unknown.
    """

    found: bool
    exhausted: bool
    bound: float | None


class Backend(Protocol):
    """A solver."""

    name: str
    exact: bool
    """Whether its proofs hold to the last tick and byte."""

    def scale(self, largest_time: int, capacity: int) -> Scale:
        """Give the units that suit the solver for times (ticks) and capacities (bytes) of these magnitudes."""

    def resolution(self, value: int) -> int:
        """Give by how much an objective must differ from a value for the solver to tell them apart."""

    def solve(self, problem: pulp.LpProblem, deadline: Deadline, on_bound: Callable[[float], None]) -> Outcome:
        """Solve until optimal, proven impossible, or the time is over; report rising bounds meanwhile."""
