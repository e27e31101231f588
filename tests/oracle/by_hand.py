"""Problems and plans small enough to check by hand."""

from typing import Any

from oracle.facts import read_facts
from oracle.orders import ranks_of_stages
from oracle.pricing import Price, price
from strategies import Json, read

FREE = {"bandwidth_bytes_per_s": 1e18}
SLOW = {"bandwidth_bytes_per_s": 10e3, "latency_s": 0.5}  # 10 kB take 1.5 s


def a_problem(layers: list[Json], nodes: list[Json] | int = 4, model: Json | None = None, **training: Any) -> Json:
    """Make a problem of a few layers on one node or on given ones."""
    if isinstance(nodes, int):
        nodes = [{"name": "node0", "device": "gpu", "count": nodes, "fabric": FREE}]
    named = [{"name": f"l{index}"} | layer for index, layer in enumerate(layers)]
    return {
        "model": {"layers": named} | (model or {}),
        "cluster": {"devices": {"gpu": {"memory_bytes": 10**12}}, "nodes": nodes},
        "training": {"schedule": "1f1b", "num_microbatches": 1, "optimizer": "none"} | training,
    }


def two_nodes(fabric: Json = FREE, uplink: Json = FREE) -> list[Json]:
    """Give two equal nodes of two devices."""
    node = {"device": "gpu", "count": 2, "fabric": fabric, "uplink": uplink}
    return [node | {"name": "a"}, node | {"name": "b"}]


def price_of(problem: Json, sizes: list[int], devices: list[str] | None = None) -> Price:
    """Price the plan of the first layers, the next ones and so on; the devices are those of the ranks."""
    model = read(problem)
    names = [layer.name for layer in model.model.layers]
    starts = [sum(sizes[:stage]) for stage in range(len(sizes))]
    stages = [names[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    rank_of = ranks_of_stages(read_facts(model).orders_for(len(sizes)))
    places = devices or [f"node0:{rank}" for rank in range(len(sizes))]
    return price(model, stages, [[places[rank]] for rank in rank_of])
