"""All plans of intervals of a small problem with one number of stages, judged one by one."""

from itertools import combinations

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.configuration import Configuration
from partita.solver.local_search import stages_of
from partita.solver.plans import Judged, Plan, PlanPool
from partita.solver.session import Session
from partita.solver.tools import Counters


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
