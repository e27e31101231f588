"""What no plan exceeds: times when everything happens one after the other, bytes when everything is carried far."""

from math import fsum

import numpy as np

from partita.solver.arrays import Times
from partita.solver.figures import MOST_TICKS, Figures, make_figures, roundings, totals, usual_path
from partita.solver.instance import Instance

OCCUPIED = 3
"""With ``blocking`` a transfer counts at both of its ends, and between them."""


def longest_time(instance: Instance, figures: Figures, num_stages: int) -> int:
    """Give a time that no iteration exceeds, in ticks, capped; everything goes over the slowest paths."""
    once = totals(instance, num_stages, figures.cap)
    each = once.computing + _transfers(instance, figures, num_stages)
    return _in_ticks(instance, figures, num_stages, instance.microbatches * each + once.after)


def longest_busy(instance: Instance, figures: Figures, num_stages: int) -> int:
    """Give a time that no bottleneck exceeds, in ticks, capped: that of a microbatch with all its transfers."""
    once = totals(instance, num_stages, figures.cap)
    return _in_ticks(instance, figures, num_stages, once.computing + _transfers(instance, figures, num_stages))


def most_traffic(instance: Instance, num_stages: int) -> int:
    """Give the bytes that no plan sends between nodes in one iteration."""
    sent = max(int(_carried(instance, case.edges.total, num_stages).sum()) for case in instance.cases)
    return instance.microbatches * sent


def _in_ticks(instance: Instance, figures: Figures, num_stages: int, seconds: float) -> int:
    """Give seconds as ticks, with all that rounding can add."""
    assert figures.tick is not None, "the solver counts in ticks"
    rounded = roundings(instance, usual_path(instance, num_stages)) * num_stages
    return int(min(seconds / figures.tick + rounded, MOST_TICKS))


def _transfers(instance: Instance, figures: Figures, num_stages: int) -> float:
    """Give the seconds that the transfers of a microbatch add to a path, which takes each once in either direction."""
    in_seconds, usable = make_figures(instance, cap=figures.cap), instance.topology.usable_classes
    slowest = usable[int(np.argmin(in_seconds.bandwidth[usable]))]
    latency = float(in_seconds.latency[usable].max())
    moved = _messages(instance, num_stages) * latency * fsum(own.count for own in in_seconds.cases)
    for case, own in zip(instance.cases, in_seconds.cases, strict=True):
        for sizes in case.edges.sizes:
            moved += float(_carried(instance, own.transfer(sizes, slowest), num_stages).sum())
    if instance.routing == "host":  # written and read
        moved *= 2
    return moved * (OCCUPIED if instance.blocking else 1)


def _carried(instance: Instance, amounts: Times, num_stages: int) -> Times:
    """Give what tensors amount to, shape (T,), as often as they may be carried.

    A chain's cross one boundary each, other than all others. Otherwise a tensor crosses every boundary at most, or
    goes to every other stage.
    """
    if instance.problem.model.tensors is None:
        largest: Times = np.sort(amounts)[::-1][: num_stages - 1]
        return largest
    carried: Times = amounts * (num_stages - 1)
    return carried


def _messages(instance: Instance, num_stages: int) -> int:
    """Give how many messages a microbatch takes in both directions at most, each with a latency."""
    boundaries = num_stages - 1
    if instance.routing == "relay" or instance.problem.model.tensors is None:
        return 2 * boundaries
    readers = sum(len(each) for each in instance.edges.consumers)
    return 2 * boundaries * (1 + len(instance.edges.producer) + readers)
