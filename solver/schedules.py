"""Schedules: the order in which every rank runs its forward (F) and backward (B) passes.

A generator gives one list of actions per rank; an action is (kind, stage, microbatch). With one stage per rank, the
stage is the rank.
"""

from collections.abc import Callable

Action = tuple[str, int, int]
Orders = list[list[Action]]


def forward_only(num_stages: int, num_microbatches: int) -> Orders:
    """Give the order of inference: every microbatch forward, in turn."""
    return [[("F", stage, i) for i in range(num_microbatches)] for stage in range(num_stages)]


def gpipe(num_stages: int, num_microbatches: int) -> Orders:
    """Give GPipe's order: all forward passes, then all backward passes.

    References
    ----------
    Huang et al., GPipe, arXiv 1811.06965.
    """
    return [[(kind, stage, i) for kind in "FB" for i in range(num_microbatches)] for stage in range(num_stages)]


def one_forward_one_backward(num_stages: int, num_microbatches: int) -> Orders:
    """Give the order of 1F1B: stage s warms up with S - 1 - s forward passes, then alternates.

    With fewer microbatches than stages the warm-up is cut short.

    References
    ----------
    Narayanan et al., arXiv 2104.04473, section 2.2.1.
    """
    orders = []
    for stage in range(num_stages):
        warm_up = min(num_microbatches, num_stages - 1 - stage)
        order: list[Action] = [("F", stage, i) for i in range(warm_up)]
        for i in range(num_microbatches):
            if warm_up + i < num_microbatches:
                order.append(("F", stage, warm_up + i))
            order.append(("B", stage, i))
        orders.append(order)
    return orders


SCHEDULES: dict[str, Callable[[int, int], Orders]] = {
    "forward_only": forward_only,
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
}


def in_flight(orders: Orders) -> list[int]:
    """Give the most microbatches that each rank keeps from forward to backward, read off its order.

    Without backward passes nothing is kept.
    """
    peaks = []
    for order in orders:
        held = peak = 0
        if any(kind == "B" for kind, _, _ in order):
            for kind, _, _ in order:
                held += 1 if kind == "F" else -1
                peak = max(peak, held)
        peaks.append(peak)
    return peaks
