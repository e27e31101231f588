"""Time that an interval of groups spends on writing to and reading from the host, kept while intervals grow."""

from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.figures import Figures
from partita.solver.grouping import Groups
from partita.solver.instance import Instance


@dataclass(frozen=True, slots=True)
class _Way:
    """A value written once by the group of its producer and read once by the stage of each reader."""

    price: int
    producer: int
    readers: tuple[int, ...]


class HostTimes:
    """Host times of all intervals that end at one position, extended group by group (``blocking``, ``host``).

    An interval [j, i) pays a write for a value made inside when a reader is outside, and a read when it is made
    outside and a reader is inside. A gradient goes the other way: every reading stage writes it, the producer reads
    each; its price is a lower bound of one write or one read here.
    """

    def __init__(self, instance: Instance, figures: Figures, groups: Groups) -> None:
        self._times = np.zeros(len(groups), dtype=np.int64)
        path_class = int(instance.topology.class_of[0, 0])
        edges = instance.edges
        self._of_group: list[list[_Way]] = [[] for _ in range(len(groups))]
        sizes = np.where(edges.ordered, edges.forward_bytes, edges.backward_bytes)
        for number, consumers in enumerate(edges.consumers):
            producer = int(groups.group_of[edges.producer[number]])
            readers = tuple(int(group) for group in np.unique(groups.group_of[consumers]) if group != producer)
            rounds = (sizes[number], edges.backward_bytes[number] if edges.ordered[number] else 0)
            for size in rounds:
                if readers and size > 0:
                    moved = figures.transfer(np.array([size]), path_class) + figures.latency[path_class]
                    way = _Way(int(moved[0]), producer, readers)
                    for group in (producer, *readers):
                        self._of_group[group].append(way)

    def extend(self, group: int) -> IntArray:
        """Add a group to all intervals and give their host times by start, valid for starts up to the group."""
        times = self._times
        for way in self._of_group[group]:
            if group == way.producer:
                self._add_producer(times, way)
            else:
                self._add_reader(times, way, group)
        return times

    @staticmethod
    def _add_producer(times: IntArray, way: _Way) -> None:
        """Take back the reads of intervals that now hold the producer, and charge the write while a reader is out."""
        before = [reader for reader in way.readers if reader < way.producer]
        if before:
            times[: before[-1] + 1] -= way.price
        if way.readers[-1] > way.producer:
            times[: way.producer + 1] += way.price
        else:
            times[way.readers[0] + 1 : way.producer + 1] += way.price

    @staticmethod
    def _add_reader(times: IntArray, way: _Way, group: int) -> None:
        """Charge a read to intervals without the producer, and take back the write when no reader is out."""
        earlier = [other for other in (*way.readers, way.producer) if other < group]
        times[max(earlier, default=-1) + 1 : group + 1] += way.price
        if way.producer < group and group == way.readers[-1]:
            first = way.readers[0]
            times[: min(first, way.producer) + 1] -= way.price
