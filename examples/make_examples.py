"""Write the example problems of this folder: ``python examples/make_examples.py``.

Each function builds one problem from measured or published figures and short formulas; README.md of this folder says
which is which. Sources: Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, arXiv
2205.05198; Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, arXiv 2104.04473; Qi et
al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]

HALF = 2
"""Bytes of a number of 16 bits."""
LATENCY_S = 1e-5
"""Assumed for the link inside a single node."""
LINE = 118
"""Longest line of an example."""


def gpt_22b() -> Json:
    """GPT with 22 billion parameters on eight nodes of eight A100, from measured times of one layer."""
    num_blocks, hidden, heads, sequence, vocabulary, batch, degree = 48, 6144, 64, 2048, 51200, 4, 8
    nvlink, memory_rate = 300e9, 2.0e12  # one direction; bytes/s of the A100's own memory
    tokens = sequence * batch
    unit = tokens * hidden  # s b h in the paper's formulas
    scores = 5 * heads * sequence / hidden

    # Table 4, tensor parallelism of 8, microbatch of 4, without sequence parallelism (seconds).
    forward_s, backward_s, backward_full_s, backward_selective_s = 7.7e-3, 11.9e-3, 19.5e-3, 13.2e-3
    kept = round(unit * (10 + 24 / degree + scores / degree))  # Table 2, tensor parallelism
    block = {
        "forward_s": forward_s,
        "backward_s": backward_s,
        "activation_bytes": kept,
        "weight_bytes": 12 * hidden**2 * HALF // degree,
        "output_bytes": unit * HALF // degree,  # each device sends its share, Narayanan 4.1
        "options": [
            {
                "recompute": "full",
                "backward_s": backward_full_s,
                "activation_bytes": 2 * unit,
                "workspace_bytes": kept - 2 * unit,
            },
            {
                "recompute": "selective",
                "backward_s": backward_selective_s,
                "activation_bytes": round(unit * (10 + 24 / degree)),
                "workspace_bytes": round(unit * scores / degree),
            },
        ],
    }
    # The head does its arithmetic at the rate that Table 4 gives for a layer.
    head_share = 2 * unit * vocabulary / (24 * unit * hidden * (1 + sequence / (6 * hidden)))
    passes_s = 3 * unit * HALF / memory_rate
    all_reduce_s = 2 * (degree - 1) / degree * unit * HALF / nvlink
    embedding = {
        "name": "embedding",
        "forward_s": microseconds(passes_s + all_reduce_s),
        "backward_s": microseconds(passes_s),
        "activation_bytes": unit,  # the mask of the dropout
        "weight_bytes": sequence * hidden * HALF,  # positions, the same on every device
        "output_bytes": unit * HALF // degree,
    }
    head = {
        "name": "head",
        "forward_s": microseconds(forward_s * head_share),
        "backward_s": microseconds(backward_s * head_share),
        "activation_bytes": 4 * unit + 4 * tokens * vocabulary // degree,  # inputs of norm and head; logits in 32 bits
    }
    words = {"name": "word_embeddings", "bytes": vocabulary * hidden * HALF // degree, "layers": ["embedding", "head"]}
    return {
        "model": {"name": "gpt-22b", "layers": [embedding, *blocks(num_blocks, block), head], "weights": [words]},
        "cluster": a100_nodes(8, degree, nvlink),
        "training": {
            "schedule": "1f1b",
            "num_stages": 8,
            "num_microbatches": 64,
            "microbatch_size": batch,
            "sequence_length": sequence,
            "tensor_parallel": degree,
            "optimizer": "adam_mixed",
        },
    }


def a100_nodes(replicas: int, count: int, nvlink: float) -> Json:
    """Give nodes of A100 with NVLink inside and one HDR InfiniBand link for every device between them."""
    node = {
        "name": "node",
        "replicas": replicas,
        "device": "a100-80gb",
        "count": count,
        "fabric": {"bandwidth_bytes_per_s": nvlink, "latency_s": 3e-6},
        "uplink": {"bandwidth_bytes_per_s": 25e9, "latency_s": 5e-6},
    }
    return {"devices": {"a100-80gb": {"memory_bytes": "80GB", "reserve_bytes": "8GB"}}, "nodes": [node]}


def heavy_ends() -> Json:
    """Make a small language model with a large vocabulary: an embedding full of bytes, a head full of work."""
    num_blocks, hidden, sequence, vocabulary = 24, 2048, 4096, 256_000
    rate = 35e12  # operations per second that a device is assumed to sustain
    unit = sequence * hidden
    block_s = 24 * unit * hidden * (1 + sequence / (6 * hidden)) / rate
    head_s = 2 * unit * vocabulary / rate
    block = {
        "forward_s": microseconds(block_s),
        "backward_s": microseconds(2 * block_s),
        "activation_bytes": 34 * unit,
        "weight_bytes": 12 * hidden**2 * HALF,
        "output_bytes": unit * HALF,
    }
    embedding = {
        "name": "embedding",
        "forward_s": 1e-4,
        "backward_s": 2e-4,
        "weight_bytes": vocabulary * hidden * HALF,
        "output_bytes": unit * HALF,
    }
    head = {
        "name": "head",
        "forward_s": microseconds(head_s),
        "backward_s": microseconds(2 * head_s),
        "activation_bytes": 4 * unit + 4 * sequence * vocabulary,
        "weight_bytes": vocabulary * hidden * HALF,
    }
    return {
        "model": {"name": "heavy-ends", "layers": [embedding, *blocks(num_blocks, block), head]},
        "cluster": one_node("24gb-card", "24GB", "2GB", count=4, bandwidth=25e9),
        "training": {
            "schedule": "1f1b",
            "num_stages": 4,
            "num_microbatches": 16,
            "microbatch_size": 1,
            "sequence_length": sequence,
        },
    }


def skip_and_tied_head() -> Json:
    """Make a graph in which one tensor skips seven layers and the head uses the embedding's matrix."""
    num_blocks, hidden, sequence, vocabulary, batch = 12, 1024, 1024, 50_257, 8
    rate = 40e12
    unit = batch * sequence * hidden
    block_s = 24 * unit * hidden * (1 + sequence / (6 * hidden)) / rate
    head_s = 2 * unit * vocabulary / rate
    block = {
        "forward_s": microseconds(block_s),
        "backward_s": microseconds(2 * block_s),
        "activation_bytes": 34 * unit,
        "weight_bytes": 12 * hidden**2 * HALF,
    }
    layers: list[Json] = [
        {"name": "embedding", "forward_s": 1e-4, "backward_s": 2e-4},
        *blocks(num_blocks, block),
        {"name": "head", "forward_s": microseconds(head_s), "backward_s": microseconds(2 * head_s)},
    ]
    names = [layer["name"] for layer in layers]
    readers = {name: [after] for name, after in itertools.pairwise(names)}
    readers["block.2"].append("block.9")
    tensors = [
        {
            "name": f"{producer}.out",
            "producer": producer,
            "consumers": consumers,
            "bytes": unit * HALF,
            "shape": [batch, sequence, hidden],
            "dtype": "bfloat16",
        }
        for producer, consumers in readers.items()
    ]
    tied = {"name": "word_embeddings", "bytes": vocabulary * hidden * HALF, "layers": ["embedding", "head"]}
    return {
        "model": {"name": "skip-and-tied-head", "layers": layers, "tensors": tensors, "weights": [tied]},
        "cluster": one_node("16gb-card", "16GB", "1GB", count=4, bandwidth=12e9),
        "training": {
            "schedule": "1f1b",
            "num_stages": 4,
            "num_microbatches": 16,
            "microbatch_size": batch,
            "sequence_length": sequence,
            "routing": "relay",
        },
    }


