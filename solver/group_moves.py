"""Moves of groups to the next or the previous stage, for graphs in which stages are not intervals."""

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.deadline import Deadline
from partita.solver.grouping import Groups
from partita.solver.plans import Judge, Judged, Plan, PlanPool

MOST_MEASURED = 3000
"""Most plans that one search measures."""


def moves(groups: Groups, predecessors: list[list[int]], stage: IntArray) -> list[IntArray]:
    """Give the plans in which one group changes to a neighboring stage, with those of its stage that must go along.

    To a later stage go all that come after the group on its stage, to an earlier one all that come before it. No stage
    is left empty.
    """
    last = int(stage.max())
    sizes = np.bincount(stage, minlength=last + 1)
    found: dict[bytes, IntArray] = {}
    for group in range(len(groups)):
        here = int(stage[group])
        for step, related in ((1, groups.successors), (-1, predecessors)):
            if not 0 <= here + step <= last:
                continue
            moving = _along(group, related, stage)
            if len(moving) < sizes[here]:
                moved = stage.copy()
                moved[moving] += step
                found.setdefault(moved.tobytes(), moved)
    return list(found.values())


def _along(group: int, related: "list[list[int]] | tuple[tuple[int, ...], ...]", stage: IntArray) -> list[int]:
    """Give a group and all related to it, at any distance, on its own stage."""
    found, waiting = {group}, [group]
    while waiting:
        for other in related[waiting.pop()]:
            if stage[other] == stage[group] and other not in found:
                found.add(other)
                waiting.append(other)
    return sorted(found)


class GroupSearch:
    """Improves plans by moving groups.

    Parameters
    ----------
    judge
        What plans are judged by.
    plans
        Where every plan measured goes.
    """

    def __init__(self, judge: Judge, plans: PlanPool) -> None:
        self._judge, self._plans = judge, plans
        self._predecessors: list[list[int]] = [[] for _ in range(len(judge.groups))]
        for group, followers in enumerate(judge.groups.successors):
            for other in followers:
                self._predecessors[other].append(group)
        self._measured = 0

    def improve(self, start: Judged, deadline: Deadline) -> Judged:
        """Make the best move as long as one makes the plan better."""
        best = start
        while not deadline.passed and self._measured < MOST_MEASURED:
            plans = [
                Plan(stage, best.plan.location)
                for stage in moves(self._judge.groups, self._predecessors, best.plan.stage)
                if self._touches_worst(stage, best)
            ]
            self._measured += len(plans)
            judged = [each for each in self._judge.judge(plans) if each is not None] if plans else []
            for each in judged:
                self._plans.add(each)
            better = min(judged, key=lambda each: each.key, default=best)
            if better.key >= best.key:
                break
            best = better
        return best

    def _touches_worst(self, stage: IntArray, plan: Judged) -> bool:
        """Tell whether a move changes the rank that decides the objective: the busiest, or the fullest."""
        measures = plan.measures
        load = measures.memory.by_rank if self._judge.metric == "peak_memory" else measures.load
        rank = measures.memory.rank_of
        worst = int(load.argmax())
        changed = stage != plan.plan.stage
        return bool((rank[stage[changed]] == worst).any() or (rank[plan.plan.stage[changed]] == worst).any())
