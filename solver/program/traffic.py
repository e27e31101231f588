"""Bytes between nodes in one iteration (C18)."""

from partita.solver.instance import Instance
from partita.solver.pipeline import Pipeline
from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.program.placement import Placement, add_node_changes
from partita.solver.program.scale import Scale
from partita.solver.program.transfers import TransferRows


class TrafficRows:
    """Adds what passes between nodes.

    Parameters
    ----------
    program, placement, scale
        Where the rows go, where the ranks are, and the unit of bytes.
    instance, pipeline
        The problem, and the ranks of its stages.
    transfers
        What passes between every pair of stages.
    """

    def __init__(
        self,
        program: Program,
        placement: Placement,
        scale: Scale,
        instance: Instance,
        pipeline: Pipeline,
        transfers: TransferRows,
    ) -> None:
        self._program, self._placement, self._scale = program, placement, scale
        self._instance, self._pipeline, self._transfers = instance, pipeline, transfers
        self._apart: dict[tuple[int, int], Variable] = {}

    def add_traffic(self, most: int) -> Variable:
        """Give the bytes between nodes of all microbatches, at least those of every scenario (C18)."""
        traffic = self._program.quantity("inter_node_bytes", 0, self._scale.size(most))
        for case in range(len(self._instance.cases)):
            total = Linear().add(traffic)
            for pair, of_cases in self._transfers.moved.items():
                crossing, low, high = of_cases[case]
                one = Linear().add_all((where, self._scale.size(size)) for where, size in crossing)
                if self._placement.on is not None:
                    one = self._if_apart(f"{pair[0]}_{pair[1]}_{case}", pair, one, low, high)
                elif not self._fixed_apart:
                    continue
                total.add(one, -self._instance.microbatches)
            self._program.at_least("traffic", total, 0)
        if self._placement.on is not None:
            self._add_changes()
        return traffic

    @property
    def _fixed_apart(self) -> bool:
        """Whether ranks are on different nodes, where all placements are one: then all of them are, or none."""
        fixed, node_of = self._placement.fixed, self._placement.topology.node_of
        return len(fixed) > 1 and bool(node_of[fixed[0]] != node_of[fixed[1]])

    def _if_apart(self, name: str, pair: tuple[int, int], size: Linear, low: int, high: int) -> Linear:
        """Give a number of bytes where a pair of stages is on different nodes, else 0."""
        if not size.terms and not size.constant:
            return Linear()
        apart = self._apart_of(pair)
        sent = self._program.quantity(f"sent_apart_{name}", 0, self._scale.size(high))
        short = Linear(self._scale.size(high)).add(sent).add(size, -1)
        self._program.at_least("sent_apart", short.add(apart, -self._scale.size(high)), 0)
        if low:
            self._program.at_least("sent_apart", Linear().add(sent).add(apart, -self._scale.size(low)), 0)
        return Linear().add(sent)

    def _apart_of(self, pair: tuple[int, int]) -> Variable:
        """Give a variable that is 1 where two stages are on different nodes, one for each pair of ranks."""
        first, second = sorted(self._pipeline.rank_of[list(pair)].tolist())
        if (first, second) not in self._apart:
            on, node_of = self._placement.on, self._placement.topology.node_of
            assert on is not None
            apart = self._apart[first, second] = self._program.binary(f"apart_{first}_{second}")
            for node in sorted(set(node_of.tolist())):
                places = [place for place, its in enumerate(node_of.tolist()) if its == node]
                for near, far in ((first, second), (second, first)):
                    row = Linear(1).add(apart).add(self._placement.used[far], -1)
                    row.add_all((on[near][place], -1) for place in places)
                    row.add_all((on[far][place], 1) for place in places)
                    self._program.at_least("apart", row, 0)
        return self._apart[first, second]

    def _add_changes(self) -> None:
        """Say that more ranks in a row than a node holds are not all on one."""
        rank_of = self._pipeline.rank_of.tolist()
        neighbors: dict[int, dict[int, Variable]] = {}
        for boundary in range(self._pipeline.num_stages - 1):
            ranks = sorted(rank_of[boundary : boundary + 2])
            variable = self._apart.get((ranks[0], ranks[1]))
            neighbors[boundary] = {} if variable is None else {0: variable}
            if variable is None and ranks[0] != ranks[1]:
                return
        add_node_changes(self._program, self._placement, self._pipeline, neighbors)