def two_nodes_slow_link() -> Json:
    """Make a chain whose tensors shrink after the thirteenth of 24 layers, on two nodes with a slow link between."""
    wide, narrow = 96_000_000, 12_000_000
    layers = blocks(
        24, {"forward_s": 3e-3, "backward_s": 6e-3, "activation_bytes": 200_000_000, "weight_bytes": 50_000_000}
    )
    for number, layer in enumerate(layers):
        layer["output_bytes"] = wide if number < 12 else narrow
    del layers[-1]["output_bytes"]
    machines: list[Json] = [
        {
            "name": name,
            "device": "40gb-card",
            "count": 4,
            "fabric": {"bandwidth_bytes_per_s": 100e9, "latency_s": 3e-6},
            "uplink": {"bandwidth_bytes_per_s": 12.5e9, "latency_s": 5e-6},
        }
        for name in ("left", "right")
    ]
    slow = {"between": ["left", "right"], "bandwidth_bytes_per_s": 1.25e9, "latency_s": 5e-5}
    return {
        "model": {"name": "two-nodes-slow-link", "layers": layers},
        "cluster": {"devices": {"40gb-card": {"memory_bytes": "40GB"}}, "nodes": machines, "links": [slow]},
        "training": {"schedule": "1f1b", "num_stages": 8, "num_microbatches": 32, "microbatch_size": 16},
    }


