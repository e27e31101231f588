"""The form in which schedules are written, and the alternation that most of them share."""

from collections.abc import Sequence

Action = tuple[str, int, int]
"""Kind (F, B, I or W), stage and microbatch."""

Order = list[Action]
Orders = list[Order]

Pass = tuple[int, int]
"""Stage and microbatch."""


def alternate(passes: Sequence[Pass], returns: Sequence[Pass], warm_up: int, postponed: int | None) -> Order:
    """Run some forward passes first, then a forward and a backward pass in turn.

    Parameters
    ----------
    passes, returns
        The forward and the backward passes in order.
    warm_up
        Forward passes before the first backward pass; no more than there are.
    postponed
        None for whole backward passes; else the backward is split, and every weight gradient waits until so many
        further input gradients are done.
    """
    order: Order = [("F", *each) for each in passes[:warm_up]]
    backward = "B" if postponed is None else "I"
    for number, each in enumerate(returns):
        if warm_up + number < len(passes):
            order.append(("F", *passes[warm_up + number]))
        order.append((backward, *each))
        if postponed is not None and number >= postponed:
            order.append(("W", *returns[number - postponed]))
    if postponed is not None:
        order += [("W", *each) for each in returns[max(0, len(returns) - postponed) :]]
    return order
