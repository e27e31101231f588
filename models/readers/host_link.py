"""Costs of edges as bytes over a bandwidth, without losing digits."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from partita.models.quantities import MAX_BYTES
from partita.models.readers.dnn_partitioning_file import FileEdge

PRECISION = 1e-10
"""Largest relative error of a cost by rounding to whole bytes."""
MAX_BANDWIDTH = 1e18
DEFAULT_BANDWIDTH = 1e9
"""Bytes per second where the file has no edge with a size and a cost."""


@dataclass(frozen=True, slots=True)
class HostLink:
    """The link to the host: its bandwidth, and the seconds that a cost of 1 stands for."""

    bandwidth_bytes_per_s: float
    seconds_per_cost: float

    @classmethod
    def of(cls, edges: Sequence[FileEdge], seconds_per_cost: float) -> Self:
        """Choose the bandwidth that most edges were made with, or a multiple of it by 1000.

        The multiple is the smallest with which every cost is kept to 1e-10 when bytes are whole numbers. Where none
        does so within the limits on bandwidth and bytes, it is the largest within them.
        """
        ratios = Counter(edge.size / edge.cost for edge in edges if edge.size > 0 and edge.cost > 0)
        usual = ratios.most_common(1)[0][0] / seconds_per_cost if ratios else DEFAULT_BANDWIDTH
        link = cls(min(max(usual, 1e3), MAX_BANDWIDTH), seconds_per_cost)
        costs = {edge.cost for edge in edges if edge.cost > 0}
        while costs and not all(link._keeps(cost) for cost in costs):
            larger = cls(link.bandwidth_bytes_per_s * 1000, seconds_per_cost)
            if larger.bandwidth_bytes_per_s > MAX_BANDWIDTH or larger.bytes_of(max(costs)) > MAX_BYTES:
                break
            link = larger
        return link

    def bytes_of(self, cost: float) -> int:
        """Give the bytes whose transfer takes as long as ``cost`` says, to the nearest byte."""
        return round(cost * self.seconds_per_cost * self.bandwidth_bytes_per_s)

    def _keeps(self, cost: float) -> bool:
        """Tell whether rounding to whole bytes keeps a cost to the precision wanted."""
        exact = cost * self.seconds_per_cost * self.bandwidth_bytes_per_s
        return abs(self.bytes_of(cost) - exact) <= PRECISION * exact
