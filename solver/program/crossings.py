"""Which tensors pass between which stages, as expressions or variables."""

from dataclasses import dataclass

import numpy as np

from partita.solver.instance import Instance
from partita.solver.program.assignment import Assignment
from partita.solver.program.linear import Linear, Program, Variable

Crossing = tuple[int, Linear]
"""A tensor, and an expression that is at least 1 when it passes."""


@dataclass(frozen=True)
class GroupedTensors:
    """Tensors by groups; those within one group are left out.

    Attributes
    ----------
    number
        Of each tensor in ``instance.edges``.
    producer
        The group that makes it.
    readers
        The other groups that read it, ascending.
    """

    number: list[int]
    producer: list[int]
    readers: list[list[int]]


def group_tensors(instance: Instance, assignment: Assignment) -> GroupedTensors:
    """Tell which groups every tensor joins."""
    edges, group_of = instance.edges, assignment.groups.group_of
    moved = np.sum([case.edges.total for case in instance.cases], axis=0)
    grouped = GroupedTensors([], [], [])
    for number, consumers in enumerate(edges.consumers):
        producer = int(group_of[edges.producer[number]])
        readers = [group for group in np.unique(group_of[consumers]).tolist() if group != producer]
        if readers and moved[number] > 0:
            grouped.number.append(number)
            grouped.producer.append(producer)
            grouped.readers.append(readers)
    return grouped


class Crossings:
    """Makes the variables that tell where tensors pass, each once.

    Parameters
    ----------
    program, assignment, instance
        Where the rows go, which stage every group is on, and the problem.
    """

    def __init__(self, program: Program, assignment: Assignment, instance: Instance) -> None:
        self._program, self._assignment = program, assignment
        self._ordered = instance.edges.ordered
        self.tensors = group_tensors(instance, assignment)

    def across(self, boundary: int) -> list[Crossing]:
        """Give the tensors that are relayed across a boundary."""
        found = []
        tensors, stage = self.tensors, boundary + 1
        rows = self._assignment.thresholds
        for index, number in enumerate(tensors.number):
            producer, readers = tensors.producer[index], tensors.readers[index]
            if self._assignment.groups.total_order:
                first, last = min(producer, readers[0]), max(producer, readers[-1])
                differences = [_difference(rows[last][stage], rows[first][stage])]
            else:
                differences = [_difference(rows[reader][stage], rows[producer][stage]) for reader in readers]
                if not self._ordered[number]:
                    differences += [_difference(rows[producer][stage], rows[reader][stage]) for reader in readers]
            crossing = self._largest(differences, f"cross_{number}_{boundary}", never_negative=True)
            if crossing is not None:
                found.append((number, crossing))
        return found

    def between(self, first: int, second: int) -> list[Crossing]:
        """Give the tensors that go from one stage to another, either way for those of the backward pass."""
        found = []
        tensors = self.tensors
        for index, number in enumerate(tensors.number):
            ways = [(first, second)] if self._ordered[number] else [(first, second), (second, first)]
            differences = []
            for here, there in ways:
                made = self._assignment.at(tensors.producer[index], here)
                for reader in tensors.readers[index]:
                    differences.append(Linear(-1).add(made).add(self._assignment.at(reader, there)))
            sent = self._largest(differences, f"sent_{number}_{first}_{second}")
            if sent is not None:
                found.append((number, sent))
        return found

    def written_and_read(self, stage: int) -> tuple[list[Crossing], list[Crossing]]:
        """Give the tensors that a stage makes for others, and those that it reads from others."""
        written, read = [], []
        tensors = self.tensors
        for index, number in enumerate(tensors.number):
            made = self._assignment.at(tensors.producer[index], stage)
            readers = [self._assignment.at(reader, stage) for reader in tensors.readers[index]]
            out = self._largest([_difference(made, reader) for reader in readers], f"write_{number}_{stage}")
            into = self._largest([_difference(reader, made) for reader in readers], f"read_{number}_{stage}")
            if out is not None:
                written.append((number, out))
            if into is not None:
                read.append((number, into))
        return written, read

    def _largest(self, differences: list[Linear], name: str, never_negative: bool = False) -> Linear | None:
        """Give an expression that is at least each difference and 0; None where all can only be 0 or less.

        Where differences are never negative, a single one stands for itself.
        """
        live = []
        for each in differences:
            most = each.constant + sum(factor for factor in each.terms.values() if factor > 0)
            if most <= 0:
                continue
            if not any(factor for factor in each.terms.values()):
                return Linear(1)
            live.append(each)
        if not live:
            return None
        if len(live) == len(differences) == 1 and never_negative:
            return live[0]
        variable: Variable = self._program.binary(name)
        for each in live:
            self._program.at_least("crossing_tensor", Linear().add(variable).add(each, -1), 0)
        return Linear().add(variable)


def _difference(large: Variable | Linear | int, small: Variable | Linear | int) -> Linear:
    return Linear().add(large).add(small, -1)
