"""Random chains on one node, and all plans of intervals of such a problem, judged one by one."""

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Any

import numpy as np

from oracle.small import small_problem
from partita.models.problem import Problem
from partita.solver.arrays import IntArray
from partita.solver.configuration import Configuration
from partita.solver.local_search import stages_of
from partita.solver.plans import Judged, Plan, PlanPool
from partita.solver.session import Session
from partita.solver.tools import Counters

TWO_EACH = ("interleaved_1f1b", "interleaved_zb", "looped_bfs", "zb_v", "dualpipe_v")
"""The schedules of two stages on every rank."""


def drawn_layer(random: Random) -> dict[str, int]:
    """Draw the costs of a layer."""
    backward, kept = random.randint(1, 9), random.randint(0, 9)
    return {
        "forward_s": random.randint(1, 9),
        "backward_s": backward,
        "weight_gradient_s": random.randint(0, backward),
        "activation_bytes": kept,
        "weight_gradient_bytes": random.randint(0, kept),
        "weight_bytes": random.randint(0, 9),
        "output_bytes": random.randint(0, 9) * 10**3,
    }


def chain_on_a_node(
    random: Random, ranks: int, layers: Sequence[dict[str, int]], kinds: Sequence[str], **others: Any
) -> Problem:
    """Make a chain for twice as many stages as ranks, with a schedule, a memory and a fabric that are drawn."""
    fabric = {"bandwidth_bytes_per_s": random.randint(1, 9) * 1e3, "latency_s": random.choice([0.0, 0.5])}
    return small_problem(
        {f"layer{index}": each for index, each in enumerate(layers)},
        nodes=[{"name": "node0", "device": "gpu", "count": 2 * ranks, "fabric": fabric}],
        memory=random.choice([10**9, random.randint(60, 300) + 20_000]),
        schedule=random.choice(kinds),
        num_stages=2 * ranks,
        num_microbatches=2 * ranks * random.choice([1, 2]),
        **others,
    )


def configuration_of(session: Session, plans: PlanPool) -> Configuration:
    """Give the search for plans of the one number of stages."""
    (variant,) = session.variants
    return Configuration(session._tools(variant, plans, Counters()), variant.stage_counts[0])


def interval_plans(configuration: Configuration) -> list[tuple[IntArray, Judged]]:
    """Judge every division into intervals; give those that are allowed, with where their stages start."""
    judge, stages = configuration.tools.judge, configuration.num_stages
    location = judge.instance.topology.in_order(judge.instance.num_ranks(stages))
    assert location is not None
    size = len(judge.groups)
    starts = [np.array([0, *inner, size], dtype=np.int64) for inner in combinations(range(1, size), stages - 1)]
    judged = judge.judge([Plan(stages_of(each), location) for each in starts])
    return [(cuts, each) for cuts, each in zip(starts, judged, strict=True) if each is not None]
