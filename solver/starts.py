"""A plan in use as a start for the search."""

from collections.abc import Sequence

import numpy as np

from partita.models.errors import InvalidInput
from partita.solver.arrays import IntArray
from partita.solver.grouping import Groups
from partita.solver.layout import lay_out, locations_of, nodes_of
from partita.solver.plans import Judged, Plan
from partita.solver.twins import ascending
from partita.solver.variants import Variant


def start_of(variant: Variant, stage_counts: Sequence[int]) -> Judged | None:
    """Judge the plan that the problem names in ``search.keep``.

    Parameters
    ----------
    variant
        The problem in one of its configurations.
    stage_counts
        The numbers of stages that are searched.

    Returns
    -------
    Judged or None
        None where no plan is named, or where it is none that the search could find: it does not fit the problem, breaks
        a limit, or lies on nodes in the place of which equal ones are searched.
    """
    keep, topology = variant.instance.problem.search.keep, variant.instance.topology
    if keep is None or not keep.configuration.allows(variant.choice):
        return None
    try:
        laid = lay_out(variant.instance.problem, keep)
    except InvalidInput:
        return None
    stage = stage_of_groups(variant.judge.groups, laid.plan.stage)
    nodes = {nodes_of(each) for each in laid.devices or ()}
    if stage is None or int(stage.max()) + 1 not in stage_counts or not nodes <= topology.sets:
        return None
    location = locations_of(topology, len(laid.plan.location), laid.devices)
    return variant.judge.judge([ascending(variant.judge.groups, Plan(stage, location, laid.plan.option))])[0]


def stage_of_groups(groups: Groups, stage: IntArray) -> IntArray | None:
    """Give the stage of every group, shape (G,), from those of the layers, (L,); None where a group is torn."""
    first = np.array([stage[members[0]] for members in groups.members], dtype=np.int64)
    return first if (first[groups.group_of] == stage).all() else None
