"""Small problems for the tests of the service."""

import json
from copy import deepcopy
from typing import Any

CHAIN: dict[str, Any] = {
    "model": {
        "name": "three",
        "layers": [
            {"name": "a", "forward_s": 1.0, "output_bytes": 1000},
            {"name": "b", "forward_s": 2.0, "output_bytes": 1000},
            {"name": "c", "forward_s": 3.0, "weight_bytes": 1000},
        ],
    },
    "cluster": {
        "devices": {"d": {"memory_bytes": "1GB"}},
        "nodes": [{"name": "node0", "device": "d", "count": 2, "fabric": {"bandwidth_bytes_per_s": 1e9}}],
    },
    "training": {"schedule": "forward_only", "num_stages": 2, "num_microbatches": 4},
    "search": {"time_limit_s": 5, "candidates": 2},
}
"""Best with the layers a and b on the first stage and c on the second: 3 s each."""


def chain(**changes: Any) -> dict[str, Any]:
    """Give the chain with some members replaced; ``__`` in a name leads into an object."""
    problem = deepcopy(CHAIN)
    for path, value in changes.items():
        *places, last = path.split("__")
        here = problem
        for place in places:
            here = here[place]
        here[last] = value
    return problem


def too_large() -> dict[str, Any]:
    """Give a problem in which one layer fits nowhere."""
    problem = chain()
    problem["model"]["layers"][2]["weight_bytes"] = "3GB"
    return problem


def as_bytes(value: Any) -> bytes:
    """Write JSON."""
    return json.dumps(value).encode()
