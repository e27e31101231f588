"""By which way every layer runs: on the kind of device of its rank, by an option of recompute (C17).

Rows count every layer at its least cost; what a way costs more is added here.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from partita.solver.arrays import IntArray, Times
from partita.solver.instance import Instance
from partita.solver.program.assignment import Assignment
from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.program.placement import Placement

Table = Times
"""Costs of the layers by kind of device and option, shape (Q, O, L)."""

Chosen = list[tuple[int, int, Variable]]
"""Kind, option and variable of every way that a unit can run by on a stage: how many of its likes run by it."""


class WayRows:
    """Ways of the layers whose costs depend on them.

    Layers choose together, as a unit, where one decision fixes their way: those of a group, unless every layer has an
    option of its own. Of units that the same ways cost the same, only how many run by which way matters on a stage:
    the first one stands for all of its likes.

    Parameters
    ----------
    program, assignment, placement
        Where the rows go, which stage every group is on, and where every rank is.
    instance, rank_of
        The problem; the rank of every stage, shape (S,).
    varying
        Tables of all that may depend on the way, shape (Q, O, L) each.
    """

    def __init__(
        self,
        program: Program,
        assignment: Assignment,
        placement: Placement,
        instance: Instance,
        rank_of: IntArray,
        varying: Sequence[Table],
    ) -> None:
        self._program, self._assignment, self._ways = program, assignment, instance.ways
        self._workspaces = [case.ways.costs.workspace for case in instance.cases]
        self._kind_of, self._placement, self._rank_of = instance.topology.kind_of, placement, rank_of
        group_of = assignment.groups.group_of
        alone = self._ways.choosable and not self._ways.by_stage
        self._unit_of: IntArray = np.arange(len(group_of)) if alone else group_of
        self._group_of_unit: IntArray = group_of if alone else np.arange(len(assignment.groups))
        self._stage_options = self._add_stage_options()
        differs = np.zeros(len(self._group_of_unit), dtype=bool)
        for table in varying:
            np.logical_or.at(differs, self._unit_of, (table != table[:1, :1]).any(axis=(0, 1)))
        units = np.flatnonzero(differs).tolist()
        self._likes = (
            self._alike(units, varying) if alone and len(self._ways.kinds) == 1 else [[each] for each in units]
        )
        self._chosen: list[dict[int, Chosen]] = [{} for _ in range(assignment.num_stages)]
        for stage, likes in product(range(assignment.num_stages), self._likes):
            there = [unit for unit in likes if assignment.possible(int(self._group_of_unit[unit]), stage)]
            if there:
                self._chosen[stage][likes[0]] = self._add_units(there, stage)

    def _alike(self, units: list[int], varying: Sequence[Table]) -> list[list[int]]:
        """Sort units by what their ways cost; one whose way decides its workspace is alone, for the largest counts."""
        found: dict[object, list[int]] = {}
        for unit in units:
            (layer,) = np.flatnonzero(self._unit_of == unit).tolist()
            look = [(table[..., layer] - table[..., layer].min()).tobytes() for table in varying]
            own = unit if any((table[..., layer] != table[0, 0, layer]).any() for table in self._workspaces) else -1
            found.setdefault((own, self._ways.available[:, layer].tobytes(), *look), []).append(unit)
        return list(found.values())

    def is_kind(self, rank: int, kind: int) -> Linear:
        """Tell whether a rank is on a kind of device."""
        row = Linear()
        if self._placement.on is not None:
            for place in np.flatnonzero(self._kind_of == kind).tolist():
                row.add(self._placement.on[rank][place])
        elif self._kind_of[self._placement.fixed[rank]] == kind:
            row.add(self._placement.used[rank])
        return row

    def _add_stage_options(self) -> list[list[Variable]]:
        if not self._ways.by_stage:
            return []
        found = []
        for stage in range(self._assignment.num_stages):
            row = [self._program.binary(f"option_{stage}_{option}") for option in range(len(self._ways.options))]
            self._program.equal("stage_option", Linear().add_all((each, 1) for each in row), 1)
            found.append(row)
        return found

    def _add_units(self, units: Sequence[int], stage: int) -> Chosen:
        """Add C17 for a unit and its likes on a stage: a way for each that is there, of the kind of its rank."""
        program, ways, first = self._program, self._ways, units[0]
        available = ways.available[:, self._unit_of == first].all(axis=1)
        chosen = [
            (kind, option, program.count(f"way_{first}_{stage}_{kind}_{option}", len(units)))
            for kind in range(len(ways.kinds))
            for option in np.flatnonzero(available).tolist()
        ]
        total = Linear().add_all((variable, 1) for _, _, variable in chosen)
        for unit in units:
            total.add(self._assignment.at(int(self._group_of_unit[unit]), stage), -1)
        program.equal("way", total, 0)
        for kind in range(len(ways.kinds) if len(ways.kinds) > 1 else 0):
            row = self.is_kind(int(self._rank_of[stage]), kind)
            program.at_least("way_kind", row.add_all((each, -1) for q, _, each in chosen if q == kind), 0)
        for option in range(len(ways.options) if ways.by_stage else 0):
            row = Linear().add(self._stage_options[stage][option])
            program.at_least("way_option", row.add_all((each, -1) for _, o, each in chosen if o == option), 0)
        return chosen

    def surplus(self, table: Table) -> Table:
        """Give what every unit costs more than at least, shape (Q, O, units)."""
        total = np.zeros((len(self._group_of_unit), *table.shape[:2]), dtype=table.dtype)
        np.add.at(total, self._unit_of, np.moveaxis(table - table.min(axis=(0, 1)), 2, 0))
        return np.moveaxis(total, 0, 2)

    def add(self, row: Linear, stage: int, surplus: Table, in_unit: Callable[[int], int | float]) -> None:
        """Add to a row what the units on a stage cost more than at least.

        Parameters
        ----------
        surplus
            Ticks or bytes of every unit, shape (Q, O, units).
        in_unit
            Turns them into the program's unit.
        """
        for unit, chosen in self._chosen[stage].items():
            if surplus[..., unit].any():
                row.add_all((variable, in_unit(int(surplus[kind, option, unit]))) for kind, option, variable in chosen)

    def largest(self, table: IntArray) -> list[tuple[int, Linear]]:
        """Give by stage, for every unit whose largest layer depends on its way, the size of that layer."""
        largest = np.zeros((len(self._group_of_unit), *table.shape[:2]), dtype=np.int64)
        np.maximum.at(largest, self._unit_of, np.moveaxis(table, 2, 0))
        found = []
        for stage, units in enumerate(self._chosen):
            for unit, chosen in units.items():
                if (largest[unit] != largest[unit, 0, 0]).any():
                    size = Linear().add_all((each, int(largest[unit, kind, option])) for kind, option, each in chosen)
                    found.append((stage, size))
        return found

    def decode(self) -> IntArray | None:
        """Read the option of every layer from the solved variables, shape (L,); None where none is chosen."""
        if not self._ways.choosable:
            return None
        of_unit = np.zeros(len(self._group_of_unit), dtype=np.int64)
        stage_of = self._assignment.decode()[self._group_of_unit]
        for likes in self._likes:
            for stage, units in enumerate(self._chosen):
                chosen = units.get(likes[0], [])
                options = [option for _, option, each in chosen for _ in range(round(each.varValue or 0))]
                there = [unit for unit in likes if stage_of[unit] == stage]
                of_unit[there] = options
        return of_unit[self._unit_of]
