"""Layers that must share a stage become one group; what is left to decide is the stage of every group.

Layers share a stage when the user says so (together), when no boundary may lie between them (cut_after), when they
write to one buffer, and when the order of stages leaves no other way (a cycle between such sets).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from partita.models.graph import strong_components
from partita.models.problem import Problem
from partita.solver.arrays import IntArray
from partita.solver.instance import Instance


@dataclass(frozen=True)
class Groups:
    """Groups of layers in a topological order.

    Attributes
    ----------
    members
        The layers of each of the G groups, ascending.
    group_of
        The group of every layer, shape (L,).
    successors
        For every group, the groups that may not be on an earlier stage, ascending.
    total_order
        Whether the order of the groups is the only topological one: then every stage is an interval of groups.
    twins
        Sets of groups of one layer each that can be exchanged, ascending, where a later one may not be on an earlier
        stage than those before it.
    """

    members: tuple[IntArray, ...]
    group_of: IntArray
    successors: tuple[tuple[int, ...], ...]
    total_order: bool
    twins: tuple[tuple[int, ...], ...] = ()

    def __len__(self) -> int:
        """Give the number of groups."""
        return len(self.members)


def group_layers(instance: Instance, equal: Sequence[Sequence[int]] = ()) -> Groups:
    """Contract the layers of an instance into groups.

    Parameters
    ----------
    instance
        The problem.
    equal
        Sets of layers that can be exchanged (``equal_layers``): those that stay groups of their own are put in order.
    """
    size = instance.num_layers
    order = _order_edges(instance)
    links: list[list[int]] = [[] for _ in range(size)]
    for before, after in order:
        links[before].append(after)
    for joined in _joined(instance):
        for first, second in pairwise(joined):
            links[first].append(second)
            links[second].append(first)
    components = strong_components(links)
    owner = np.empty(size, dtype=np.int64)
    for number, component in enumerate(components):
        owner[component] = number
    between = {(int(owner[a]), int(owner[b])) for a, b in order if owner[a] != owner[b]}
    alone = [[int(owner[layer]) for layer in each if len(components[owner[layer]]) == 1] for each in equal]
    between.update(pair for twins in alone for pair in pairwise(twins))
    rank = _topological_rank(components, between)
    members = [np.array([], dtype=np.int64)] * len(components)
    for number, component in enumerate(components):
        members[rank[number]] = np.array(component, dtype=np.int64)
    following: list[set[int]] = [set() for _ in components]
    for a, b in between:
        following[rank[a]].add(rank[b])
    return Groups(
        members=tuple(members),
        group_of=np.array(rank, dtype=np.int64)[owner],
        successors=tuple(tuple(sorted(each)) for each in following),
        total_order=all(i + 1 in following[i] for i in range(len(components) - 1)),
        twins=tuple(tuple(rank[number] for number in each) for each in alone if len(each) > 1),
    )


def _order_edges(instance: Instance) -> list[tuple[int, int]]:
    """List the pairs of layers of which the second is never on an earlier stage than the first."""
    edges = instance.edges
    return [
        (int(producer), int(consumer))
        for producer, consumers, ordered in zip(edges.producer, edges.consumers, edges.ordered, strict=True)
        if ordered
        for consumer in consumers
    ]


def _joined(instance: Instance) -> list[list[int]]:
    """List the sets of layers that share a stage."""
    problem: Problem = instance.problem
    index = problem.model.layer_index()
    joined = [[index[name] for name in group] for group in problem.constraints.together]
    joined += [[index[name] for name in buffer.layers] for buffer in problem.model.buffers if buffer.mutated]
    if problem.constraints.cut_after is not None:
        allowed = {index[name] for name in problem.constraints.cut_after}
        joined += [list(edge) for edge in _order_edges(instance) if edge[0] not in allowed]
    return joined


def _topological_rank(components: list[list[int]], between: set[tuple[int, int]]) -> list[int]:
    """Give every component its place in a topological order in which it comes right before what needs it first.

    A walk from the ends of the graph to its beginnings, depth first.
    """
    before: list[list[int]] = [[] for _ in components]
    needed = [False] * len(components)
    for a, b in sorted(between):
        before[b].append(a)
        needed[a] = True
    for each in before:
        each.sort(key=lambda number: components[number][0])
    rank = [-1] * len(components)
    place = 0
    ends = sorted((number for number in range(len(components)) if not needed[number]), key=lambda n: components[n][0])
    for end in ends:
        path = [(end, 0)]
        while path:
            number, followed = path.pop()
            if rank[number] >= 0:
                continue
            if followed < len(before[number]):
                path.append((number, followed + 1))
                path.append((before[number][followed], 0))
            else:
                rank[number] = place
                place += 1
    return rank
