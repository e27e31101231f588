"""Random schedules for random problems: a kind with its stages and microbatches, or orders that cannot get stuck."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from oracle.orders import Action, allows

PLAIN = ("1f1b", "1f1b", "gpipe", "forward_only")
"""Schedules with one stage per rank and a whole backward."""
LOOPED = ("interleaved_1f1b", "interleaved_zb", "looped_bfs")
"""Schedules that leave the number of stages per rank open."""
SPLIT = ("zb_h1", "zb_h2", "zb_v", "dualpipe_v", "interleaved_zb", "custom")
"""Schedules with input and weight gradients apart; a custom one may have them."""
EVERY_KIND = (*PLAIN, *LOOPED, "zb_h1", "zb_h2", "zb_v", "zb_v", "dualpipe_v", "dualpipe_v", "custom", "custom")
"""What random problems choose from."""
MOST_STAGES = 6
MOST_RANKS = 4


def draw_schedule(random: Random, kinds: Sequence[str], layers: int, slots: int) -> dict[str, Any] | None:
    """Draw schedule, microbatches and number of stages, as in a problem's training; None where nothing fits."""
    kind = random.choice(kinds)
    if kind == "custom":
        return _draw_custom(random, layers, slots)
    schedule: str | dict[str, Any] = kind
    chunks = 2 if kind in (*LOOPED, "zb_v", "dualpipe_v") else 1
    if kind in LOOPED and random.random() < 0.6:
        chunks = random.choice([1, 2, 3, 3])
        schedule = {"kind": kind, "chunks_per_rank": chunks}
    microbatches = random.randint(2 if kind == "dualpipe_v" else 1, 8)
    counts = [
        ranks * chunks
        for ranks in range(1, min(slots, MOST_RANKS) + 1)
        if ranks * chunks <= min(layers, MOST_STAGES) and allows(kind, ranks, microbatches)
    ]
    if not counts:
        return None
    several = sorted(random.sample(counts, random.randint(1, len(counts))))
    asked: list[int | list[int] | None] = [counts[-1], counts[-1], random.choice(counts), several]
    if min(layers, slots * chunks) <= MOST_STAGES:
        asked += [None, None]
    return {"schedule": schedule, "num_microbatches": microbatches, "num_stages": random.choice(asked)}


def _draw_custom(random: Random, layers: int, slots: int) -> dict[str, Any] | None:
    """Draw which rank runs which stage, how every backward is run, and orders."""
    ranks = random.randint(1, min(slots, MOST_RANKS, layers))
    stages = random.randint(ranks, min(layers, MOST_STAGES))
    rank_of = [*range(ranks), *(random.randrange(ranks) for _ in range(stages - ranks))]
    random.shuffle(rank_of)
    microbatches = random.randint(1, 5)
    kinds = random.choice(["", "B", "I", "I", "BI", "BI"])
    orders = random_orders(random, rank_of, microbatches, kinds)
    texts = [[f"{stage}{kind}{microbatch}" for kind, stage, microbatch in order] for order in orders]
    return {
        "schedule": {"kind": "custom", "orders": texts},
        "num_microbatches": microbatches,
        "num_stages": random.choice([None, stages]),
    }


def random_orders(random: Random, rank_of: Sequence[int], microbatches: int, kinds: str) -> list[list[Action]]:
    """Let one action after another come next on its rank, at random among those that wait for nothing.

    Every backward is of one of the kinds (B, or I with its W); without kinds there is none.
    """
    needs = _needs(len(rank_of), microbatches, lambda: random.choice(kinds) if kinds else "")
    prompt = random.choice([0.0, 0.5, 0.9])
    orders: list[list[Action]] = [[] for _ in range(max(rank_of) + 1)]
    while needs:
        ready = [action for action, needed in needs.items() if not any(each in needs for each in needed)]
        backward = [action for action in ready if action[0] != "F"]
        action = random.choice(backward if backward and random.random() < prompt else ready)
        orders[rank_of[action[1]]].append(action)
        del needs[action]
    return orders


def _needs(stages: int, microbatches: int, draw_backward: Callable[[], str]) -> dict[Action, list[Action]]:
    """Give what every action waits for."""
    needs: dict[Action, list[Action]] = {}
    for microbatch in range(microbatches):
        for stage in range(stages):
            needs["F", stage, microbatch] = [("F", stage - 1, microbatch)] if stage else []
        later: list[Action] = []
        for stage in reversed(range(stages)):
            kind = draw_backward()
            if not kind:
                continue
            backward = kind, stage, microbatch
            needs[backward] = [("F", stage, microbatch), *later]
            later = [backward]
            if kind == "I":
                needs["W", stage, microbatch] = [backward]
    return needs
