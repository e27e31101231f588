"""What a search over several configurations has found, and what has to be said of the comparison."""

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


MOST_NAMED = 8
"""Configurations that cannot be planned and are named with the reason; of more, only how many there are is said."""


def remarks(variants: Sequence[Variant], outcome: Outcome) -> list[str]:
    """Say which configurations cannot be planned and why, and whether schedules run on different numbers of ranks."""
    found, ranks, named = [], {}, _names(variants)
    for number, variant in enumerate(variants):
        best, reason = outcome.plans.best_of(number), outcome.reasons.get(number)
        if reason is not None:
            first = f": {reason.findings[0].message}" if reason.findings else ""
            found.append(f"{named[number]} cannot be planned: {reason.message}{first}")
        elif best is not None:
            ranks[named[number]] = len(best.plan.location)
    if len(found) > MOST_NAMED:
        found[MOST_NAMED:] = [f"{len(found) - MOST_NAMED} more configurations cannot be planned"]
    by_schedule = len({variant.instance.schedule.kind for variant in variants}) == len(variants)
    if by_schedule and len(set(ranks.values())) > 1:
        listed = ", ".join(f"{kind} on {count}" for kind, count in ranks.items())
        found.append(
            f"the schedules are compared on different numbers of ranks: {listed}; to compare them on the same, list a "
            "number of stages for each in num_stages"
        )
    return found


def _names(variants: Sequence[Variant]) -> list[str]:
    """Name variants by their schedules and by the degrees and batches that are not the same in all."""
    fields = ("tensor_parallel", "data_parallel", "replicas_per_node", "num_microbatches", "microbatch_size")
    differing = [field for field in fields if len({getattr(each.choice, field) for each in variants}) > 1]
    return [
        " ".join([each.choice.schedule.kind, *(f"{field} {getattr(each.choice, field)}" for field in differing)])
        for each in variants
    ]
