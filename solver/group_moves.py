"""Moves of groups to the next or the previous stage, for graphs in which stages are not intervals."""

from collections.abc import Iterator

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.deadline import Deadline
from partita.solver.grouping import Groups
from partita.solver.plans import Judge, Judged, Plan, PlanPool

MOST_MEASURED = 3000
"""Most plans that one search measures."""


def moves(groups: Groups, predecessors: list[list[int]], stage: IntArray) -> Iterator[tuple[list[int], int]]:
    """Give the moves of one group to a neighboring stage, with those of its stage that must go along.

    To a later stage go all that come after the group on its stage, to an earlier one all that come before it. No stage
    is left empty. Each move is the groups that move, ascending, and the step to their new stage; each is given once.
    """
    last = int(stage.max())
    sizes = np.bincount(stage, minlength=last + 1)
    seen: set[tuple[int, ...]] = set()
    for group in range(len(groups)):
        here = int(stage[group])
        for step, related in ((1, groups.successors), (-1, predecessors)):
            if not 0 <= here + step <= last:
                continue
            moving = _along(group, related, stage)
            if len(moving) < sizes[here] and (step, *moving) not in seen:
                seen.add((step, *moving))
                yield moving, step


def predecessors_of(groups: Groups) -> list[list[int]]:
    """Give, for every group, the groups that may not be on a later stage, ascending."""
    before: list[list[int]] = [[] for _ in range(len(groups))]
    for group, followers in enumerate(groups.successors):
        for other in followers:
            before[other].append(group)
    return before


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
        self._predecessors = predecessors_of(judge.groups)
        self._measured = 0

    def improve(self, start: Judged, deadline: Deadline) -> Judged:
        """Make the best move as long as one makes the plan better."""
        best = start
        while not deadline.passed and self._measured < MOST_MEASURED:
            plans = []
            for moving, step in moves(self._judge.groups, self._predecessors, best.plan.stage):
                stage = best.plan.stage.copy()
                stage[moving] += step
                if self._touches_worst(stage, best):
                    plans.append(Plan(stage, best.plan.location))
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
        """Tell whether a move changes a rank that decides the objective: the busiest, the fullest, for traffic any."""
        measures, target = plan.measures, self._judge.target
        if target.counts("inter_node_bytes"):
            return True
        worst = [int(measures.needed.argmax())] if target.counts("peak_memory") else []
        if self._judge.metric != "peak_memory":
            worst.append(int(measures.load.argmax()))
        rank = measures.memory[0].rank_of
        changed = stage != plan.plan.stage
        ranks = np.concatenate([rank[stage[changed]], rank[plan.plan.stage[changed]]])
        return bool(np.isin(ranks, worst).any())
