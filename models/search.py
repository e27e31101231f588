"""How long and how the solver searches."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from partita.models.base import Faults, Model
from partita.models.plan import GivenPlan

SolverName = Literal["auto", "cp-sat", "highs"]
MAX_CANDIDATES = 100
MAX_TIME_LIMIT_S = 86_400
MAX_KEEPING = 1e6


class Search(Model):
    """Bounds on the search.

    Attributes
    ----------
    candidates
        How many ranked plans to give.
    time_limit_s
        Seconds of wall-clock time.
    relative_gap
        Stop when the best plan is proven to be this close to the best possible, as a fraction.
    solver
        The solver; ``auto`` is the fastest one known for the problem.
    seed, workers
        Seed of the solver's random choices; its threads. CP-SAT lets at least 8 strategies take turns, in as many
        threads, so that a run does not depend on the machine's speed; a smaller number bounds HiGHS only.
    keep
        The plan in use, such as yesterday's: the search starts from it, and it stays the first candidate unless the
        best plan is better by more than ``keep_if_within``. Where it no longer fits, a warning says why.
    keep_if_within
        How much better the best plan must be to replace ``keep``, as a fraction of the value of ``keep``.
    """

    candidates: Annotated[int, Field(ge=1, le=MAX_CANDIDATES)] = 5
    time_limit_s: Annotated[float, Field(gt=0, le=MAX_TIME_LIMIT_S)] = 10.0
    relative_gap: Annotated[float, Field(ge=0, le=1)] = 0.0
    solver: SolverName = "auto"
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    workers: Annotated[int, Field(ge=1, le=64)] = 2
    keep: GivenPlan | None = None
    keep_if_within: Annotated[float, Field(ge=0, le=MAX_KEEPING)] = 0.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        if self.keep_if_within > 0 and self.keep is None:
            detail = "there is no plan to keep; name it in keep, or leave this out"
            faults.add(("keep_if_within",), detail, self.keep_if_within, "missing")
        faults.raise_if_any("Search")
        return self
