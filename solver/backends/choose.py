"""Which solver a search asks for."""

from partita.models.search import Search
from partita.solver.backends.base import Backend
from partita.solver.backends.cp_sat import CpSat
from partita.solver.backends.highs import Highs


def backend_of(search: Search) -> Backend:
    """Make the solver that a search asks for."""
    kind = Highs if search.solver == "highs" else CpSat
    return kind(search.seed, search.workers)
