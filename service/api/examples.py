"""Problems that work as they stand, for the documentation of the service."""

from typing import Any

CHAIN: dict[str, Any] = {
    "model": {
        "name": "chain of six layers",
        "layers": [
            {"name": "embed", "forward_s": 0.004, "backward_s": 0.008, "weight_bytes": "600MB", "output_bytes": "32MB"},
            *(
                {
                    "name": f"block.{number}",
                    "forward_s": 0.010,
                    "backward_s": 0.020,
                    "weight_bytes": "400MB",
                    "activation_bytes": "500MB",
                    "output_bytes": "32MB",
                }
                for number in range(4)
            ),
            {"name": "head", "forward_s": 0.006, "backward_s": 0.012, "weight_bytes": "600MB"},
        ],
    },
    "cluster": {
        "devices": {"a100": {"memory_bytes": "80GB", "reserve_bytes": "2GB"}},
        "nodes": [
            {
                "name": "node0",
                "device": "a100",
                "count": 4,
                "fabric": {"bandwidth_bytes_per_s": 300e9, "latency_s": 3e-6},
            }
        ],
    },
    "training": {"schedule": "1f1b", "num_stages": 3, "num_microbatches": 8, "sequence_length": 2048},
    "search": {"candidates": 3, "time_limit_s": 5},
}
"""A chain on one node, trained with 1F1B."""

GRAPH: dict[str, Any] = {
    "model": {
        "name": "graph with a skip and a tied head",
        "layers": [
            {"name": "embed", "forward_s": 0.002, "backward_s": 0.004},
            {"name": "encode", "forward_s": 0.012, "backward_s": 0.025, "weight_bytes": "800MB"},
            {"name": "middle", "forward_s": 0.009, "backward_s": 0.018, "weight_bytes": "900MB"},
            {"name": "decode", "forward_s": 0.011, "backward_s": 0.022, "weight_bytes": "800MB"},
            {"name": "head", "forward_s": 0.003, "backward_s": 0.006},
        ],
        "tensors": [
            {"name": "words", "producer": "embed", "consumers": ["encode"], "bytes": "16MB"},
            {"name": "skip", "producer": "encode", "consumers": ["middle", "decode"], "bytes": "64MB"},
            {"name": "code", "producer": "middle", "consumers": ["decode"], "bytes": "8MB"},
            {"name": "text", "producer": "decode", "consumers": ["head"], "bytes": "16MB"},
        ],
        "weights": [{"name": "vocabulary", "bytes": "500MB", "layers": ["embed", "head"]}],
    },
    "cluster": {
        "devices": {"h100": {"memory_bytes": "80GB"}},
        "nodes": [
            {
                "name": "node",
                "replicas": 2,
                "device": "h100",
                "count": 2,
                "fabric": {"bandwidth_bytes_per_s": 450e9, "latency_s": 3e-6},
                "uplink": {"bandwidth_bytes_per_s": 25e9, "latency_s": 5e-6},
            }
        ],
    },
    "training": {"schedule": "1f1b", "num_stages": 3, "num_microbatches": 16},
    "search": {"candidates": 2, "time_limit_s": 5},
}
"""Layers that form a graph, on two nodes with a slow link between them."""

COMPARISON: dict[str, Any] = {
    **CHAIN,
    "model": {
        "name": "chain of eight layers under several schedules",
        "layers": [
            {
                "name": f"block.{number}",
                "forward_s": 0.010,
                "backward_s": 0.019,
                "weight_gradient_s": 0.009,
                "weight_bytes": "400MB",
                "activation_bytes": "500MB",
                "weight_gradient_bytes": "300MB",
                "output_bytes": "32MB",
            }
            for number in range(8)
        ],
    },
    "training": {
        "schedule": ["1f1b", "zb_h1", {"kind": "interleaved_1f1b", "chunks_per_rank": 2}, "zb_v"],
        "num_microbatches": 8,
        "sequence_length": 2048,
    },
}
"""A chain on one node under each of four schedules, the number of stages left open."""

TOO_LARGE: dict[str, Any] = {
    "model": {"name": "one layer too large", "layers": [{"name": "only", "forward_s": 1.0, "weight_bytes": "100GB"}]},
    "cluster": {
        "devices": {"a100": {"memory_bytes": "80GB"}},
        "nodes": [{"name": "node0", "device": "a100", "count": 1}],
    },
    "training": {"schedule": "forward_only", "num_stages": 1, "num_microbatches": 1},
}
"""A problem without a plan: the answer says what is short by how much."""

REPLAN: dict[str, Any] = {
    **CHAIN,
    "search": {"candidates": 2, "time_limit_s": 5, "keep": {"stage_sizes": [3, 1, 2]}, "keep_if_within": 0.1},
}
"""The chain with a plan in use, which a better plan replaces only where it is better by 10 %."""

CONFLICT: dict[str, Any] = CHAIN | {
    "limits": {"peak_memory_bytes": "16GB"},
    "constraints": {"pins": {"block.1": 0}},
}
"""A limit and a pin that could be kept one by one: the answer says so, and by how much to raise the limit."""

RECOMPUTE: dict[str, Any] = CHAIN | {
    "model": {
        "name": "chain of six blocks, each measured in three ways",
        "layers": [
            {
                "name": f"block.{number}",
                "forward_s": 0.010,
                "backward_s": 0.020,
                "weight_bytes": "400MB",
                "activation_bytes": "5GB",
                "output_bytes": "32MB",
                "options": [
                    {"recompute": "full", "backward_s": 0.030, "activation_bytes": "32MB"},
                    {"recompute": "selective", "backward_s": 0.022, "activation_bytes": "3GB"},
                ],
            }
            for number in range(6)
        ],
    },
    "limits": {"peak_memory_bytes": "32GB"},
    "constraints": {"recompute": "choose"},
}
"""A chain in which each layer is recomputed by one of two options or not at all, so that memory suffices."""

