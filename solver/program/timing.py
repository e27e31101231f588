"""What a plan takes: loads, makespan by path cuts, bottleneck, and what happens once per iteration (C6, C12 to C14)."""

from itertools import chain, product

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.costs import sum_by
from partita.solver.event_graph import BACKWARD, FORWARD, EventGraph
from partita.solver.figures import Figures
from partita.solver.instance import Instance
from partita.solver.measure import all_reduce
from partita.solver.program.assignment import Assignment
from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.program.memory import group_storages
from partita.solver.program.placement import Placement
from partita.solver.program.scale import Scale
from partita.solver.program.transfers import TransferRows
from partita.solver.program.ways import WayRows
from partita.solver.replicas import kinds_of_places, latency, reduction, synchronised_bytes


class TimingRows:
    """Times of a configuration as variables and expressions.

    Parameters
    ----------
    program, assignment, scale
        Where the rows go, which stage every group is on, and the unit of time.
    instance, figures
        The problem and its times in ticks.
    transfers, graph, ways
        Costs of transfers, the event graph, and by which ways layers run.
    most
        A time that no stage worth finding computes for one microbatch, in ticks.
    """

    def __init__(
        self,
        program: Program,
        assignment: Assignment,
        scale: Scale,
        instance: Instance,
        figures: Figures,
        transfers: TransferRows,
        graph: EventGraph,
        ways: WayRows,
        most: int,
    ) -> None:
        self._program, self._assignment, self._scale = program, assignment, scale
        self._instance, self._figures, self._transfers, self._graph = instance, figures, transfers, graph
        self._most, self._ways = most, ways
        letters = "FB" if graph.num_passes == 2 else "FIW"
        names = [letter + (str(case) if case else "") for case in range(graph.num_cases) for letter in letters]
        self._loads = [
            self._add_loads(name, table) for name, table in zip(names, figures.tables(graph.num_passes), strict=True)
        ]

    def _add_loads(self, name: str, table: IntArray) -> list[Linear]:
        """Add C6: the computing time of every stage, from the times of a pass, shape (Q, O, L)."""
        group_of, size = self._assignment.groups.group_of, len(self._assignment.groups)
        by_group, at_most = (sum_by(group_of, each, size) for each in (table.min(axis=(0, 1)), table.max(axis=(0, 1))))
        surplus = self._ways.surplus(table)
        loads = []
        for stage in range(self._assignment.num_stages):
            load, most = Linear(), 0
            for group in np.flatnonzero(at_most).tolist():
                if self._assignment.possible(group, stage):
                    load.add(self._assignment.at(group, stage), self._scale.time(by_group[group]))
                    most += int(at_most[group])
            self._ways.add(load, stage, surplus, self._scale.time)
            if load.terms:
                variable = self._program.quantity(f"{name}_{stage}", 0, self._scale.time(min(most, self._most)))
                self._program.equal("load", Linear().add(variable).add(load, -1), 0)
                load = Linear().add(variable)
            loads.append(load)
        return loads

    def add_makespan(self, cuts: IntArray, most: int) -> Variable:
        """Give the makespan T, bounded from below by the path cuts (C12), shape (cuts, C)."""
        makespan = self._program.quantity("makespan", 0, self._scale.time(most))
        parts: list[Linear] = []
        passes = self._graph.num_passes
        for case in range(self._graph.num_cases):  # in the order of the event graph's columns
            parts += chain.from_iterable(self._loads[case * passes : (case + 1) * passes])
            parts += chain.from_iterable(self._transfers.cost[2 * case : 2 * case + 2])
        host = [*self._transfers.host[0], *self._transfers.host[1]]
        for row in cuts:
            path = Linear().add(makespan)
            for column in np.flatnonzero(row).tolist():
                path.add(parts[column], -int(row[column]))
                if column < len(host):
                    path.add(host[column], -int(row[column]))
            self._program.at_least("path", path, 0)
        return makespan

    def add_bottleneck(self, most: int) -> Variable:
        """Give the bottleneck P (C13); of several scenarios the mean, by their shares."""
        longest = self._program.quantity("bottleneck", 0, self._scale.time(most))
        stages, costs = self._assignment.num_stages, self._costs_of_all()
        busy = [Linear().add_all((load[stage], 1) for load in self._loads) for stage in range(stages)]
        alone = [] if self._instance.blocking else [*costs[0], *costs[1]]
        if self._instance.blocking:
            for stage in range(stages):
                busy[stage].add(self._transfers.host[0][stage]).add(self._transfers.host[1][stage])
            for pair, ends in enumerate(self._graph.pairs.tolist()):
                for stage in ends:
                    busy[stage].add(costs[0][pair]).add(costs[1][pair])
        ranks = self._graph.pipeline.stages_of
        for each in [Linear().add_all((busy[stage], 1) for stage in of_rank.tolist()) for of_rank in ranks] + alone:
            if each.terms or each.constant > 0:
                self._program.at_least("bottleneck", Linear().add(longest).add(each, -1), 0)
        return longest

    def _costs_of_all(self) -> list[list[Linear]]:
        """Give the transfer time of every pair in either direction, all scenarios together, each by its share."""
        cost = self._transfers.cost
        return [
            [Linear().add_all((each, 1) for each in of_pair) for of_pair in zip(*cost[direction::2], strict=True)]
            for direction in (FORWARD, BACKWARD)
        ]

    def add_iteration(
        self, makespan: Variable, placement: Placement, weights_held: list[list[Linear]], most: int
    ) -> Variable:
        """Give the iteration time I (C14).

        Parameters
        ----------
        weights_held
            Of every named weight by rank, whether it is held there.
        """
        iteration = self._program.quantity("iteration", 0, self._scale.time(most))
        total = Linear().add(makespan)
        if self._instance.trains:
            total.add(self._scale.time(int(self._figures.time(self._instance.factors.step_s))))
            if self._instance.replicas > 1:
                total.add(self._add_replicas(placement, weights_held, most))
            for number, held in enumerate(weights_held):
                total.add(self._add_tied(number, held, placement, most))
        self._program.at_least("iteration", Linear().add(iteration).add(total, -1), 0)
        return iteration

    def _add_replicas(self, placement: Placement, weights_held: list[list[Linear]], most: int) -> Variable:
        """Give the longest all-reduce of a rank over its replicas."""
        longest = self._program.quantity("replicas", 0, self._scale.time(most))
        instance, figures, group_of = self._instance, self._figures, self._assignment.groups.group_of
        kinds = kinds_of_places(instance)
        places: dict[int, list[int]] = {}
        for place in range(len(kinds)) if placement.on is not None else sorted(set(placement.fixed.tolist())):
            places.setdefault(int(kinds[place]), []).append(place)
        layers = synchronised_bytes(instance, instance.ways.costs.weight, instance.ways.costs.gradient)
        weights = synchronised_bytes(instance, instance.weights.bytes, instance.weights.gradient_bytes)
        for members in places.values():
            first = members[0]
            table = reduction(instance, figures, layers, first)
            own = sum_by(group_of, table.min(axis=(0, 1)), len(self._assignment.groups))
            surplus = self._ways.surplus(table)
            named = reduction(instance, figures, weights, first)
            delay = int(latency(instance, figures, np.array([first]))[0])
            for rank, stages in enumerate(self._graph.pipeline.stages_of):
                time = Linear().add(placement.used[rank], self._scale.time(delay))
                for group, stage in product(np.flatnonzero(own).tolist(), stages.tolist()):
                    if self._assignment.possible(group, stage):
                        time.add(self._assignment.at(group, stage), self._scale.time(own[group]))
                for stage in stages.tolist():
                    self._ways.add(time, stage, surplus, self._scale.time)
                for number, held in enumerate(weights_held):
                    time.add(held[rank], self._scale.time(named[number]))
                row = Linear().add(longest).add(time, -1)
                if len(places) > 1 and placement.on is not None:  # only where the rank is on such a place
                    bound = self._scale.time(int(delay + table.max(axis=(0, 1)).sum() + named.sum()))
                    row.add(bound)
                    for place in members:
                        row.add(placement.on[rank][place], -bound)
                self._program.at_least("replicas", row, 0)
        return longest

    def _add_tied(self, number: int, held: list[Linear], placement: Placement, most: int) -> Linear:
        """Give the time of the all-reduce of one weight over the ranks that hold it."""
        groups = group_storages(self._instance.weights, self._assignment.groups.group_of).groups[number]
        members = min(len(groups), self._graph.pipeline.num_ranks)
        if members < 2:
            return Linear()
        time = self._program.quantity(f"tied_{number}", 0, self._scale.time(most))
        count = [self._program.binary(f"tied_{number}_on_{n}") for n in range(2, members + 1)]
        one, enough = Linear(1), Linear(1)
        for n, variable in enumerate(count, start=2):
            one.add(variable, -1)
            enough.add(variable, n - 1)
        for each in held:
            enough.add(each, -1)
        self._program.at_least("tied_once", one, 0)
        self._program.at_least("tied_stages", enough, 0)
        sizes = synchronised_bytes(self._instance, self._instance.weights.bytes, self._instance.weights.gradient_bytes)
        usable = self._usable_classes(placement)
        price = np.array(
            [all_reduce(self._figures, sizes[[number] * len(usable)], n, usable) for n in range(2, members + 1)]
        )
        least = Linear().add(time)
        least.add_all((variable, -self._scale.time(price[row].min())) for row, variable in enumerate(count))
        self._program.at_least("tied", least, 0)
        if placement.on is not None and len(usable) > 1:
            self._add_tied_places(time, count, held, placement, dict(zip(usable.tolist(), price.T, strict=True)))
        return Linear().add(time)

    @staticmethod
    def _usable_classes(placement: Placement) -> IntArray:
        class_of = placement.topology.class_of
        if placement.on is None:
            fixed = placement.fixed
            return np.array([class_of[fixed[0], fixed[1]] if len(fixed) > 1 else 0])
        return np.array(sorted({*placement.topology.inside_classes, *placement.topology.between_classes}))

    def _add_tied_places(
        self,
        time: Variable,
        count: list[Variable],
        held: list[Linear],
        placement: Placement,
        price: dict[int, IntArray],
    ) -> None:
        """Charge the slowest path between any two ranks that hold the weight, where it is not the cheapest."""
        assert placement.on is not None
        cheapest = np.min(list(price.values()), axis=0)
        topology, ranks = placement.topology, len(held)
        for a in range(ranks):
            for b in range(a + 1, ranks):
                if (not held[a].terms and not held[a].constant) or (not held[b].terms and not held[b].constant):
                    continue
                for path_class, prices in price.items():
                    if (prices <= cheapest).all():
                        continue
                    for place in np.flatnonzero((topology.class_of == path_class).any(axis=1)).tolist():
                        there = np.flatnonzero(topology.class_of[place] == path_class).tolist()
                        for row, variable in enumerate(count):
                            cost = self._scale.time(int(prices[row]))
                            charge = Linear(4 * cost).add(time)
                            for each in (
                                held[a],
                                held[b],
                                Linear().add(variable),
                                Linear().add(placement.on[a][place]),
                            ):
                                charge.add(each, -cost)
                            for other in there:
                                charge.add(placement.on[b][other], -cost)
                            self._program.at_least("tied_path", charge, 0)
