"""Tests that no plan exceeds what is said to be the most, or falls below what is said to be the least."""

from itertools import product
from random import Random

import numpy as np
import pytest

from oracle.mixed import mixed_problem
from oracle.small import optimal, small_problem
from partita.solver.bounds import least_metric
from partita.solver.local_search import stages_of
from partita.solver.plans import Plan
from partita.solver.targets import counted
from partita.solver.upper_bounds import longest_busy, longest_time, most_traffic
from partita.solver.variants import Variant, make_variants
from strategies import read, seeded_problem


def random_plans(variant: Variant, random: Random, number: int) -> list[Plan]:
    """Give plans of intervals on random places that have room for their ranks."""
    judge, topology, plans = variant.judge, variant.instance.topology, []
    places = np.repeat(np.arange(len(topology.slots)), topology.slots).tolist()
    for stages in judge.possible_counts(variant.stage_counts):
        for _ in range(number):
            size = len(judge.groups)
            cuts = np.array([0, *sorted(random.sample(range(1, size), stages - 1)), size])
            location = np.array(random.sample(places, judge.instance.num_ranks(stages)))
            plans.append(Plan(stages_of(cuts), location))
    return plans


@pytest.mark.parametrize(("family", "seed"), [*product(["seeded", "mixed"], range(60))])
def test_no_plan_exceeds_them(family: str, seed: int) -> None:
    """Tests random plans against the most and the least of any plan."""
    random = Random(seed)
    problem = read(seeded_problem(seed)) if family == "seeded" else mixed_problem(seed)
    for variant in make_variants(problem):
        instance, figures = variant.instance, variant.judge.figures
        for plan in random_plans(variant, random, 3):
            measures = variant.judge.measure(plan)
            assert measures.iteration <= longest_time(instance, figures, plan.num_stages)
            assert measures.bottleneck <= longest_busy(instance, figures, plan.num_stages)
            assert measures.inter_node_bytes <= most_traffic(instance, plan.num_stages)
            for metric, value in counted(measures).items():
                assert least_metric(variant.judge, plan.num_stages, metric) <= value


def test_they_are_met_where_all_is_slow() -> None:
    """Tests a plan by hand: two layers on two nodes and one microbatch take all that there is, one after the other."""
    link = {"bandwidth_bytes_per_s": 1e3, "latency_s": 0.5}
    nodes = [{"name": name, "device": "gpu", "count": 1, "uplink": link} for name in "xy"]
    layers = {"a": {"forward_s": 1.0, "backward_s": 2.0, "output_bytes": 1000}, "b": {"forward_s": 3.0}}
    (variant,) = make_variants(
        small_problem(layers, nodes=nodes, schedule="1f1b", num_stages=2, num_microbatches=1, optimizer="none")
    )
    instance, figures = variant.instance, variant.judge.figures
    measures = variant.judge.measure(random_plans(variant, Random(0), 1)[0])
    assert figures.seconds(measures.iteration) == pytest.approx(10.0)  # 6 s of computing, 1 + 1 s in either direction
    assert most_traffic(instance, 2) == measures.inter_node_bytes == 2000
    assert longest_time(instance, figures, 2) == pytest.approx(measures.iteration + figures.time(1.0 * 2), rel=1e-6)


def test_an_arbitrary_sum_is_proven() -> None:
    """Tests that weights of many digits are added to within what is called optimal, although links are slow.

    With the bounds of a whole iteration for a microbatch, and of every tensor across every boundary, this was
    only told apart to within 1e-5, and the best plan was called feasible.
    """
    link = {"bandwidth_bytes_per_s": 1e5, "latency_s": 1e-4}
    nodes = [{"name": f"n{i}", "device": "gpu", "count": 2, "fabric": link, "uplink": link} for i in range(4)]
    layers = {
        f"l{i}": {"forward_s": 1e-4 * (3 + i % 5), "backward_s": 2e-4 * (3 + i % 4), "weight_bytes": 50_000 + 13 * i,
                  "activation_bytes": 7_000, "output_bytes": 1_000 + 37 * i}
        for i in range(16)
    }  # fmt: skip
    weights = {
        "iteration_time_s": 0.7234987123, "bottleneck_time_s": 31.41592653, "peak_memory_bytes": 1.98237e-7,
        "inter_node_bytes": 3.1830988e-8,
    }  # fmt: skip
    problem = small_problem(
        layers, nodes=nodes, memory=10**9, schedule="1f1b", num_stages=8, num_microbatches=64, objective=weights,
        search={"candidates": 1, "time_limit_s": 60},
    )  # fmt: skip
    answer = optimal(problem)
    assert answer.relative_gap == 0.0
    assert not any("apart" in warning for warning in answer.warnings)
