"""Limits that cannot hold together, of which none can be spared: an irreducible core by deletion.

Whole blocks of limits are left out first and split in two where they are needed, so that a problem with many pins takes
few proofs. A limit is spared only by a proof that the others leave no plan, and needed only if a plan was found without
it; as leaving out more limits never takes a plan away, what was needed once is needed in the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from partita.models.infeasibility import NamedLimit
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.infeasibility.attempts import has_plan
from partita.solver.infeasibility.demands import keep_only


@dataclass
class CoreSearch:
    """The search for a core.

    Attributes
    ----------
    problem
        A problem proven to have no plan.
    deadline
        When it ends; what is not known by then is kept in the core.
    minimal
        Whether each limit of the core is known to be needed.
    """

    problem: Problem
    deadline: Deadline
    minimal: bool = True
    _possible: list[frozenset[str]] = field(default_factory=list)

    def find(self, limits: Sequence[NamedLimit]) -> list[NamedLimit]:
        """Give limits that cannot hold together out of all that the problem sets, in their order."""
        return self._shrink([], list(limits), [])

    def _shrink(self, before: list[NamedLimit], block: list[NamedLimit], after: list[NamedLimit]) -> list[NamedLimit]:
        """Give what cannot be spared of a block, where the limits before and after it are kept."""
        spared = self._spared([*before, *after]) if block else True
        if spared:
            return []
        if len(block) == 1:
            self.minimal &= spared is not None
            return block
        middle = len(block) // 2
        first = self._shrink(before, block[:middle], [*block[middle:], *after])
        return first + self._shrink([*before, *first], block[middle:], after)

    def _spared(self, kept: list[NamedLimit]) -> bool | None:
        """Tell whether it is proven that these limits alone leave no plan; None where time ran out."""
        pointers = frozenset(limit.pointer for limit in kept)
        if any(pointers <= known for known in self._possible):
            return False
        works = has_plan(keep_only(self.problem, kept), self.deadline)
        if works:
            self._possible.append(pointers)
        return None if works is None else not works
