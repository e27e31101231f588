"""Nodes of one color class as one layer: names, order, and who reads whose value."""

from dataclasses import dataclass, field

from partita.models.graph import reachable_from, strong_components
from partita.models.quantities import MAX_NAME
from partita.models.readers.dnn_partitioning_file import FileNode, InputFile


@dataclass(slots=True)
class Readers:
    """The classes, other than the source's own, that read a node's value in the forward and in the backward pass."""

    forward: set[int] = field(default_factory=set)
    backward: set[int] = field(default_factory=set)


class ColorClasses:
    """The classes of a file, numbered in a topological order of the edges between forward nodes.

    Attributes
    ----------
    members
        For every class the positions of its nodes in the file.
    names
        For every class the name of its first forward node.
    class_of, node_names, cost_of, readers
        For every node, by position, its class, a unique name, the cost of moving its value in the file's unit, and
        who reads it.
    cyclic
        Groups of classes that read from each other in a circle, so that only one stage can hold them. Reads within
        such a group are not listed in ``readers``: they never leave the stage.
    """

    def __init__(self, file: InputFile) -> None:
        position_of = {node.id: position for position, node in enumerate(file.nodes)}
        self.node_names = _unique_names(file)
        groups: dict[tuple[bool, int], list[int]] = {}
        for position, node in enumerate(file.nodes):
            key = (False, node.id) if node.color is None else (True, node.color)
            groups.setdefault(key, []).append(position)
        unordered = list(groups.values())
        group_of = {position: number for number, members in enumerate(unordered) for position in members}
        edges = [(position_of[edge.source], position_of[edge.target]) for edge in file.edges]
        successors: list[list[int]] = [[] for _ in unordered]
        for source, target in edges:
            if group_of[source] != group_of[target] and not file.nodes[target].backward:
                successors[group_of[source]].append(group_of[target])
        components = strong_components(successors)
        order = [number for component in components for number in component]
        rank = {number: place for place, number in enumerate(order)}

        self.members = [unordered[number] for number in order]
        self.class_of = [rank[group_of[position]] for position in range(len(file.nodes))]
        self.names = [self.node_names[_first_forward(file, members)] for members in self.members]
        self.cyclic = [sorted(rank[number] for number in group) for group in components if len(group) > 1]
        circle_of = {number: circle for circle, group in enumerate(self.cyclic) for number in group}
        self._successors = [[rank[target] for target in successors[number]] for number in order]
        self.cost_of = [0.0] * len(file.nodes)
        self.readers = [Readers() for _ in file.nodes]
        for edge, (source, target) in zip(file.edges, edges, strict=True):
            self.cost_of[source] = edge.cost
            home, there = self.class_of[source], self.class_of[target]
            if home != there and circle_of.get(home, -1) != circle_of.get(there, -2):
                found = self.readers[source]
                (found.backward if file.nodes[target].backward else found.forward).add(there)

    def reachable(self, number: int) -> set[int]:
        """Give the classes that come after a class in every order, by the edges between forward nodes."""
        return reachable_from(self._successors, number)


def _first_forward(file: InputFile, members: list[int]) -> int:
    """Give the first forward node of a class, or its first node where it has none."""
    return next((position for position in members if not file.nodes[position].backward), members[0])


def _unique_names(file: InputFile) -> list[str]:
    """Give every node a name of its own: the file's where that is possible, else one with its id."""
    taken: set[str] = set()
    names = []
    for node in file.nodes:
        name = _usable_name(node)
        if name in taken:
            name = f"{name}#{node.id}"
        while name in taken:
            name += "'"
        taken.add(name)
        names.append(name)
    return names


def _usable_name(node: FileNode) -> str:
    """Give the node's name in the file, or one made from its id where that is none."""
    if node.name and node.name.isprintable() and len(node.name) <= MAX_NAME // 2:
        return node.name
    return f"node{node.id}"
