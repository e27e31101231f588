"""What the searches of a problem share: its plans, the solver, and counters of effort."""

from dataclasses import dataclass
from functools import cached_property

from partita.solver.backends.base import Backend
from partita.solver.domains import Ancestry
from partita.solver.intervals import IntervalView
from partita.solver.plans import Judge, PlanPool


@dataclass
class Counters:
    """Effort of a search."""

    iterations: int = 0
    cuts: int = 0
    variables: int = 0


@dataclass(frozen=True)
class Tactics:
    """What the search uses besides the program itself; all of it except in benchmarks that show what it is worth."""

    warm_start: bool = True
    pruning: bool = True
    starting_cuts: bool = True


@dataclass(frozen=True)
class Tools:
    """What all configurations of a variant share; the plans are those of all variants."""

    judge: Judge
    ancestry: Ancestry | None
    backend: Backend
    tie_breaker: Backend | None
    plans: PlanPool
    counters: Counters
    tactics: Tactics
    relative_gap: float

    @cached_property
    def view(self) -> IntervalView:
        """The costs of intervals of groups; most configurations are ruled out before they are needed."""
        return IntervalView(self.judge.instance, self.judge.figures, self.judge.groups)