def gpt_schedules() -> Json:
    """GPT with 1.5 billion parameters on eight A100, from measured times of a stage; four schedules to choose from."""
    num_blocks, hidden, heads, sequence, vocabulary, batch = 22, 2304, 24, 1024, 50_304, 6
    memory_rate = 2.0e12  # bytes/s of the A100's own memory
    unit = sequence * batch * hidden
    scores = 5 * heads * sequence / hidden

    # Table 6, 8 stages, 24 microbatches: a stage of three layers, and a transfer (seconds).
    forward_s, input_s, weight_s, transfer_s = 18.522e-3 / 3, 18.086e-3 / 3, 9.337e-3 / 3, 0.601e-3
    block = {
        "forward_s": microseconds(forward_s),
        "backward_s": microseconds(input_s + weight_s),
        "weight_gradient_s": microseconds(weight_s),
        "activation_bytes": round(unit * (34 + scores)),  # table 1, kept until the input gradient is done
        "weight_gradient_bytes": 32 * unit,  # table 1, kept until the weight gradient is done
        "weight_bytes": 12 * hidden**2 * HALF,
        "output_bytes": unit * HALF,
    }
    # The head does its arithmetic, three products of one size, at the rate of a layer's forward pass.
    head_s = forward_s * 2 * unit * vocabulary / (24 * unit * hidden * (1 + sequence / (6 * hidden)))
    passes_s = 3 * unit * HALF / memory_rate
    embedding = {
        "name": "embedding",
        "forward_s": microseconds(passes_s),
        "backward_s": microseconds(passes_s),
        "weight_gradient_s": microseconds(passes_s),  # there is no gradient of words
        "activation_bytes": unit,  # the mask of the dropout
        "weight_bytes": sequence * hidden * HALF,  # positions
        "output_bytes": unit * HALF,
    }
    head = {
        "name": "head",
        "forward_s": microseconds(head_s),
        "backward_s": microseconds(2 * head_s),
        "weight_gradient_s": microseconds(head_s),
        "activation_bytes": 4 * unit + 4 * sequence * batch * vocabulary,  # inputs of norm and head; logits in 32 bits
    }
    words = {"name": "word_embeddings", "bytes": vocabulary * hidden * HALF, "layers": ["embedding", "head"]}
    bandwidth = float(round(unit * HALF / (transfer_s - LATENCY_S), -6))
    cluster = one_node("a100-80gb", "80GB", "8GB", count=8, bandwidth=bandwidth)
    return {
        "model": {"name": "gpt-schedules", "layers": [embedding, *blocks(num_blocks, block), head], "weights": [words]},
        "cluster": cluster,
        "training": {
            "schedule": ["1f1b", "zb_h1", "interleaved_1f1b", "zb_v"],
            "num_microbatches": 24,
            "microbatch_size": batch,
            "sequence_length": sequence,
        },
        "search": {"candidates": 3, "time_limit_s": 60},
    }


EXAMPLES: dict[str, Callable[[], Json]] = {
    "gpt-22b.json": gpt_22b,
    "gpt-schedules.json": gpt_schedules,
    "heavy-ends.json": heavy_ends,
    "skip-and-tied-head.json": skip_and_tied_head,
    "two-nodes-slow-link.json": two_nodes_slow_link,
}


def blocks(count: int, costs: Json) -> list[Json]:
    """Give ``count`` layers of equal costs: ``block.0``, ``block.1`` and so on."""
    return [{"name": f"block.{number}", **costs} for number in range(count)]


def one_node(device: str, memory: str, reserve: str, *, count: int, bandwidth: float) -> Json:
    """Give a cluster of one node; ``bandwidth`` is that of its fabric in bytes per second, one direction."""
    return {
        "devices": {device: {"memory_bytes": memory, "reserve_bytes": reserve}},
        "nodes": [
            {
                "name": "node0",
                "device": device,
                "count": count,
                "fabric": {"bandwidth_bytes_per_s": bandwidth, "latency_s": LATENCY_S},
            }
        ],
    }


def microseconds(seconds: float) -> float:
    """Round derived seconds to what they are worth."""
    return round(seconds, 6)


def render(value: object, indent: int = 0) -> str:
    """Write JSON with every list or object on one line that fits on it."""
    short = json.dumps(value)
    if len(short) + indent <= LINE or not isinstance(value, dict | list):
        return short
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {render(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(pad + item for item in items) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + render(item, indent + 1) for item in value) + "\n" + " " * indent + "]"


def main() -> None:
    """Write every example next to this file."""
    for name, build in EXAMPLES.items():
        Path(__file__).with_name(name).write_text(render(build()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
