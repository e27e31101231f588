"""Reads the profiles of PipeDream (SOSP 2019), ``graph.txt``."""

from heapq import heapify, heappop, heappush
from math import ceil

from partita.models.document import validate
from partita.models.problem import Problem
from partita.models.readers.options import checked_devices, memory_in_bytes
from partita.models.readers.pipedream_file import Graph, parse


def read(
    text: bytes,
    *,
    devices: int = 4,
    bandwidth_bytes_per_s: float = 1.25e9,
    memory_bytes: int | str = "16GiB",
    keep_inputs: bool = False,
) -> Problem:
    """Read one profile as a problem of balancing stages on a single node.

    Parameters
    ----------
    text
        The file.
    devices
        Number of devices, and of microbatches.
    bandwidth_bytes_per_s
        Bytes per second between two of them, in one direction.
    memory_bytes
        Memory of each.
    keep_inputs
        Keep the ``Input`` nodes, whose time is that of loading data; they are left out by default, with their edges.

    Raises
    ------
    InvalidInput
        When the text is no such file; the message gives the line.
    """
    return validate(
        Problem,
        {
            "model": _model(parse(text, keep_inputs)),
            "cluster": {
                "devices": {"v100": {"memory_bytes": memory_in_bytes(memory_bytes)}},
                "nodes": [
                    {
                        "name": "node0",
                        "device": "v100",
                        "count": checked_devices(devices),
                        "fabric": {"bandwidth_bytes_per_s": bandwidth_bytes_per_s},
                    }
                ],
            },
            "training": {"schedule": "1f1b", "num_microbatches": devices, "optimizer": "none"},
            "objective": "bottleneck_time",
        },
    )


def _model(graph: Graph) -> dict[str, object]:
    """Make a layer of every node, and a tensor of every output that is read."""
    layers = [
        {
            "name": name,
            "forward_s": graph.nodes[name].forward_ms / 1000,
            "backward_s": graph.nodes[name].backward_ms / 1000,
            "activation_bytes": ceil(graph.nodes[name].activation_bytes),
            "weight_bytes": ceil(graph.nodes[name].parameter_bytes),
        }
        for name in _order(graph)
    ]
    tensors = [
        {
            "name": f"{name}.output",
            "producer": name,
            "consumers": readers,
            "bytes": ceil(graph.nodes[name].activation_bytes),
        }
        for name, readers in graph.readers.items()
        if readers
    ]
    return {"layers": layers, "tensors": tensors}


def _order(graph: Graph) -> list[str]:
    """Order the nodes topologically, the one listed by the smallest number first.

    Nodes on a cycle come last; the problem's own check names the cycle.
    """
    number = {name: place for place, name in enumerate(sorted(graph.nodes, key=_by_number))}
    names = list(number)
    open_inputs = dict.fromkeys(graph.nodes, 0)
    for readers in graph.readers.values():
        for reader in readers:
            open_inputs[reader] += 1
    ready = [number[name] for name, count in open_inputs.items() if count == 0]
    heapify(ready)
    order: list[str] = []
    while ready:
        name = names[heappop(ready)]
        order.append(name)
        for reader in graph.readers[name]:
            open_inputs[reader] -= 1
            if open_inputs[reader] == 0:
                heappush(ready, number[reader])
    return order + [name for name in names if open_inputs[name] > 0]


def _by_number(name: str) -> tuple[int, str]:
    """Sort ``node9`` before ``node10``."""
    digits = name.removeprefix("node")
    return (int(digits) if digits.isdecimal() and len(digits) < 10 else 10**10, name)
