"""What transfers cost and which receive buffers they need (C11)."""

from dataclasses import dataclass, field

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.event_graph import BACKWARD, FORWARD, EventGraph
from partita.solver.figures import Figures
from partita.solver.instance import Instance
from partita.solver.measure import skips_stages
from partita.solver.program.assignment import Assignment
from partita.solver.program.crossings import Crossing, Crossings
from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.program.placement import Placement, add_node_changes, add_path_classes
from partita.solver.program.scale import Scale


@dataclass
class TransferRows:
    """Costs of transfers.

    Attributes
    ----------
    cost
        For either pass of every scenario, the transfer time of every pair as a variable or 0.
    host
        For either pass, the time that every stage spends on the host's memory (``blocking`` and ``host``).
    received
        Bytes of receive buffers of every stage, by scenario.
    classes
        For every pair, the variables of the classes of path that cost more than the cheapest.
    moved
        For every pair of stages on different ranks and every scenario, what passes and its bytes in both passes, and
        the least and the most that they can add up to.
    """

    cost: list[list[Linear]]
    host: tuple[list[Linear], list[Linear]]
    received: list[list[Linear]]
    classes: dict[int, dict[int, Variable]] = field(default_factory=dict)
    moved: dict[tuple[int, int], list[tuple[list[tuple[Linear, int]], int, int]]] = field(default_factory=dict)


