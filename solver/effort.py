"""How long it takes to walk the event graph, so that a time limit can be kept."""

from math import ceil, floor, log10

from partita.models.search import MAX_TIME_LIMIT_S
from partita.solver.figures import usual_path
from partita.solver.instance import Instance
from partita.solver.measure import skips_stages

SECONDS_PER_EDGE, SECONDS_PER_LEVEL = 1e-6, 4e-5
"""Time to build and to walk the graph a few times, per edge and per level, on a slow core."""

SECONDS_PER_QUEUED_EDGE = 4e-6
"""Time to simulate queues for links, per edge and candidate, on a slow core."""

SHARE_OF_LIMIT = 0.5
"""The part of the time limit that the first walks may take."""


MOST_EDGES = 12_000_000
"""Edges of the largest graph that is built, for its memory."""


def graph_edges(instance: Instance, num_stages: int) -> int:
    """Give about how many edges the event graph of so many stages has."""
    passes = 3 if instance.schedule.splits else 2 if instance.trains else 1
    edges = num_stages * instance.microbatches * (passes + 3 * (num_stages if skips_stages(instance) else 1))
    return len(instance.cases) * edges


def graph_seconds(instance: Instance, num_stages: int) -> float:
    """Estimate the seconds before anything is known of so many stages, and those that simulate queues at the end."""
    levels = usual_path(instance, num_stages)
    simulated = instance.problem.search.candidates if instance.problem.training.queueing else 0
    per_edge = SECONDS_PER_EDGE + simulated * SECONDS_PER_QUEUED_EDGE
    return graph_edges(instance, num_stages) * per_edge + levels * SECONDS_PER_LEVEL


def affordable(instance: Instance, stage_counts: list[int], time_limit_s: float) -> tuple[list[int], str | None]:
    """Give the numbers of stages whose graphs can be walked in time, and a warning that names the others."""
    kept = [
        count
        for count in stage_counts
        if graph_seconds(instance, count) <= SHARE_OF_LIMIT * time_limit_s
        and graph_edges(instance, count) <= MOST_EDGES
    ]
    if len(kept) == len(stage_counts):
        return kept, None
    left = sorted(set(stage_counts) - set(kept))
    return kept, f"{_too_much(instance, left, time_limit_s)}: left out; {_remedy(instance, left)}"


def unaffordable(instance: Instance, num_stages: int, time_limit_s: float) -> str | None:
    """Tell why a plan with so many stages cannot be simulated in time, and what would help; None where it can."""
    if affordable(instance, [num_stages], time_limit_s)[0]:
        return None
    return f"{_too_much(instance, [num_stages], time_limit_s)}; {_remedy(instance, [num_stages])}"


def _too_much(instance: Instance, left: list[int], time_limit_s: float) -> str:
    stages = f"{left[0]} stage{'' if left[0] == 1 else 's'}" if len(left) == 1 else f"{left[0]} to {left[-1]} stages"
    return f"{instance.microbatches} microbatches on {stages} are too much to simulate within {time_limit_s:g} s"


def _remedy(instance: Instance, left: list[int]) -> str:
    """Say what would make it possible to simulate all these numbers of stages."""
    longest = max(graph_seconds(instance, count) for count in left) / SHARE_OF_LIMIT
    if longest > MAX_TIME_LIMIT_S or any(graph_edges(instance, count) > MOST_EDGES for count in left):
        return "give fewer microbatches: the steady state of fewer is the same"
    digit = 10.0 ** (floor(log10(longest)) - 1)
    return f"raise search.time_limit_s to {ceil(longest / digit) * digit:g} or more"
