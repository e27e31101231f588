"""Reads the inputs of dnn-partitioning (Tarnawski et al., NeurIPS 2020) as that work's problem without CPUs.

Nodes of one color class become one layer. A node's time is in milliseconds; an edge's cost is taken in the same unit,
as that work's own code does. It is charged once where the source's stage writes the value to the host and once on
every other stage that reads it, which is what ``routing: host`` with ``communication: blocking`` means.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor, fsum
from typing import Literal

from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput, short_value
from partita.models.problem import Problem
from partita.models.readers.color_classes import ColorClasses
from partita.models.readers.dnn_partitioning_file import InputFile
from partita.models.readers.host_link import HostLink
from partita.models.readers.options import checked_devices, memory_in_bytes

EdgeCostUnit = Literal["ms", "s"]
SECONDS_PER_UNIT: Mapping[str, float] = {"ms": 1e-3, "s": 1.0}


def read(
    text: bytes,
    *,
    devices: int | None = None,
    memory_bytes: int | str | None = None,
    edge_cost_unit: EdgeCostUnit = "ms",
) -> Problem:
    """Read one input file.

    Parameters
    ----------
    text
        The file.
    devices
        Number of accelerators; by default the file's ``maxFPGAs``.
    memory_bytes
        Memory of each; by default the file's ``maxSizePerFPGA``.
    edge_cost_unit
        The unit of the edges' costs. ``ms`` takes them as that work does; ``s`` is what the layer graphs of its
        throughput inputs physically mean.

    Raises
    ------
    InvalidInput
        When the text is no such file, a node cannot run on an accelerator, or edges do not fit the nodes.
    """
    if edge_cost_unit not in SECONDS_PER_UNIT:
        raise InvalidInput.at("", "edge_cost_unit: 'ms' or 's'", short_value(edge_cost_unit), "option")
    file = validate(InputFile, read_json(text))
    memory = floor(file.capacity) if memory_bytes is None else memory_in_bytes(memory_bytes)
    classes = ColorClasses(file)
    link = HostLink.of(file.edges, SECONDS_PER_UNIT[edge_cost_unit])
    trains = any(node.backward for node in file.nodes)
    return validate(
        Problem,
        {
            "model": {
                "layers": [_layer(file, classes, members) for members in classes.members],
                "tensors": _tensors(file, classes, link),
            },
            "cluster": {
                "devices": {"accelerator": {"memory_bytes": memory}},
                "nodes": [
                    {
                        "name": "node0",
                        "device": "accelerator",
                        "count": checked_devices(file.accelerators if devices is None else devices),
                        "fabric": {"bandwidth_bytes_per_s": link.bandwidth_bytes_per_s},
                    }
                ],
            },
            "training": {
                "schedule": "1f1b" if trains else "forward_only",
                "num_microbatches": 1,
                "optimizer": "none",
                "communication": "blocking",
                "routing": "host",
            },
            "objective": "bottleneck_time",
            "constraints": {"together": [[classes.names[number] for number in group] for group in classes.cyclic]},
        },
    )


def _layer(file: InputFile, classes: ColorClasses, members: Sequence[int]) -> dict[str, object]:
    """Make the layer of a color class: the sums of its nodes' times and sizes."""
    nodes = [file.nodes[position] for position in members]
    return {
        "name": classes.names[classes.class_of[members[0]]],
        "forward_s": fsum(node.latency_ms for node in nodes if not node.backward) / 1000,
        "backward_s": fsum(node.latency_ms for node in nodes if node.backward) / 1000,
        "weight_bytes": ceil(fsum(node.size for node in nodes)),
    }


def _tensors(file: InputFile, classes: ColorClasses, link: HostLink) -> list[dict[str, object]]:
    """Make the tensors of every node whose value leaves its class, so that each is charged once per stage.

    A value that is made and read in the forward pass orders its layers. Backward nodes that read it too count as
    readers of the same tensor where their class comes later anyway, so that nothing is ordered that was not before.
    What is read only by backward nodes is a tensor of the backward pass.
    """
    tensors: list[dict[str, object]] = []
    for position, readers in enumerate(classes.readers):
        source = file.nodes[position]
        home = classes.class_of[position]
        forward = set() if source.backward else readers.forward
        backward = (readers.forward | readers.backward) - forward
        if forward and backward:
            later = classes.reachable(home)
            forward, backward = forward | (backward & later), backward - later
        value = {
            "name": classes.node_names[position],
            "producer": classes.names[home],
            "bytes": link.bytes_of(classes.cost_of[position]),
        }
        if forward:
            readers_by_name = [classes.names[number] for number in sorted(forward)]
            tensors.append({**value, "consumers": readers_by_name, "gradient_bytes": 0})
        if backward:
            # Both tensors exist only where a backward reader may come first; the source then pays at most twice.
            name = f"{value['name']} (backward)" if forward else value["name"]
            readers_by_name = [classes.names[number] for number in sorted(backward)]
            tensors.append({**value, "name": name, "consumers": readers_by_name, "pass": "backward"})
    return tensors
