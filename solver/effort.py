"""How long it takes to walk the event graph, so that a time limit can be kept."""

from partita.solver.instance import Instance
from partita.solver.measure import skips_stages

SECONDS_PER_EDGE, SECONDS_PER_LEVEL = 1e-6, 4e-5
"""Time to build and to walk the graph a few times, per edge and per level, on a slow core."""

SHARE_OF_LIMIT = 0.5
"""The part of the time limit that the first walks may take."""


MOST_EDGES = 12_000_000
"""Edges of the largest graph that is built, for its memory."""


def graph_edges(instance: Instance, num_stages: int) -> int:
    """Give about how many edges the event graph of so many stages has."""
    actions = num_stages * instance.microbatches * (2 if instance.trains else 1)
    return actions * (2 + (num_stages if skips_stages(instance) else 0))


def graph_seconds(instance: Instance, num_stages: int) -> float:
    """Estimate the seconds that the event graph of so many stages takes before anything is known."""
    levels = 2 * (instance.microbatches + num_stages)
    return graph_edges(instance, num_stages) * SECONDS_PER_EDGE + levels * SECONDS_PER_LEVEL


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
    longest = max(graph_seconds(instance, count) for count in left)
    remedy = f"raise search.time_limit_s to {longest / SHARE_OF_LIMIT:.2g} or more"
    if any(graph_edges(instance, count) > MOST_EDGES for count in left):
        remedy = "plan fewer microbatches: the steady state of fewer is the same"
    stages = str(left[0]) if len(left) == 1 else f"{left[0]} to {left[-1]}"
    return kept, (
        f"{instance.microbatches} microbatches on {stages} stages are too much to simulate within {time_limit_s:g} s: "
        f"left out; {remedy}"
    )