DEGREES: dict[str, Any] = CHAIN | {
    "model": {
        "name": "chain of four blocks at two degrees of tensor parallelism",
        "layers": [
            {
                "name": f"block.{number}",
                "forward_s": 0.020,
                "backward_s": 0.040,
                "weight_bytes": "2GB",
                "activation_bytes": "3GB",
                "output_bytes": "32MB",
                "options": [
                    {
                        "tensor_parallel": 2,
                        "forward_s": 0.012,
                        "backward_s": 0.023,
                        "weight_bytes": "1GB",
                        "activation_bytes": "1500MB",
                    }
                ],
            }
            for number in range(4)
        ],
    },
    "training": {
        "schedule": "1f1b",
        "num_stages": [1, 2, 4],
        "tensor_parallel": [1, 2],
        "data_parallel": [1, 2, 4],
        "microbatch_size": [1, 2],
        "global_batch_size": 32,
        "sequence_length": 2048,
    },
}
"""Lists of degrees and of microbatch sizes, of which those with a global batch of 32 samples are compared."""

SCENARIOS: dict[str, Any] = CHAIN | {
    "model": {
        "name": "chain of six blocks with short and long sequences",
        "layers": [
            {
                "name": f"block.{number}",
                "forward_s": 0.010,
                "backward_s": 0.020,
                "weight_bytes": "400MB",
                "activation_bytes": "1GB",
                "output_bytes": "16MB",
                "options": [
                    {
                        "scenario": "long",
                        "forward_s": 0.030 + 0.005 * number,
                        "backward_s": 0.060 + 0.010 * number,
                        "activation_bytes": "4GB",
                    }
                ],
            }
            for number in range(6)
        ],
    },
    "scenarios": [
        {"name": "short", "share": 0.75, "sequence_length": 1024},
        {"name": "long", "share": 0.25, "sequence_length": 4096},
    ],
}
"""A chain whose iterations are of one of two kinds: the mean time counts, and memory must suffice for both."""

PLANS: dict[str, dict[str, Any]] = {
    "chain": {"summary": "A chain of six layers on three of four devices", "value": CHAIN},
    "graph": {"summary": "A graph with a skip and a tied head on two nodes", "value": GRAPH},
    "schedules": {"summary": "Four schedules compared, best first", "value": COMPARISON},
    "replan": {"summary": "A plan in use, kept unless the best is better by 10 %", "value": REPLAN},
    "recompute": {"summary": "Recompute chosen for every layer", "value": RECOMPUTE},
    "degrees": {"summary": "Parallel degrees and microbatch size chosen for a global batch", "value": DEGREES},
    "scenarios": {"summary": "Short and long sequences, by their shares of the iterations", "value": SCENARIOS},
    "lexicographic": {
        "summary": "The fewest devices, then the shortest iteration with them",
        "value": {
            **CHAIN,
            "training": {**CHAIN["training"], "num_stages": None},
            "objective": ["num_devices", "iteration_time"],
            "limits": {"peak_memory_bytes": "16GB"},
        },
    },
    "stored": {
        "summary": "A profile and a cluster that are stored; store those of the examples first",
        "value": {**CHAIN, "model": {"ref": "chain"}, "cluster": {"ref": "chain"}},
    },
    "too_large": {"summary": "No plan: the answer is 'infeasible' and says why", "value": TOO_LARGE},
    "conflict": {
        "summary": "No plan: a limit and a pin that cannot hold together, and what would help",
        "value": CONFLICT,
    },
}
"""Bodies of POST /v1/plans."""

EVALUATIONS: dict[str, dict[str, Any]] = {
    "sizes": {
        "summary": "A plan by the number of layers of each stage, 8 % from the best one",
        "value": {"problem": CHAIN, "plan": {"stage_sizes": [3, 1, 2]}},
    },
    "stages": {
        "summary": "A plan by its layers and devices, and the exchange that improves it most",
        "value": {
            "problem": GRAPH,
            "plan": {
                "stages": [
                    {"layers": ["embed", "encode"], "devices": ["node0:0"]},
                    {"layers": ["middle"], "devices": ["node0:1"]},
                    {"layers": ["decode", "head"], "devices": ["node1:0"]},
                ]
            },
        },
    },
    "megatron": {
        "summary": "A plan as Megatron's --pipeline-model-parallel-layout has it, without a search for the best one",
        "value": {"problem": CHAIN, "plan": {"megatron_layout": "Et|tt|tL"}, "solve": False},
    },
}
"""Bodies of POST /v1/evaluations."""

DOCUMENTS: dict[str, dict[str, Any]] = {"profile": CHAIN["model"], "cluster": CHAIN["cluster"]}
"""What is stored, by its kind."""

BATCHES: dict[str, dict[str, Any]] = {
    "variants": {
        "summary": "A chain with other numbers of stages and microbatches",
        "value": {
            "base": CHAIN,
            "variants": [
                {"name": "two stages", "patch": {"training": {"num_stages": 2}}},
                {"name": "four stages", "patch": {"training": {"num_stages": 4}}},
                {"name": "more microbatches", "patch": {"training": {"num_microbatches": 32}}},
            ],
        },
    },
    "problems": {"summary": "Two problems as they are", "value": {"problems": [CHAIN, GRAPH]}},
}
"""Bodies of POST /v1/batches."""

FRONTIERS: dict[str, dict[str, Any]] = {
    "time_and_memory": {
        "summary": "Iteration time against peak memory",
        "value": {"problem": CHAIN, "metrics": ["iteration_time_s", "peak_memory_bytes"], "points": 10},
    },
}
"""Bodies of POST /v1/frontiers."""
