"""Directed graphs given as lists of successors: components, cycles and orders. Nothing here recurses."""

from collections import deque
from collections.abc import Sequence

Successors = Sequence[Sequence[int]]
"""For every node, the nodes that its edges lead to."""


def strong_components(successors: Successors) -> list[list[int]]:
    """Group the nodes into strongly connected components, in a topological order of the components.

    References
    ----------
    R. Tarjan, Depth-first search and linear graph algorithms, 1972; here with a stack of its own.
    """
    number: list[int] = [-1] * len(successors)  # order of discovery
    low: list[int] = [0] * len(successors)  # earliest node that can be reached
    waiting: list[int] = []  # discovered, not yet in a component
    placed: list[bool] = [False] * len(successors)
    components: list[list[int]] = []
    count = 0
    for root in range(len(successors)):
        if number[root] >= 0:
            continue
        path: list[tuple[int, int]] = [(root, 0)]  # node and how many of its edges were followed
        while path:
            node, followed = path.pop()
            if followed == 0:
                number[node] = low[node] = count
                count += 1
                waiting.append(node)
            edges = successors[node]
            descended = False
            while followed < len(edges):
                target = edges[followed]
                followed += 1
                if number[target] < 0:
                    path.append((node, followed))
                    path.append((target, 0))
                    descended = True
                    break
                if not placed[target]:
                    low[node] = min(low[node], low[target])
            if descended:
                continue
            if low[node] == number[node]:
                components.append(_take(waiting, node, placed))
            if path:
                parent = path[-1][0]
                low[parent] = min(low[parent], low[node])
    components.reverse()
    return components


def _take(waiting: list[int], root: int, placed: list[bool]) -> list[int]:
    """Take the component that ``root`` completes off the stack."""
    component = []
    while True:
        node = waiting.pop()
        placed[node] = True
        component.append(node)
        if node == root:
            return sorted(component)


def shortest_path(successors: Successors, start: int, goal: int) -> list[int] | None:
    """Give a path with the fewest edges from ``start`` to ``goal``, both included; None where there is none."""
    came_from: dict[int, int] = {start: start}
    queue = deque([start])
    while queue and goal not in came_from:
        node = queue.popleft()
        for target in successors[node]:
            if target not in came_from:
                came_from[target] = node
                queue.append(target)
    if goal not in came_from:
        return None
    path = [goal]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    path.reverse()
    return path


def reachable_from(successors: Successors, start: int) -> set[int]:
    """Give all nodes to which a path of at least one edge leads from ``start``."""
    found: set[int] = set()
    waiting = list(successors[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(successors[node])
    return found
