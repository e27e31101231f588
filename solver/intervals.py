"""What stages cost that are intervals of groups in one order: the basis of warm start and of pruning.

Position p lies before group p, so an interval [j, i) starts at position j and ends at position i; there are G + 1
positions. In a total order every plan consists of intervals. Where transfers depend on more than the two positions
they are left out here, which makes times and memory lower bounds; every plan is measured anew before it counts. The
same holds where a rank runs several stages: then nothing may be sent, and what is shared counts once for all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.costs import sum_by
from partita.solver.deadline import Deadline
from partita.solver.figures import Figures
from partita.solver.grouping import Groups
from partita.solver.host_intervals import HostTimes
from partita.solver.instance import Instance
from partita.solver.saving_times import SavingTimes


@dataclass(frozen=True, slots=True)
class Ending:
    """All intervals that end at position ``end``; arrays over their starts 0 to end - 1.

    Attributes
    ----------
    end
        The position.
    state
        Bytes that do not depend on how many microbatches are in flight, receive buffers apart; they grow with the
        interval.
    received
        Bytes of receive buffers.
    kept, for_weights
        Bytes of every microbatch in flight, and of every one whose weight gradient is left.
    busy
        Busy time of one microbatch, in ticks.
    """

    end: int
    state: IntArray
    received: IntArray
    kept: IntArray
    for_weights: IntArray
    busy: IntArray

    def since(self, first: int) -> "Ending":
        """Give the intervals that start at ``first`` or later."""
        return Ending(
            self.end,
            self.state[first:],
            self.received[first:],
            self.kept[first:],
            self.for_weights[first:],
            self.busy[first:],
        )


class IntervalView:
    """Costs of intervals of groups, in ticks and bytes.

    Parameters
    ----------
    instance, figures, groups
        The problem, its times in ticks and its groups in a topological order.

    Attributes
    ----------
    passes
        Sums of the computing times before every position, shape (G + 1,) for each of the passes of the event graph.
    takes_time
        Whether a pass takes any time, whichever way layers are run.
    compute
        The same of all passes together.
    state, kept, for_weights
        Bytes of every group's own model state, of what it keeps of a microbatch in flight, and of one whose weight
        gradient is left, shape (G,).
    least, between
        Least time of the forward and the backward transfer across every position, on any path and on paths between
        nodes, shape (D, G + 1): both directions of every scenario.
    saving
        How much longer intervals take that recompute to save memory, where that is known.
    """

    def __init__(self, instance: Instance, figures: Figures, groups: Groups) -> None:
        self.instance, self.figures, self.groups = instance, figures, groups
        size = len(groups)
        layers = instance.layers

        def grouped(values: IntArray) -> IntArray:
            return sum_by(groups.group_of, values, size).astype(np.int64)

        number = 3 if instance.schedule.splits else 2
        self.passes = [prefix(grouped(each.astype(np.int64))) for each in figures.passes(number)]
        self.takes_time = [bool(table.any()) for table in figures.tables(number)]
        self.compute = prefix(grouped((figures.forward + figures.backward).astype(np.int64)))
        self.state = grouped(layers.state)
        self.kept = grouped(layers.activation)
        self.for_weights = grouped(layers.for_weight_gradient)
        self._workspace = np.zeros(size, dtype=np.int64)
        np.maximum.at(self._workspace, groups.group_of, layers.workspace)
        self._last_holders = self._find_last_holders()
        self._span = self._find_span()
        edges = instance.edges
        self._crossing = self._across_positions(edges.forward_bytes, edges.backward_bytes)
        self.least, self.between = self._least_transfers()
        self.saving = SavingTimes.of(instance, figures, groups)

    @property
    def work(self) -> IntArray:
        """Computing time of every group for one microbatch, shape (G,)."""
        return np.diff(self.compute)

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(self.groups)

    def _find_last_holders(self) -> list[list[tuple[int, int, bool]]]:
        """List what every group shares with groups before it.

        For each storage: the last group before that holds it too (or -1), the bytes, and whether they count for every
        microbatch in flight.
        """
        found: list[list[tuple[int, int, bool]]] = [[] for _ in range(self.size)]
        instance = self.instance
        for storages, each_microbatch in (
            (instance.weights, False),
            (instance.buffers, False),
            (instance.shared, True),
        ):
            for layers, total in zip(storages.layers, storages.total.tolist(), strict=True):
                previous = -1
                for group in np.unique(self.groups.group_of[layers]).tolist():
                    found[group].append((previous, total, each_microbatch))
                    previous = group
        return found

    def _across_positions(self, forward: IntArray, backward: IntArray) -> IntArray:
        """Add up, for every position, what is relayed across it in either pass, shape (2, G + 1).

        Parameters
        ----------
        forward, backward
            Of every tensor, shape (T,).
        """
        change = np.zeros((2, self.size + 2), dtype=np.int64)
        if self.instance.routing == "relay" or self.instance.problem.model.tensors is None:
            for row, values in enumerate((forward, backward * self.instance.trains)):
                np.add.at(change[row], self._span[0] + 1, values)
                np.subtract.at(change[row], self._span[1] + 1, values)
        return np.cumsum(change, axis=1)[:, : self.size + 1]

    def _find_span(self) -> tuple[IntArray, IntArray]:
        """Give the first and the last group that every tensor joins, shape (T,) each."""
        edges, group_of = self.instance.edges, self.groups.group_of
        ends = [group_of[np.append(each, edges.producer[number])] for number, each in enumerate(edges.consumers)]
        first = np.array([each.min() for each in ends], dtype=np.int64)
        return first, np.array([each.max() for each in ends], dtype=np.int64)

    def _least_transfers(self) -> tuple[IntArray, IntArray]:
        """Give the least transfer times over all paths, and over those between nodes, shape (D, G + 1) each.

        Without paths between nodes both are equal.
        """
        topology = self.instance.topology
        if self.instance.routing == "host":
            nothing = np.zeros((2 * len(self.instance.cases), self.size + 1), dtype=np.int64)
            return nothing, nothing
        by_place = [topology.inside_classes, topology.between_classes]
        least = [self.transfers(classes) for classes in by_place if classes] or [self.transfers(())]
        return np.asarray(np.min(least, axis=0)), least[-1]

    def transfers(self, classes: Sequence[int]) -> IntArray:
        """Give the least time of the forward and the backward transfer across every position, shape (D, G + 1).

        Parameters
        ----------
        classes
            The classes of path to choose from, none for no transfer; not where transfers go by the host.
        """
        passes = np.array([[1], [int(self.instance.trains)]])
        found = []
        for case, figures in zip(self.instance.cases, self.figures.cases, strict=True):
            prices = []
            for c in classes:
                moved = [figures.transfer(sizes, c) for sizes in case.edges.sizes]
                prices.append((figures.latency[c] + self._across_positions(*moved)) * passes)
            found.append(np.min(prices, axis=0) if prices else np.zeros((2, self.size + 1), dtype=np.int64))
        return np.concatenate(found)

    def endings(self, deadline: Deadline) -> Iterator[Ending]:
        """Go through all intervals, by their ends in ascending order.

        The arrays are overwritten by the next step.

        Raises
        ------
        TimeOver
            When the deadline passes.
        """
        size, reserve = self.size, int(self.instance.topology.reserves.min())
        state = np.full(size, reserve, dtype=np.int64)
        kept = np.zeros(size, dtype=np.int64)
        for_weights = np.zeros(size, dtype=np.int64)
        workspace = np.zeros(size, dtype=np.int64)
        host = HostTimes(self.instance, self.figures, self.groups) if self.pays_host else None
        received, any_workspace = self._received(), bool(self._workspace.any())
        compute, alone = self.compute, self.instance.schedule.chunks == 1
        least = self.least.sum(axis=0)
        for group in range(size):
            deadline.check()
            end = group + 1
            state[:end] += self.state[group]
            kept[:end] += self.kept[group]
            for_weights[:end] += self.for_weights[group]
            for previous, total, each_microbatch in self._last_holders[group]:
                for held in (kept, for_weights) if each_microbatch else (state,):
                    held[previous + 1 : end] += total
            np.maximum(workspace[:end], self._workspace[group], out=workspace[:end])
            busy = compute[end] - compute[:end]
            if host is not None:
                busy = busy + host.extend(group)[:end]
            elif self.instance.blocking and alone:
                busy = busy + least[:end] * (np.arange(end) > 0) + (least[end] if end < size else 0)
            fixed = state[:end] + workspace[:end] if any_workspace else state[:end]
            yield Ending(end, fixed, received[0, :end] + received[1, end], kept[:end], for_weights[:end], busy)

    @property
    def pays_host(self) -> bool:
        """Whether stages are busy with writing to and reading from the host."""
        return self.instance.routing == "host" and self.instance.blocking

    def _received(self) -> IntArray:
        """Give the receive buffers for what arrives across an interval's start and end, shape (2, G + 1)."""
        return np.zeros_like(self._crossing) if self.instance.schedule.chunks > 1 else self.received_from_others()

    def received_from_others(self) -> IntArray:
        """Give the same for an interval whose neighbors are on other ranks."""
        if self.instance.routing == "host":
            return np.zeros_like(self._crossing)
        received = self._crossing * self.instance.receive_buffers
        received[:, [0, -1]] = 0
        return received


def prefix(values: IntArray) -> IntArray:
    """Give the sums of the values before every position."""
    return np.concatenate([[0], np.cumsum(values)])
