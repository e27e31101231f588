"""A peer for the benchmark: PipeDream's straight pipeline, written by us from the published method.

This is not PipeDream's program, and shares no code with it. It is the dynamic program of section 3.1 of "PipeDream:
Generalized Pipeline Parallelism for DNN Training" (SOSP 2019) for one level of machines and one machine for each stage
(no replication), with the antichains of the graph for its states.

State: an antichain of the graph; here the set ``done`` of its nodes and all that come before them.
Stage between states a < b: the nodes in b but not in a.
Time of a stage: max(its forward and backward times, 2 x bytes over either of its boundaries / bandwidth).
Bytes over the boundary of a state: outputs of the nodes that are done, read by one that is not.
A(b, m) = min over a < b of max(A(a, m - 1), time of the stage between a and b): b on exactly m machines.

Left out, as that optimizer does: ``Input`` nodes, and the ``__getitem__`` nodes of zero time that nothing reads.
"""

from dataclasses import dataclass
from math import fsum, inf

from partita.models.readers.pipedream_file import Graph, parse


@dataclass(frozen=True)
class State:
    """How far a pipeline has come after some stage."""

    done: frozenset[str]
    compute_s: float
    boundary_bytes: float


def read(text: bytes) -> Graph:
    """Read a profile, less the nodes that are left out."""
    graph = parse(text, keep_inputs=False)
    sinks = {
        name
        for name, node in graph.nodes.items()
        if node.description.startswith("__getitem__") and not graph.readers[name]
    }
    nodes = {name: node for name, node in graph.nodes.items() if name not in sinks}
    return Graph(nodes, {name: [reader for reader in graph.readers[name] if reader not in sinks] for name in nodes})


def states(graph: Graph) -> list[State]:
    """Give the states from one node to all of them, each after those that it contains."""
    inputs: dict[str, set[str]] = {name: set() for name in graph.nodes}
    for name, readers in graph.readers.items():
        for reader in readers:
            inputs[reader].add(name)
    found: list[frozenset[str]] = []
    latest = {frozenset[str]()}
    while latest:
        larger = set()
        for done in latest:
            for name in graph.nodes:
                if name not in done and inputs[name] <= done:
                    larger.add(done | {name})
        found += larger
        latest = larger
    return [_state(graph, done) for done in found]


def _state(graph: Graph, done: frozenset[str]) -> State:
    """Sum the times of all that is done, and the outputs still to be read."""
    compute_ms = fsum(graph.nodes[name].forward_ms + graph.nodes[name].backward_ms for name in done)
    waiting = [name for name in done if any(reader not in done for reader in graph.readers[name])]
    return State(done, compute_ms / 1000, fsum(graph.nodes[name].activation_bytes for name in waiting))


def stage_time(graph: Graph, machines: int, bandwidth_bytes_per_s: float) -> float:
    """Give the time in seconds of the slowest stage of the best straight pipeline."""
    all_states = states(graph)
    transfer_s = [2 * state.boundary_bytes / bandwidth_bytes_per_s for state in all_states]
    earlier = [
        [
            (a, max(after.compute_s - before.compute_s, transfer_s[a], transfer_s[b]))
            for a, before in enumerate(all_states[:b])
            if before.done < after.done
        ]
        for b, after in enumerate(all_states)
    ]
    best = [max(state.compute_s, transfer_s[b]) for b, state in enumerate(all_states)]
    for _ in range(1, machines):
        best = [min((max(best[a], time_s) for a, time_s in pairs), default=inf) for pairs in earlier]
    return best[-1]
