"""The benchmark's problem of degrees: equal blocks of a GPT on many nodes, a fixed batch, everything else to choose."""

from typing import Any

from partita.models.document import validate
from partita.models.problem import Problem

HIDDEN, SEQUENCE, VOCABULARY = 8192, 2048, 51200
FLOPS, EFFICIENCY = 312e12, 0.5
"""Of a device in 16-bit arithmetic, and the part of it that is reached."""
BUS = 250e9
"""Bytes per second of an all-reduce inside a node."""
TENSOR = (1, 2, 4, 8)
BACKWARD, SHRINKING = 2.0, 0.97
"""Backward time per forward time; efficiency of matrices half as wide."""


def equal_blocks(num_blocks: int, num_nodes: int, batch: int, seconds: float) -> Problem:
    """Give equal transformer blocks with an embedding and a head on nodes of eight devices.

    With s tokens, h hidden and t tensor-parallel devices: a block takes 24 s h^2 + 4 s^2 h operations in the forward
    pass, keeps 34 s h / t bytes (sequence parallelism) and reduces two arrays of s h elements in either pass.

    Parameters
    ----------
    num_blocks, num_nodes
        Of the model and the cluster.
    batch
        Sequences of an iteration.
    seconds
        The time limit.
    """
    arrays = SEQUENCE * HIDDEN * 2
    block = SEQUENCE * HIDDEN * (24 * HIDDEN + 4 * SEQUENCE)
    layers = [
        _layer("embedding", 0.05 * block, VOCABULARY * HIDDEN, arrays, 0),
        *(_layer(f"block{number}", block, 12 * HIDDEN**2, 17 * arrays, 2) for number in range(num_blocks)),
        _layer("head", 2 * SEQUENCE * HIDDEN * VOCABULARY, VOCABULARY * HIDDEN, 4 * SEQUENCE * VOCABULARY, 1),
    ]
    node = {
        "name": "node",
        "replicas": num_nodes,
        "device": "gpu",
        "count": 8,
        "fabric": {"bandwidth_bytes_per_s": BUS, "latency_s": 5e-6},
        "uplink": {"bandwidth_bytes_per_s": 25e9, "latency_s": 5e-6},
    }
    return validate(
        Problem,
        {
            "model": {"name": f"{num_blocks} equal blocks", "layers": layers},
            "cluster": {"devices": {"gpu": {"memory_bytes": "80GiB", "reserve_bytes": "4GiB"}}, "nodes": [node]},
            "training": {
                "schedule": "1f1b",
                "tensor_parallel": list(TENSOR),
                "data_parallel": [2**power for power in range(10)],
                "global_batch_size": batch,
                "sequence_length": SEQUENCE,
                "shard_optimizer": True,
            },
            "search": {"candidates": 1, "time_limit_s": seconds},
        },
    )


def _layer(name: str, operations: float, parameters: int, kept: float, reductions: int) -> dict[str, Any]:
    """Give a layer with its costs by tensor-parallel degree, for one sequence."""
    costs = {}
    for tensor in TENSOR:
        efficiency = EFFICIENCY * SHRINKING ** (tensor.bit_length() - 1)
        seconds = operations / tensor / (FLOPS * efficiency)
        reducing = reductions * 2 * (tensor - 1) / tensor * SEQUENCE * HIDDEN * 2 / BUS
        costs[tensor] = {
            "forward_s": seconds + reducing,
            "backward_s": BACKWARD * seconds + reducing,
            "weight_bytes": 2 * parameters // tensor,
            "activation_bytes": int(kept / tensor),
        }
    options = [{"tensor_parallel": tensor} | costs[tensor] for tensor in TENSOR[1:]]
    return {"name": name, **costs[1], "output_bytes": 2 * SEQUENCE * HIDDEN, "options": options}
