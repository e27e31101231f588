"""How long and how the solver searches."""

from typing import Annotated, Literal

from pydantic import Field

from partita.models.base import Model

SolverName = Literal["auto", "cp-sat", "highs"]
MAX_CANDIDATES = 100
MAX_TIME_LIMIT_S = 86_400


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
    """

    candidates: Annotated[int, Field(ge=1, le=MAX_CANDIDATES)] = 5
    time_limit_s: Annotated[float, Field(gt=0, le=MAX_TIME_LIMIT_S)] = 10.0
    relative_gap: Annotated[float, Field(ge=0, le=1)] = 0.0
    solver: SolverName = "auto"
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    workers: Annotated[int, Field(ge=1, le=64)] = 2
