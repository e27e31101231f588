"""The benchmark's models of equal blocks in a row, between an embedding and a head: as chains and as graphs."""

from collections.abc import Callable
from typing import Any

from partita.models.document import validate
from partita.models.problem import Problem

STAGES, MICROBATCHES = 8, 32
SIZE = 50_000_000
"""Bytes between two operators."""
BLOCK = (("norm", 0.001), ("q", 0.001), ("k", 0.001), ("v", 0.001), ("attention", 0.002), ("mlp", 0.004))
"""The operators of a block, and their seconds forward."""
INSIDE = ("norm>q", "norm>k", "norm>v", "q>attention", "k>attention", "v>attention", "attention>mlp")


def repeated(num_blocks: int, graph: bool, kind: str, seconds: float) -> Problem:
    """Give equal blocks for 1F1B on a node of eight devices.

    Parameters
    ----------
    num_blocks
        How many there are.
    graph
        Whether a block is a graph of six operators, three of them side by side, instead of one layer.
    kind
        What is hard: one of ``KINDS``.
    seconds
        The time limit.
    """
    layers = [_layer("embedding", 0.005, 400)]
    edges = []
    before = "embedding"
    for number in range(num_blocks):
        parts = BLOCK if graph else (("block", 0.01),)
        layers += [_layer(f"{number}.{name}", forward, 10_000 * forward) for name, forward in parts]
        edges.append((before, f"{number}.{parts[0][0]}"))
        edges += [tuple(f"{number}.{end}" for end in edge.split(">")) for edge in (INSIDE if graph else ())]
        before = f"{number}.{parts[-1][0]}"
    layers.append(_layer("head", 0.03, 400))
    edges.append((before, "head"))
    readers: dict[str, list[str]] = {}
    for producer, consumer in edges:
        readers.setdefault(producer, []).append(consumer)
    tensors = [
        {"name": f"of {producer}", "producer": producer, "consumers": consumers, "bytes": SIZE}
        for producer, consumers in readers.items()
    ]
    node = {"name": "node", "device": "gpu", "count": STAGES, "fabric": {"bandwidth_bytes_per_s": 50e9}}
    problem: dict[str, Any] = {
        "model": {"name": f"{num_blocks} equal blocks", "layers": layers, "tensors": tensors},
        "cluster": {"devices": {"gpu": {"memory_bytes": "1TB"}}, "nodes": [node]},
        "training": {"schedule": "1f1b", "num_stages": STAGES, "num_microbatches": MICROBATCHES, "optimizer": "adam"},
        "search": {"candidates": 1, "time_limit_s": seconds, "workers": 1},
    }
    KINDS[kind](problem, num_blocks)
    return validate(Problem, problem)


def _layer(name: str, forward: float, megabytes: float) -> dict[str, Any]:
    size = int(megabytes * 1e6)
    return {
        "name": name,
        "forward_s": forward,
        "backward_s": 2 * forward,
        "weight_bytes": size,
        "activation_bytes": size,
    }


def _plain(problem: dict[str, Any], num_blocks: int) -> None:
    """Leave plenty of memory."""


def _memory(problem: dict[str, Any], num_blocks: int) -> None:
    """Let a device hold what the first of equally long stages needs, and a block more."""
    each = num_blocks // STAGES + 1
    problem["cluster"]["devices"]["gpu"]["memory_bytes"] = int((4 + STAGES) * each * 100e6 + 2e9)


def _recompute(problem: dict[str, Any], num_blocks: int) -> None:
    """Let a device hold half as much, and every layer keep a tenth for one more forward pass."""
    _memory(problem, num_blocks)
    device = problem["cluster"]["devices"]["gpu"]
    device["memory_bytes"] = int(0.6 * device["memory_bytes"])
    problem["constraints"] = {"recompute": "choose"}
    for layer in problem["model"]["layers"]:
        kept, slower = layer["activation_bytes"] // 10, layer["backward_s"] + layer["forward_s"]
        layer["options"] = [{"recompute": "full", "backward_s": slower, "activation_bytes": kept}]


def _open(problem: dict[str, Any], num_blocks: int) -> None:
    """Leave the number of stages open."""
    problem["training"]["num_stages"] = None


def _interleaved(problem: dict[str, Any], num_blocks: int) -> None:
    """Run two stages on every rank."""
    problem["training"] |= {"schedule": "interleaved_1f1b", "num_stages": 2 * STAGES // 2}
    problem["cluster"]["nodes"][0]["count"] = STAGES // 2


def _ranked(problem: dict[str, Any], num_blocks: int) -> None:
    """Ask for five plans."""
    problem["search"]["candidates"] = 5


KINDS: dict[str, Callable[[dict[str, Any], int], None]] = {
    "plenty of memory": _plain,
    "memory binds": _memory,
    "recompute chosen": _recompute,
    "any number of stages": _open,
    "two stages on a rank": _interleaved,
    "five candidates": _ranked,
}
