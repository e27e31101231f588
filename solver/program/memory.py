"""What stages hold: storages that several groups share, and memory within capacity (C7, C8)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.costs import sum_by
from partita.solver.instance import Instance, Storages
from partita.solver.pipeline import Pipeline
from partita.solver.program.assignment import Assignment
from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.program.scale import Scale
from partita.solver.program.ways import WayRows


@dataclass(frozen=True)
class GroupedStorages:
    """Storages by the groups that hold them.

    Attributes
    ----------
    groups
        The groups of each of the Q storages.
    total
        Bytes of each, shape (Q,).
    """

    groups: list[list[int]]
    total: IntArray


def group_storages(storages: Storages, group_of: IntArray) -> GroupedStorages:
    """Tell which groups hold each storage."""
    return GroupedStorages(
        groups=[np.unique(group_of[layers]).tolist() for layers in storages.layers],
        total=storages.total,
    )


def add_holding(
    program: Program, assignment: Assignment, groups: list[int], owners: Sequence[IntArray], name: str
) -> list[Linear]:
    """Add C7 for one storage; give by owner whether it is held: a variable, or x_ik where one group decides.

    Parameters
    ----------
    groups
        The groups that use the storage.
    owners
        The stages of every rank, where it counts once for a rank; or every stage alone.
    """
    held = []
    for number, stages in enumerate(owners):
        users = [_on_any(assignment, group, stages) for group in groups]
        possible = [user for user in users if user.terms or user.constant]
        if len(possible) <= 1:
            held.append(possible[0] if possible else Linear())
            continue
        variable = program.binary(f"hold_{name}_{number}")
        for user in possible:
            program.at_least("hold", Linear().add(variable).add(user, -1), 0)
        held.append(Linear().add(variable))
    return held


def _on_any(assignment: Assignment, group: int, stages: IntArray) -> Linear:
    """Tell whether a group is on one of some stages."""
    where = Linear()
    for stage in stages.tolist():
        if assignment.possible(group, stage):
            where.add(assignment.at(group, stage))
    return where


class MemoryRows:
    """Bytes of every rank as expressions.

    Parameters
    ----------
    program, assignment, scale
        Where the rows go, which stage every group is on, and the unit of bytes.
    instance, pipeline, ways
        The problem, its ranks and when they can be fullest, and by which ways layers run.

    Attributes
    ----------
    state
        Bytes of every rank that are the same in all scenarios.
    passing
        Of every scenario, the bytes of every rank that do not depend on what is in flight: workspace, receive buffers.
    weights_held
        Of every named weight by rank, whether it is held there.
    """

    def __init__(
        self,
        program: Program,
        assignment: Assignment,
        scale: Scale,
        instance: Instance,
        pipeline: Pipeline,
        ways: WayRows,
    ) -> None:
        self._program, self._assignment, self._scale, self._ways = program, assignment, scale, ways
        self._ranks, self._moments = pipeline.stages_of, pipeline.moments
        self._rank_of = pipeline.rank_of
        reserves = instance.topology.reserves
        self.state = [Linear(scale.size(reserves.min())) for _ in self._ranks]
        self.passing = [[Linear() for _ in self._ranks] for _ in instance.cases]
        group_of, size = assignment.groups.group_of, len(assignment.groups)
        layers, costs = instance.layers, instance.ways.costs
        private, surplus = sum_by(group_of, layers.state, size), ways.surplus(costs.state)
        for rank, (row, stages) in enumerate(zip(self.state, self._ranks, strict=True)):
            for kind in np.flatnonzero(reserves > reserves.min()).tolist():
                row.add(ways.is_kind(rank, kind), scale.size(reserves[kind] - reserves.min()))
            for stage in stages.tolist():
                self._add_private(row, stage, private, surplus)
        self.weights_held = self._add_shared(group_storages(instance.weights, group_of), "weight")
        self._add_shared(group_storages(instance.buffers, group_of), "buffer")
        each_stage = [np.array([stage]) for stage in range(assignment.num_stages)]
        saved = [
            add_holding(program, assignment, groups, each_stage, f"saved_{number}")
            for number, groups in enumerate(group_storages(instance.shared, group_of).groups)
        ]
        self._activations = []
        for number in instance.filling:
            case = instance.cases[number]
            layers, costs = case.layers, case.ways.costs
            self._add_workspace(number, costs.workspace)
            kept = (sum_by(group_of, layers.activation, size), ways.surplus(costs.activation))
            for_weights = (sum_by(group_of, layers.for_weight_gradient, size), ways.surplus(costs.for_weight_gradient))
            rows = self._add_activations(kept, for_weights, list(zip(saved, case.shared.total.tolist(), strict=True)))
            self._activations += [(number, rank, row) for rank, row in rows]

    def _add_private(self, row: Linear, stage: int, sizes: IntArray, surplus: IntArray) -> None:
        for group in np.flatnonzero(sizes).tolist():
            if self._assignment.possible(group, stage):
                row.add(self._assignment.at(group, stage), self._scale.size(sizes[group]))
        self._ways.add(row, stage, surplus, self._scale.size)

    def _add_shared(self, storages: GroupedStorages, name: str) -> list[list[Linear]]:
        held = []
        for number, groups in enumerate(storages.groups):
            held.append(add_holding(self._program, self._assignment, groups, self._ranks, f"{name}_{number}"))
            for rank, row in enumerate(self.state):
                row.add(held[-1][rank], self._scale.size(storages.total[number]))
        return held

    def _add_workspace(self, case: int, table: IntArray) -> None:
        """Add the largest workspace of every rank; of every group at least, and of every layer by its way."""
        if not table.any():
            return
        workspace = np.zeros(len(self._assignment.groups), dtype=np.int64)
        np.maximum.at(workspace, self._assignment.groups.group_of, table.min(axis=(0, 1)))
        most = self._scale.size(table.max())
        by_way = self._ways.largest(table)
        for rank, row in enumerate(self.passing[case]):
            largest = self._program.quantity(f"workspace_{rank}" + (f"_{case}" if case else ""), 0, most)
            for group in np.flatnonzero(workspace).tolist():
                where = _on_any(self._assignment, group, self._ranks[rank])
                if where.terms or where.constant:
                    need = Linear().add(largest).add(where, -self._scale.size(workspace[group]))
                    self._program.at_least("workspace", need, 0)
            for stage, size in by_way:
                if self._rank_of[stage] == rank:
                    need = Linear().add(largest)
                    need.add_all((variable, -self._scale.size(int(each))) for variable, each in size.terms.items())
                    self._program.at_least("workspace", need, 0)
            row.add(largest)

    def _add_activations(
        self,
        kept: tuple[IntArray, IntArray],
        for_weights: tuple[IntArray, IntArray],
        saved: list[tuple[list[Linear], int]],
    ) -> list[tuple[int, Linear]]:
        """Give for every moment its rank and what it keeps for backward passes.

        Parameters
        ----------
        kept, for_weights
            What the groups keep at least, and the surplus of units by their ways.
        saved
            Of every shared activation, whether it is held by stage, and its bytes.
        """
        rows = [(rank, Linear()) for rank in self._moments.rank.tolist()]
        entries = (self._moments.moment, self._moments.stage, self._moments.whole, self._moments.postponed)
        for moment, stage, whole, postponed in zip(*(entry.tolist() for entry in entries), strict=True):
            row = rows[moment][1]
            sizes, surplus = (whole * a + postponed * b for a, b in zip(kept, for_weights, strict=True))
            self._add_private(row, stage, sizes, surplus)
            for held, size in saved:
                row.add(held[stage], self._scale.size((whole + postponed) * size))
        return rows

    @property
    def _totals(self) -> list[tuple[int, Linear]]:
        """Give for every moment of every scenario the rank and all that it needs."""
        return [
            (rank, Linear().add(self.state[rank]).add(self.passing[case][rank]).add(activations))
            for case, rank, activations in self._activations
        ]

    def add_capacity(self, capacities: IntArray) -> None:
        """Add C8: no rank needs more than the capacity of its kind of device at any moment; shape (Q,)."""
        largest = int(capacities.max())
        for rank, row in self._totals:
            within = Linear(self._scale.size(largest)).add(row, -1)
            for kind in np.flatnonzero(capacities < largest).tolist():
                within.add(self._ways.is_kind(rank, kind), -self._scale.size(largest - int(capacities[kind])))
            self._program.at_least("memory", within, 0)

    def add_peak(self, most: int) -> Variable:
        """Give the peak memory M: at least the bytes of every rank."""
        peak = self._program.quantity("peak_memory", 0, self._scale.size(most))
        for _, row in self._totals:
            self._program.at_least("peak_memory", Linear().add(peak).add(row, -1), 0)
        return peak
