"""The text of a PipeDream profile: a line for every node, and an indented line for every edge."""

import re
from dataclasses import dataclass

from partita.models.errors import InvalidInput, short_value

MAX_FIGURE = 1e15
LEAST_MS = 1e-12
"""The shortest time that is not 0: what a problem allows, in milliseconds."""
_NAME = re.compile(r"[!-~]{1,200}")
_NUMBER = r"([0-9]{1,30}(?:\.[0-9]{0,30})?(?:e[+-]?[0-9]{1,3})?)"
_COSTS = re.compile(
    rf"forward_compute_time={_NUMBER}, backward_compute_time={_NUMBER}, "
    rf"activation_size=(?:{_NUMBER}|\[([^\]]*)\]), parameter_size={_NUMBER}"
)
_ONE_NUMBER = re.compile(_NUMBER)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A measured node: times in milliseconds for one minibatch, sizes in bytes."""

    description: str
    forward_ms: float
    backward_ms: float
    activation_bytes: float
    parameter_bytes: float


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes by name, and for each the nodes that read its output."""

    nodes: dict[str, GraphNode]
    readers: dict[str, list[str]]


def parse(text: bytes, keep_inputs: bool) -> Graph:
    """Read the text of a profile.

    Parameters
    ----------
    text
        The file, in UTF-8.
    keep_inputs
        Whether to keep the nodes described as ``Input``, and their edges.

    Raises
    ------
    InvalidInput
        With the number of the line.
    """
    try:
        lines = text.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput.at("", f"not UTF-8: byte {error.start} is wrong", None, "not_unicode") from None
    nodes: dict[str, GraphNode] = {}
    edges: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if line.startswith(("\t", " ")) and line.strip():
            edges.setdefault(_edge(line, number), number)
        elif line:
            name, node = _node(line, number)
            if name in nodes:
                raise _fault(number, "a second node of this name", name)
            nodes[name] = node
    if not nodes:
        raise InvalidInput.at("", "no nodes: expected lines 'node1 -- Conv2d(…) -- forward_compute_time=…'")
    readers: dict[str, list[str]] = {name: [] for name in nodes}
    for (source, target), number in edges.items():
        for name in (source, target):
            if name not in nodes:
                raise _fault(number, "an edge of a node that is not in the file", name)
        if source == target:
            raise _fault(number, "a node does not read its own output", source)
        readers[source].append(target)
    if keep_inputs:
        return Graph(nodes, readers)
    kept = {name: node for name, node in nodes.items() if not node.description.startswith("Input")}
    if not kept:
        raise InvalidInput.at("", "only Input nodes: nothing is left to plan without them")
    return Graph(kept, {name: [reader for reader in readers[name] if reader in kept] for name in kept})


def _fault(number: int, detail: str, value: str) -> InvalidInput:
    """Make the refusal of a line."""
    return InvalidInput.at("", f"line {number}: {detail}", short_value(value), "line")


def _edge(line: str, number: int) -> tuple[str, str]:
    """Read an edge: a tab, the source, ``--`` and the target."""
    ends = line.strip().split(" -- ")
    if len(ends) != 2 or not all(_NAME.fullmatch(end) for end in ends):
        raise _fault(number, "an edge is a tab and two names, such as 'node1 -- node2'", line)
    return ends[0], ends[1]


def _node(line: str, number: int) -> tuple[str, GraphNode]:
    """Read a node: name, description and costs, and perhaps the stage it was once given."""
    parts = line.split(" -- ")
    if len(parts) not in (3, 4) or not _NAME.fullmatch(parts[0]):
        raise _fault(number, "a node is 'name -- description -- costs'", line)
    costs = _COSTS.fullmatch(parts[2].strip())
    if costs is None:
        wanted = "forward_compute_time=…, backward_compute_time=…, activation_size=…, parameter_size=…"
        raise _fault(number, f"costs are {wanted}, in milliseconds and bytes", parts[2])
    forward, backward, size, sizes, parameters = costs.groups()
    outputs = [size] if sizes is None else [item.strip() for item in sizes.split(";") if item.strip()]
    if not all(_ONE_NUMBER.fullmatch(output) for output in outputs):
        raise _fault(number, "activation_size is a number, or a list such as [1024.0; 512.0]", parts[2])
    figures = [float(forward), float(backward), sum(float(output) for output in outputs), float(parameters)]
    if max(figures) > MAX_FIGURE:
        raise _fault(number, f"a figure above {MAX_FIGURE:g}", str(max(figures)))
    for time in figures[:2]:
        if 0 < time < LEAST_MS:
            raise _fault(number, f"a time is 0 or at least {LEAST_MS:g} ms; check the unit", f"{time:g}")
    return parts[0], GraphNode(parts[1], *figures)
