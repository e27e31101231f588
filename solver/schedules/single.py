"""Schedules with one stage on every rank."""

from partita.solver.schedules.actions import Order, Orders, alternate


def forward_only(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the order of inference: every microbatch forward, in turn."""
    return [[("F", rank, i) for i in range(num_microbatches)] for rank in range(num_ranks)]


def gpipe(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give GPipe's order: all forward passes, then all backward passes.

    References
    ----------
    Huang et al., GPipe, arXiv 1811.06965.
    """
    return [[(kind, rank, i) for kind in "FB" for i in range(num_microbatches)] for rank in range(num_ranks)]


def one_forward_one_backward(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the order of 1F1B: rank r warms up with R - 1 - r forward passes, then alternates.

    With fewer microbatches than ranks the warm-up is cut short.

    References
    ----------
    Narayanan et al., arXiv 2104.04473, section 2.2.1.
    """
    orders = []
    for rank in range(num_ranks):
        passes = [(rank, i) for i in range(num_microbatches)]
        orders.append(alternate(passes, passes, min(num_microbatches, num_ranks - 1 - rank), None))
    return orders


def zb_h1(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the order of ZB-H1: that of 1F1B, in which rank r postpones r weight gradients into the bubble.

    References
    ----------
    Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 2.3.
    """
    orders = []
    for rank in range(num_ranks):
        passes = [(rank, i) for i in range(num_microbatches)]
        orders.append(alternate(passes, passes, min(num_microbatches, num_ranks - 1 - rank), rank))
    return orders


def zb_h2(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the order of ZB-H2: a warm-up of 2 (R - r) - 1, and 2 r weight gradients postponed on rank r.

    The weight gradient comes before the next forward pass: the other way round costs the same and keeps more.

    References
    ----------
    Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 2.3.
    """
    orders = []
    for rank in range(num_ranks):
        warm_up, postponed = min(2 * (num_ranks - rank) - 1, num_microbatches), 2 * rank
        order: Order = [("F", rank, i) for i in range(warm_up)]
        for i in range(num_microbatches):
            order.append(("I", rank, i))
            if i >= postponed:
                order.append(("W", rank, i - postponed))
            if warm_up + i < num_microbatches:
                order.append(("F", rank, warm_up + i))
        order += [("W", rank, i) for i in range(max(0, num_microbatches - postponed), num_microbatches)]
        orders.append(order)
    return orders
