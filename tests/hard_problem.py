"""A problem whose proof takes far longer than any test may run, though plans for it are found at once."""

from random import Random
from typing import Any


def hard_problem(num_layers: int = 66, **search: Any) -> dict[str, Any]:
    """Give a graph of uneven layers on three nodes of two kinds of device, with slow links between the nodes."""
    random = Random(7)
    layers = [
        {
            "name": f"l{index}",
            "forward_s": random.randint(1_000, 9_999) / 1e6,
            "backward_s": random.randint(2_000, 19_999) / 1e6,
            "weight_bytes": random.randint(10**7, 10**9),
            "activation_bytes": random.randint(10**6, 10**8),
        }
        for index in range(num_layers)
    ]
    tensors = [
        {
            "name": f"t{index}",
            "producer": f"l{index}",
            "consumers": sorted({f"l{random.randint(index + 1, min(index + 6, num_layers - 1))}" for _ in range(2)}),
            "bytes": random.randint(10**6, 10**8),
        }
        for index in range(num_layers - 1)
    ]
    link = {"bandwidth_bytes_per_s": 300e9, "latency_s": 3e-6}
    slow = {"bandwidth_bytes_per_s": 10e9, "latency_s": 5e-6}
    kinds = {"fast": {"memory_bytes": "80GB"}, "slow": {"memory_bytes": "40GB", "speed": 0.45}}
    nodes = [
        {"name": name, "device": kind, "count": 4, "fabric": link, "uplink": slow}
        for name, kind in (("n0", "fast"), ("n1", "slow"), ("n2", "fast"))
    ]
    return {
        "model": {"layers": layers, "tensors": tensors},
        "cluster": {"devices": kinds, "nodes": nodes},
        "training": {"schedule": "1f1b", "num_stages": 12, "num_microbatches": 24},
        "search": {"time_limit_s": 60, "candidates": 1, "workers": 1, **search},
    }
