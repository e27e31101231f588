"""Tests that first plans are good where latencies dominate, and that the bound by arithmetic counts them."""

import numpy as np
import pytest

from oracle.small import small_problem
from partita.models.problem import Problem
from partita.solver.bounds import least_metric
from partita.solver.planner import plan_problem
from partita.solver.progress import Progress
from partita.solver.variants import make_variants
from strategies import Json

FABRIC = {"bandwidth_bytes_per_s": 1e11, "latency_s": 1e-6}
LAYERS: dict[str, Json] = {
    f"l{i}": {"forward_s": 1e-3 * (3 + i % 5), "backward_s": 2e-3 * (3 + i % 4), "output_bytes": 1000 + 37 * i}
    for i in range(20)
}


def far_apart(latency_s: float, num_stages: int | list[int] | None) -> Problem:
    """Give a chain on six nodes of one device, and a last one of four, with uplinks that take long to answer."""
    uplink = {"bandwidth_bytes_per_s": 1e9, "latency_s": latency_s}
    nodes = [{"name": f"s{i}", "device": "gpu", "count": 1, "uplink": uplink} for i in range(6)]
    nodes.append({"name": "big", "device": "gpu", "count": 4, "fabric": FABRIC, "uplink": uplink})
    return small_problem(
        LAYERS, nodes=nodes, schedule="1f1b", num_stages=num_stages, num_microbatches=16, search={"candidates": 1}
    )


@pytest.mark.parametrize("num_stages", [4, None])
@pytest.mark.parametrize("latency_s", [1.0, 100.0])
def test_the_first_plan_avoids_huge_latencies(latency_s: float, num_stages: int | None) -> None:
    """Tests that the first plan is on the large node, where the best is; it took 40 to 4000 times as long.

    It was placed in the order of the nodes and, with any number of stages, had as many as there are devices.
    """
    seen: list[Progress] = []
    answer = plan_problem(far_apart(latency_s, num_stages), on_progress=seen.append)
    assert answer.status == "optimal"
    best = answer.candidates[0]
    assert {device for stage in best.stages for device in stage.devices} == {f"big:{i}" for i in range(4)}
    assert seen[0].incumbent is not None
    assert seen[0].incumbent <= 1.01 * best.metrics.iteration_time_s


def test_the_bound_counts_latencies_by_hand() -> None:
    """Tests eight stages: four on the large node, each of the others on one of its own, four crossings each way."""
    (variant,) = make_variants(far_apart(3.0, 8))
    work = sum(cost["forward_s"] + cost["backward_s"] for cost in LAYERS.values())
    bound = variant.judge.figures.seconds(least_metric(variant.judge, 8, "iteration_time"))
    assert bound == pytest.approx(work + 2 * (4 * 6.0 + 3 * 1e-6), rel=1e-8)


def test_few_nodes() -> None:
    """Tests the places of ranks: on the node with room for all that answers first, else on the largest ones."""
    fabrics = {"slow": (4, 1e-3), "fast": (4, 1e-6), "large": (6, 1e-4), "one": (1, 0.0)}
    nodes = [
        {"name": name, "device": "gpu", "count": count, "fabric": FABRIC | {"latency_s": latency}, "uplink": FABRIC}
        for name, (count, latency) in fabrics.items()
    ]
    (variant,) = make_variants(small_problem("abcdefghij", nodes=nodes, num_stages=10))
    topology = variant.instance.topology
    names = [location.node for location in topology.locations]

    def placed(num_ranks: int) -> list[str]:
        location = topology.on_few_nodes(num_ranks)
        assert location is not None
        return [names[place] for place in np.unique(location)]

    assert placed(3) == placed(4) == ["fast"]
    assert placed(5) == placed(6) == ["large"]
    assert sorted(placed(10)) == ["fast", "large"]
    assert topology.on_few_nodes(16) is None
