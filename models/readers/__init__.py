"""Readers of the profiles and inputs of other planners."""

from collections.abc import Callable
from dataclasses import dataclass

from partita.models.problem import Problem
from partita.models.readers import dnn_partitioning, pipedream, piper

__all__ = ["READERS", "Reader"]


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of one format.

    Attributes
    ----------
    read
        Takes the bytes of a file and the options as keywords; gives a problem that reproduces the other planner's
        own, or raises ``InvalidInput``.
    options
        The names of the options.
    summary
        The format in a few words.
    """

    read: Callable[..., Problem]
    options: tuple[str, ...]
    summary: str


READERS: dict[str, Reader] = {
    "dnn-partitioning": Reader(
        dnn_partitioning.read,
        ("devices", "memory_bytes", "edge_cost_unit"),
        "throughput inputs of dnn-partitioning (JSON)",
    ),
    "pipedream": Reader(
        pipedream.read,
        ("devices", "bandwidth_bytes_per_s", "memory_bytes", "keep_inputs"),
        "profiles of PipeDream (graph.txt)",
    ),
    "piper": Reader(
        piper.read,
        (
            "devices",
            "memory_bytes",
            "bandwidth_bytes_per_s",
            "time_unit",
            "no_data_parallel",
            "no_tensor_parallel",
            "no_recompute",
        ),
        "inputs of Piper (JSON)",
    ),
}
"""The readers by the name of their format."""
