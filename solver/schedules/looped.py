"""Schedules that lay the stages around the ranks: chunk c of rank r is stage c * R + r."""

from partita.solver.schedules.actions import Orders, Pass, alternate


def interleaved_1f1b(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the order of interleaved 1F1B.

    The microbatches go in rounds of about R; a round passes through one chunk after the other.

    References
    ----------
    Narayanan et al., arXiv 2104.04473, section 2.2.2; rounds of other sizes as in torch.distributed.pipelining.
    """
    return _interleaved(num_ranks, chunks, num_microbatches, 2, split=False)


def interleaved_zb(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the order of interleaved zero-bubble: half the warm-up, and r weight gradients postponed on rank r.

    References
    ----------
    Qi et al., arXiv 2401.10241, as torch.distributed.pipelining has it in ScheduleInterleavedZeroBubble.
    """
    return _interleaved(num_ranks, chunks, num_microbatches, 1, split=True)


def _interleaved(num_ranks: int, chunks: int, num_microbatches: int, warm_up_per_hop: int, split: bool) -> Orders:
    """Alternate, with so many more forward passes to warm up with for every rank behind."""
    size = num_microbatches // max(1, num_microbatches // num_ranks)
    total = chunks * num_microbatches
    orders = []
    for rank in range(num_ranks):
        passes: list[Pass] = []
        returns: list[Pass] = []
        for number in range(total):
            chunk = number // size % chunks
            microbatch = number // (size * chunks) * size + number % size
            passes.append((chunk * num_ranks + rank, microbatch))
            returns.append(((chunks - 1 - chunk) * num_ranks + rank, microbatch))
        warm_up = min(total, (chunks - 1) * size + warm_up_per_hop * (num_ranks - 1 - rank))
        orders.append(alternate(passes, returns, warm_up, rank if split else None))
    return orders


def looped_bfs(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the breadth-first order: all microbatches through one chunk after the other, and back in reverse.

    References
    ----------
    Lamy-Poirier, Breadth-First Pipeline Parallelism, arXiv 2211.05953; reversed as in torch.distributed.pipelining.
    """
    orders = []
    for rank in range(num_ranks):
        passes = [(chunk * num_ranks + rank, i) for chunk in range(chunks) for i in range(num_microbatches)]
        orders.append([("F", *each) for each in passes] + [("B", *each) for each in reversed(passes)])
    return orders
