"""Which stage every group is on: thresholds, their order, filled stages, intervals and groups apart (C1 to C5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.domains import Domains
from partita.solver.grouping import Groups
from partita.solver.program.linear import Linear, Program, Variable


@dataclass(frozen=True)
class Assignment:
    """The thresholds g_ik of C1: 0, 1 or a variable; and whether a stage at the front is in use.

    Attributes
    ----------
    thresholds
        By group, then stage 0 to S.
    used
        By stage: 1, or an expression where the stage may be empty.
    """

    groups: Groups
    domains: Domains
    num_stages: int
    thresholds: list[list[Variable | int]]
    used: list[Linear | int]

    def at(self, group: int, stage: int) -> Linear:
        """Give x_ik: 1 when the group is on the stage."""
        return Linear().add(self.thresholds[group][stage]).add(self.thresholds[group][stage + 1], -1)

    def possible(self, group: int, stage: int) -> bool:
        """Tell whether the group can be on the stage at all."""
        return bool(self.domains.earliest[group] <= stage <= self.domains.latest[group])

    def decode(self) -> IntArray:
        """Read the stage of every group from the solved variables."""
        stage = np.zeros(len(self.groups), dtype=np.int64)
        for group, row in enumerate(self.thresholds):
            stage[group] = sum(
                value if isinstance(value, int) else round(value.varValue or 0) for value in row[1 : self.num_stages]
            )
        return stage


def add_assignment(program: Program, groups: Groups, domains: Domains, num_stages: int, optional: int) -> Assignment:
    """Add the thresholds and C1 to C3 and C5; the first ``optional`` stages may be empty."""
    thresholds: list[list[Variable | int]] = []
    for group in range(len(groups)):
        first, last = int(domains.earliest[group]), int(domains.latest[group])
        row: list[Variable | int] = [1] * (first + 1)
        row += [program.binary(f"g_{group}_{stage}") for stage in range(first + 1, last + 1)]
        thresholds.append(row + [0] * (num_stages - last))
    assignment = Assignment(groups, domains, num_stages, thresholds, [1] * num_stages)
    _add_stage_order(program, assignment)
    _add_layer_order(program, assignment)
    _add_filled_stages(program, assignment, optional)
    _add_intervals(program, assignment)
    return assignment


def _less(program: Program, name: str, small: Variable | int, large: Variable | int) -> None:
    """Add small <= large for two thresholds, unless it holds anyway."""
    if not (isinstance(small, int) and small == 0) and not (isinstance(large, int) and large == 1):
        program.at_least(name, Linear().add(large).add(small, -1), 0)


def _add_stage_order(program: Program, assignment: Assignment) -> None:
    for row in assignment.thresholds:
        for stage in range(1, assignment.num_stages - 1):
            _less(program, "stage_order", row[stage + 1], row[stage])


def _add_layer_order(program: Program, assignment: Assignment) -> None:
    """Add C2; in a total order also that two neighbors are at most one stage apart, as no stage is empty."""
    rows = assignment.thresholds
    if assignment.groups.total_order:
        for group in range(len(rows) - 1):
            for stage in range(1, assignment.num_stages):
                _less(program, "layer_order", rows[group][stage], rows[group + 1][stage])
                _less(program, "next_stage", rows[group + 1][stage + 1], rows[group][stage])
        return
    for group, followers in enumerate(assignment.domains.successors):
        for other in followers:
            for stage in range(1, assignment.num_stages):
                _less(program, "layer_order", rows[group][stage], rows[other][stage])


def _add_filled_stages(program: Program, assignment: Assignment, optional: int) -> None:
    """Add C3; the stages that may be empty are so from the front."""
    rows, stages = assignment.thresholds, assignment.num_stages
    for stage in range(optional):
        used = program.binary(f"used_{stage}")
        assignment.used[stage] = Linear().add(used)
        for row in rows:
            program.at_least("used", Linear().add(used).add(row[stage + 1]), 1)
    for stage in range(stages):
        count = Linear()
        for group in range(len(rows)):
            if assignment.possible(group, stage):
                count.add(assignment.at(group, stage))
        program.at_least("filled", count.add(assignment.used[stage], -1), 0)


def _add_intervals(program: Program, assignment: Assignment) -> None:
    """Add C4: when a stage starts by one position, the next one starts by another."""
    rows = assignment.thresholds
    for (group, stage), (other, following) in assignment.domains.implications:
        _less(program, "interval", rows[group][stage], rows[other][following])


def add_apart(program: Program, assignment: Assignment, apart: Sequence[IntArray]) -> None:
    """Add C5: of groups kept apart, a stage has at most one."""
    for each in apart:
        for stage in range(assignment.num_stages):
            count = Linear()
            for group in each.tolist():
                count.add(assignment.at(group, stage), -1)
            program.at_least("apart", count, -1)