class TransferBuilder:
    """Adds the transfers of a configuration.

    Parameters
    ----------
    program, assignment, placement, scale
        Where the rows go, and what is decided.
    instance, figures
        The problem and its times in ticks.
    graph
        The pairs of stages that exchange tensors, and the ranks of the stages.
    """

    def __init__(
        self,
        program: Program,
        assignment: Assignment,
        placement: Placement,
        scale: Scale,
        instance: Instance,
        figures: Figures,
        graph: EventGraph,
    ) -> None:
        self._program, self._assignment, self._placement, self._scale = program, assignment, placement, scale
        self._instance, self._figures, self._graph = instance, figures, graph
        self._crossings = Crossings(program, assignment, instance)
        # Bytes of every tensor in either pass of every scenario, shape (T,) each.
        self._bytes = [each for case in instance.cases for each in case.edges.sizes]
        self._by_host = instance.routing == "host"
        self._relayed = instance.routing == "relay" or instance.problem.model.tensors is None
        self._classes = self._usable_classes()
        own = [case for case in figures.cases for _ in (FORWARD, BACKWARD)]
        # Price of every tensor on every usable class, by direction, shape (classes, T); latency of every class.
        self._price = [
            np.array([case.transfer(sizes, c) for c in self._classes])
            for case, sizes in zip(own, self._bytes, strict=True)
        ]
        self._latency = [case.latency[self._classes].astype(np.int64) for case in own]
        stages = range(assignment.num_stages)
        self.rows = TransferRows(
            cost=[[Linear() for _ in graph.pairs] for _ in self._bytes],
            host=([Linear() for _ in stages], [Linear() for _ in stages]),
            received=[[Linear() for _ in stages] for _ in instance.cases],
        )

    def _usable_classes(self) -> list[int]:
        topology, fixed = self._placement.topology, self._placement.fixed
        if self._by_host or len(fixed) == 1:
            return [int(topology.class_of[fixed[0], fixed[0]])]
        if self._placement.on is None:
            return [int(topology.class_of[fixed[0], fixed[1]])]
        return sorted({*topology.inside_classes, *topology.between_classes})

    def build(self) -> TransferRows:
        """Add all rows and give the costs."""
        if self._by_host and self._instance.blocking:
            self._add_host()
            return self.rows
        skipping = skips_stages(self._instance)
        pipeline = self._graph.pipeline
        for pair, (first, second) in enumerate(self._graph.pairs.tolist()):
            if self._graph.local[pair]:
                continue
            crossing = self._crossings.across(first) if self._relayed else self._crossings.between(first, second)
            tensors = [number for number, _ in crossing]
            self.rows.moved[first, second] = [
                ([(where, int(sizes[number])) for number, where in crossing], *self._range(pair, tensors, sizes))
                for sizes in [case.edges.total for case in self._instance.cases]
            ]
            self._add_pair(pair, crossing, skipping and second > first + 1)
            if not self._by_host:
                self._add_received(first, second, crossing)
        topology = self._placement.topology
        between = set(topology.between_classes)
        if self._placement.on is not None and between and not between & set(topology.inside_classes):
            boundaries = np.flatnonzero(~pipeline.turns).tolist()
            neighbors = {boundary: self.rows.classes[boundary] for boundary in boundaries}
            if all(between <= set(each) for each in neighbors.values()):
                only = {b: {c: v for c, v in each.items() if c in between} for b, each in neighbors.items()}
                add_node_changes(self._program, self._placement, pipeline, only)
        return self.rows

    def _add_pair(self, pair: int, crossing: list[Crossing], only_if_used: bool) -> None:
        """Add C11 for a pair of stages."""
        first, second = self._graph.pipeline.rank_of[self._graph.pairs[pair]].tolist()
        chosen: dict[int, Variable] = {}
        if self._placement.on is not None and (crossing or any(each.any() for each in self._latency)):
            needed = self._costlier_classes([number for number, _ in crossing])
            chosen = add_path_classes(self._program, self._placement, (first, second), needed)
        self.rows.classes[pair] = chosen
        for direction, sizes in enumerate(self._bytes):
            if direction % 2 == BACKWARD and not self._instance.trains:
                continue
            moving = [(number, where) for number, where in crossing if sizes[number] > 0]
            self._add_cost(pair, direction, moving, chosen, only_if_used)

    def _costlier_classes(self, tensors: list[int]) -> list[int]:
        """Give the classes that cost more than the cheapest for some tensor or by their latency."""
        costlier = np.any([latency > latency.min() for latency in self._latency], axis=0)
        for price in self._price:
            if tensors:
                part = price[:, tensors]
                costlier = costlier | (part > part.min(axis=0)).any(axis=1)
        return [number for number, more in zip(self._classes, costlier, strict=True) if more]

    def _add_cost(
        self, pair: int, direction: int, moving: list[Crossing], chosen: dict[int, Variable], only_if_used: bool
    ) -> None:
        first = int(self._graph.pairs[pair, 0])
        if self._by_host:
            self.rows.cost[direction][pair] = self._host_cost(pair, direction, moving)
            return
        if only_if_used:
            if not moving:
                return
            started = Linear().add(self._used(pair, direction, moving))
        else:
            started = Linear().add(self._assignment.used[first])
        price, latency = self._price[direction], self._latency[direction]
        cheapest = price.min(axis=0)
        base = Linear().add(started, self._scale.time(latency.min()))
        base.add_all((where, self._scale.time(cheapest[number])) for number, where in moving)
        if not base.terms and not chosen:
            self.rows.cost[direction][pair] = base
            return
        most = int(latency.max()) + int(sum(int(price[:, number].max()) for number, _ in moving))
        cost = self._program.quantity(f"{_letter(direction)}_{pair}", 0, self._scale.time(most))
        self._program.at_least("transfer", Linear().add(cost).add(base, -1), 0)
        for number, variable in chosen.items():
            row = self._classes.index(number)
            extra = Linear().add(started, self._scale.time(latency[row] - latency.min()))
            added = [(where, int(price[row, tensor] - cheapest[tensor])) for tensor, where in moving]
            extra.add_all((where, self._scale.time(value)) for where, value in added)
            low, high = self._range(pair, [tensor for tensor, _ in moving], price[row] - cheapest)
            lead = int(latency[row] - latency.min())
            # cost >= base + extra - high (1 - z)   and   cost >= base + low z
            slack = Linear(self._scale.time(high + lead)).add(cost).add(base, -1).add(extra, -1)
            self._program.at_least("transfer", slack.add(variable, -self._scale.time(high + lead)), 0)
            if low + lead > 0 and not only_if_used:
                floor = Linear().add(cost).add(base, -1).add(variable, -self._scale.time(low + lead))
                self._program.at_least("transfer", floor, 0)
        self.rows.cost[direction][pair] = Linear().add(cost)

    def _range(self, pair: int, tensors: list[int], added: IntArray) -> tuple[int, int]:
        """Give the least and the most that the tensors crossing a pair can add together."""
        assignment = self._assignment
        if not (assignment.groups.total_order and self._relayed):
            return 0, int(added[tensors].sum())
        group_of, size = assignment.groups.group_of, len(assignment.groups)
        change = np.zeros(size + 2, dtype=np.int64)
        edges = self._instance.edges
        for tensor in tensors:
            ends = group_of[np.append(edges.consumers[tensor], edges.producer[tensor])]
            change[int(ends.min()) + 1] += added[tensor]
            change[int(ends.max()) + 1] -= added[tensor]
        across = np.cumsum(change)
        stage = pair + 1
        first = int((assignment.domains.latest < stage).sum())
        last = size - int((assignment.domains.earliest >= stage).sum())
        part = across[max(first, 1) : min(last, size - 1) + 1]
        return int(part.min(initial=0 if not len(part) else part[0])), int(part.max(initial=0))

    def _used(self, pair: int, direction: int, moving: list[Crossing]) -> Variable:
        """Give a variable that is 1 when anything passes between two stages."""
        variable = self._program.binary(f"used_pair_{direction}_{pair}")
        for _, where in moving:
            self._program.at_least("used_pair", Linear().add(variable).add(where, -1), 0)
        return variable

    def _host_cost(self, pair: int, direction: int, moving: list[Crossing]) -> Linear:
        """Give the overlapped cost of a pair by way of the host: a write and a read of every tensor."""
        price, latency = self._price[direction][0], self._latency[direction][0]
        total = Linear()
        for number, where in moving:
            total.add(where, self._scale.time(2 * int(price[number] + latency)))
        if not total.terms:
            return total
        most = sum(2 * int(price[number] + latency) for number, _ in moving)
        cost = self._program.quantity(f"{_letter(direction)}_{pair}", 0, self._scale.time(most))
        self._program.at_least("transfer", Linear().add(cost).add(total, -1), 0)
        return Linear().add(cost)

    def _add_received(self, first: int, second: int, crossing: list[Crossing]) -> None:
        buffers = self._instance.receive_buffers
        for direction, sizes in enumerate(self._bytes):
            stage = second if direction % 2 == FORWARD else first
            for number, where in crossing:
                self.rows.received[direction // 2][stage].add(where, self._scale.size(buffers * sizes[number]))

    def _add_host(self) -> None:
        """Add the times that stages spend on writing to and reading from the host."""
        ordered = self._instance.edges.ordered
        for stage in range(self._assignment.num_stages):
            for crossing in self._crossings.written_and_read(stage):
                for number, where in crossing:
                    pass_ = FORWARD if ordered[number] else BACKWARD
                    self._charge_host(pass_, number, where, [stage])
        if not (self._instance.trains and (ordered & (self._bytes[BACKWARD] > 0)).any()):
            return
        for first in range(self._assignment.num_stages):
            for second in range(first + 1, self._assignment.num_stages):
                for number, where in self._crossings.between(first, second):
                    if ordered[number]:
                        self._charge_host(BACKWARD, number, where, [first, second])

    def _charge_host(self, pass_: int, number: int, where: Linear, stages: list[int]) -> None:
        if self._bytes[pass_][number] > 0:
            price = self._scale.time(int(self._price[pass_][0, number] + self._latency[pass_][0]))
            for stage in stages:
                self.rows.host[pass_][stage].add(where, price)


def _letter(direction: int) -> str:
    """Name the costs of a direction: c forward, d backward, with the number of a further scenario."""
    case, pass_ = divmod(direction, 2)
    return "cd"[pass_] + (str(case) if case else "")
