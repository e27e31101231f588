"""What a search over several schedules has found, and what has to be said of the comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from partita.models.answer import Infeasibility
from partita.solver.plans import PlanPool
from partita.solver.ranking import Ranking
from partita.solver.tools import Counters
from partita.solver.variants import Variant


@dataclass
class Outcome:
    """What a search has found.

    Attributes
    ----------
    ranking, plans, counters
        The plans in order, all that were seen, and the effort.
    reasons
        Why variants cannot be planned at all, by their numbers.
    notes
        What was left out.
    """

    ranking: Ranking = field(default_factory=Ranking)
    plans: PlanPool = field(default_factory=PlanPool)
    counters: Counters = field(default_factory=Counters)
    reasons: dict[int, Infeasibility] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def remarks(variants: Sequence[Variant], outcome: Outcome) -> list[str]:
    """Say which schedules cannot be planned and why, and whether the others run on different numbers of ranks."""
    found, ranks = [], {}
    for number, variant in enumerate(variants):
        kind, reason = variant.instance.schedule.kind, outcome.reasons.get(number)
        best = outcome.plans.best_of(number)
        if reason is not None:
            first = f": {reason.findings[0].message}" if reason.findings else ""
            found.append(f"{kind} cannot be planned: {reason.message}{first}")
        elif best is not None:
            ranks[kind] = len(best.plan.location)
    if len(set(ranks.values())) > 1:
        listed = ", ".join(f"{kind} on {count}" for kind, count in ranks.items())
        found.append(
            f"the schedules are compared on different numbers of ranks: {listed}; to compare them on the same, list a "
            "number of stages for each in num_stages"
        )
    return found
