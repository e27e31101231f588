"""What stages hold: storages that several groups share, and memory within capacity (C7, C8)."""

from dataclasses import dataclass

import numpy as np

from partita.solver.costs import sum_by
from partita.solver.instance import Instance, Storages
from partita.solver.program.assignment import Assignment
from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.program.scale import Scale
from partita.solver.topology import IntArray


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


def add_holding(program: Program, assignment: Assignment, groups: list[int], name: str) -> list[Linear]:
    """Add C7 for one storage; give by stage whether it is held: a variable, or x_ik where one group decides."""
    held = []
    for stage in range(assignment.num_stages):
        possible = [group for group in groups if assignment.possible(group, stage)]
        if len(possible) <= 1:
            held.append(assignment.at(possible[0], stage) if possible else Linear())
            continue
        variable = program.binary(f"hold_{name}_{stage}")
        for group in possible:
            program.at_least("hold", Linear().add(variable).add(assignment.at(group, stage), -1), 0)
        held.append(Linear().add(variable))
    return held


class MemoryRows:
    """Bytes of every stage as expressions.

    Parameters
    ----------
    program, assignment, scale
        Where the rows go, which stage every group is on, and the unit of bytes.
    instance
        The problem.
    in_flight
        Microbatches that every stage keeps, shape (S,).
    """

    def __init__(
        self, program: Program, assignment: Assignment, scale: Scale, instance: Instance, in_flight: IntArray
    ) -> None:
        self._program, self._assignment, self._scale = program, assignment, scale
        self._instance, self._in_flight = instance, in_flight
        self.bytes = [Linear(scale.size(instance.topology.device.reserve_bytes)) for _ in range(assignment.num_stages)]
        group_of, size = assignment.groups.group_of, len(assignment.groups)
        layers = instance.layers
        self._add_private(sum_by(group_of, layers.weight + layers.gradient + layers.optimizer, size), 1)
        self._add_private(sum_by(group_of, layers.activation, size), in_flight)
        self.weights_held = self._add_shared(group_storages(instance.weights, group_of), 1, "weight")
        self._add_shared(group_storages(instance.buffers, group_of), 1, "buffer")
        self._add_shared(group_storages(instance.shared, group_of), in_flight, "saved")
        workspace = np.zeros(size, dtype=np.int64)
        np.maximum.at(workspace, group_of, layers.workspace)
        self._add_workspace(workspace)

    def _add_private(self, sizes: IntArray, times: IntArray | int) -> None:
        factor = np.broadcast_to(np.asarray(times), len(self.bytes))
        for stage, row in enumerate(self.bytes):
            for group in np.flatnonzero(sizes).tolist():
                if self._assignment.possible(group, stage):
                    row.add(self._assignment.at(group, stage), self._scale.size(sizes[group] * factor[stage]))

    def _add_shared(self, storages: GroupedStorages, times: IntArray | int, name: str) -> list[list[Linear]]:
        factor = np.broadcast_to(np.asarray(times), len(self.bytes))
        held = []
        for number, groups in enumerate(storages.groups):
            held.append(add_holding(self._program, self._assignment, groups, f"{name}_{number}"))
            for stage, row in enumerate(self.bytes):
                row.add(held[-1][stage], self._scale.size(storages.total[number] * factor[stage]))
        return held

    def _add_workspace(self, workspace: IntArray) -> None:
        if not workspace.any():
            return
        most = self._scale.size(workspace.max())
        for stage, row in enumerate(self.bytes):
            largest = self._program.quantity(f"workspace_{stage}", 0, most)
            for group in np.flatnonzero(workspace).tolist():
                if self._assignment.possible(group, stage):
                    need = (
                        Linear()
                        .add(largest)
                        .add(self._assignment.at(group, stage), -self._scale.size(workspace[group]))
                    )
                    self._program.at_least("workspace", need, 0)
            row.add(largest)

    def add_capacity(self, capacity: int) -> None:
        """Add C8: no stage needs more than the capacity."""
        for row in self.bytes:
            within = Linear(self._scale.size(capacity)).add(row, -1)
            self._program.at_least("memory", within, 0)

    def add_peak(self, most: int) -> Variable:
        """Give the peak memory M: at least the bytes of every stage."""
        peak = self._program.quantity("peak_memory", 0, self._scale.size(most))
        for row in self.bytes:
            self._program.at_least("peak_memory", Linear().add(peak).add(row, -1), 0)
        return peak
