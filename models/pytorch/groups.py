"""Groups of operations that become layers, merged until no two of them need each other."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from partita.models.graph import strong_components
from partita.models.pytorch.records import CapturedGraph


class Groups:
    """A partition of the operations that are not repeated, at first each by itself.

    Parameters
    ----------
    graph
        The graph.
    repeated
        Its sources, which belong to no group.
    """

    def __init__(self, graph: CapturedGraph, repeated: frozenset[str]) -> None:
        self._graph = graph
        self.names = tuple(name for name in graph.operations if name not in repeated)
        self._parent = {name: name for name in self.names}

    def root(self, name: str) -> str:
        """Give the operation that stands for the group of one."""
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def join(self, names: Iterable[str]) -> None:
        """Make one group of those of the operations; sources among them are left out."""
        roots = sorted(
            {self.root(name) for name in names if name in self._parent},
            key=lambda each: self._graph.operations[each].position,
        )
        for root in roots[1:]:
            self._parent[root] = roots[0]

    def made_by(self, name: str) -> list[str]:
        """Give the operations of groups whose results an operation reads, in the order in which they run."""
        makers = [each for each in self._graph.operations[name].inputs if each in self._parent]
        return sorted(makers, key=lambda each: self._graph.operations[each].position)

    def read_by(self, name: str) -> list[str]:
        """Give the operations of groups that read the result of one."""
        return [each for each in self._graph.readers[name] if each in self._parent]

    def ordered(self) -> list[tuple[str, ...]]:
        """Give the groups in a topological order; groups that need each other become one."""
        position = {name: self._graph.operations[name].position for name in self.names}
        roots = [name for name in self.names if self.root(name) == name]
        index = {root: number for number, root in enumerate(roots)}
        successors: list[set[int]] = [set() for _ in roots]
        for name in self.names:
            for maker in self.made_by(name):
                successors[index[self.root(maker)]].add(index[self.root(name)])
        for component in strong_components([sorted(each) for each in successors]):
            self.join(roots[each] for each in component)
        members: dict[str, list[str]] = {}
        for name in self.names:
            members.setdefault(self.root(name), []).append(name)
        waits = {root: set[str]() for root in members}
        for name in self.names:
            waits[self.root(name)] |= {self.root(each) for each in self.made_by(name)} - {self.root(name)}
        return [tuple(members[root]) for root in _topological(waits, position)]


def _topological(waits: dict[str, set[str]], position: dict[str, int]) -> list[str]:
    """Order groups after those that they wait for; of those that are free the one that starts first comes next."""
    readers: dict[str, list[str]] = {root: [] for root in waits}
    for root, makers in waits.items():
        for maker in makers:
            readers[maker].append(root)
    left = {root: len(makers) for root, makers in waits.items()}
    free = [(position[root], root) for root, count in left.items() if not count]
    heapify(free)
    order = []
    while free:
        _, root = heappop(free)
        order.append(root)
        for reader in readers[root]:
            left[reader] -= 1
            if not left[reader]:
                heappush(free, (position[reader], reader))
    return order
