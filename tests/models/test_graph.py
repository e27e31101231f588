"""Tests of the graph functions against plain definitions."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from partita.models.graph import reachable_from, shortest_path, strong_components


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """Draw the successors of up to eight nodes."""
    count = draw(st.integers(1, 8))
    return [draw(st.lists(st.integers(0, count - 1), max_size=4)) for _ in range(count)]


@given(graphs())
def test_components_are_what_reaches_each_other(successors: list[list[int]]) -> None:
    """Tests that two nodes share a component when paths lead both ways, and that edges go forward."""
    components = strong_components(successors)
    assert sorted(node for component in components for node in component) == list(range(len(successors)))
    place = {node: index for index, component in enumerate(components) for node in component}
    reach = [reachable_from(successors, node) for node in range(len(successors))]
    for node, targets in enumerate(successors):
        assert all(place[node] <= place[target] for target in targets)
        for other in range(len(successors)):
            both_ways = node == other or (other in reach[node] and node in reach[other])
            assert (place[node] == place[other]) == both_ways


@given(graphs(), st.data())
def test_shortest_paths_are_paths(successors: list[list[int]], data: st.DataObject) -> None:
    """Tests that a path follows edges and exists just where the goal can be reached."""
    start = data.draw(st.integers(0, len(successors) - 1))
    goal = data.draw(st.integers(0, len(successors) - 1))
    path = shortest_path(successors, start, goal)
    if path is None:
        assert goal != start
        assert goal not in reachable_from(successors, start)
    else:
        assert (path[0], path[-1]) == (start, goal)
        assert all(target in successors[node] for node, target in pairwise(path))


def test_a_long_chain_needs_no_recursion() -> None:
    """Tests a path longer than Python's stack."""
    count = 50_000
    chain = [[node + 1] if node + 1 < count else [] for node in range(count)]
    assert [component[0] for component in strong_components(chain)] == list(range(count))
    path = shortest_path(chain, 0, count - 1)
    assert path is not None
    assert len(path) == count
