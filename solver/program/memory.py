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
        total=storages.bytes + storages.gradient_bytes + storages.optimizer_bytes,
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
    instance, pipeline
        The problem, its ranks and when they can be fullest.

    Attributes
    ----------
    state
        Bytes of every rank apart from activations.
    weights_held
        Of every named weight by rank, whether it is held there.
    """

    def __init__(
        self, program: Program, assignment: Assignment, scale: Scale, instance: Instance, pipeline: Pipeline
    ) -> None:
        self._program, self._assignment, self._scale = program, assignment, scale
        self._ranks, self._moments = pipeline.stages_of, pipeline.moments
        self.state = [Linear(scale.size(instance.topology.device.reserve_bytes)) for _ in self._ranks]
        group_of, size = assignment.groups.group_of, len(assignment.groups)
        layers = instance.layers
        private = sum_by(group_of, layers.weight + layers.gradient + layers.optimizer, size)
        for row, stages in zip(self.state, self._ranks, strict=True):
            for stage in stages.tolist():
                self._add_private(row, stage, private)
        self.weights_held = self._add_shared(group_storages(instance.weights, group_of), "weight")
        self._add_shared(group_storages(instance.buffers, group_of), "buffer")
        workspace = np.zeros(size, dtype=np.int64)
        np.maximum.at(workspace, group_of, layers.workspace)
        self._add_workspace(workspace)
        kept, for_weights = (sum_by(group_of, each, size) for each in (layers.activation, layers.for_weight_gradient))
        self._activations = self._add_activations(kept, for_weights, group_storages(instance.shared, group_of))

    def _add_private(self, row: Linear, stage: int, sizes: IntArray) -> None:
        for group in np.flatnonzero(sizes).tolist():
            if self._assignment.possible(group, stage):
                row.add(self._assignment.at(group, stage), self._scale.size(sizes[group]))

    def _add_shared(self, storages: GroupedStorages, name: str) -> list[list[Linear]]:
        held = []
        for number, groups in enumerate(storages.groups):
            held.append(add_holding(self._program, self._assignment, groups, self._ranks, f"{name}_{number}"))
            for rank, row in enumerate(self.state):
                row.add(held[-1][rank], self._scale.size(storages.total[number]))
        return held

    def _add_workspace(self, workspace: IntArray) -> None:
        if not workspace.any():
            return
        most = self._scale.size(workspace.max())
        for rank, row in enumerate(self.state):
            largest = self._program.quantity(f"workspace_{rank}", 0, most)
            for group in np.flatnonzero(workspace).tolist():
                where = _on_any(self._assignment, group, self._ranks[rank])
                if where.terms or where.constant:
                    need = Linear().add(largest).add(where, -self._scale.size(workspace[group]))
                    self._program.at_least("workspace", need, 0)
            row.add(largest)

    def _add_activations(
        self, kept: IntArray, for_weights: IntArray, shared: GroupedStorages
    ) -> list[tuple[int, Linear]]:
        """Give for every moment its rank and what it keeps for backward passes."""
        each = [np.array([stage]) for stage in range(self._assignment.num_stages)]
        held = [
            add_holding(self._program, self._assignment, groups, each, f"saved_{number}")
            for number, groups in enumerate(shared.groups)
        ]
        rows = [(rank, Linear()) for rank in self._moments.rank.tolist()]
        entries = (self._moments.moment, self._moments.stage, self._moments.whole, self._moments.postponed)
        for moment, stage, whole, postponed in zip(*(entry.tolist() for entry in entries), strict=True):
            row = rows[moment][1]
            self._add_private(row, stage, whole * kept + postponed * for_weights)
            for number, size in enumerate(shared.total.tolist()):
                row.add(held[number][stage], self._scale.size((whole + postponed) * size))
        return rows

    @property
    def _totals(self) -> list[Linear]:
        return [Linear().add(self.state[rank]).add(activations) for rank, activations in self._activations]

    def add_capacity(self, capacity: int) -> None:
        """Add C8: no rank needs more than the capacity at any moment."""
        for row in self._totals:
            within = Linear(self._scale.size(capacity)).add(row, -1)
            self._program.at_least("memory", within, 0)

    def add_peak(self, most: int) -> Variable:
        """Give the peak memory M: at least the bytes of every rank."""
        peak = self._program.quantity("peak_memory", 0, self._scale.size(most))
        for row in self._totals:
            self._program.at_least("peak_memory", Linear().add(peak).add(row, -1), 0)
        return peak
