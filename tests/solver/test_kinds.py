"""Tests bounds and first plans where nodes have several kinds of device."""

import pytest

from oracle.mixed import mixed_problem
from oracle.small import equal_layers, small_problem
from partita.models.document import validate
from partita.models.problem import Problem
from partita.solver.bounds import least_metric
from partita.solver.kinds import fast_ranks, orders_of_kinds, slowness
from partita.solver.variants import make_variants


@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 60))])
def test_no_kind_is_slower_than_the_bound_says(seed: int) -> None:
    """Tests that a layer takes at least as many times its least time as its kind of device is slow."""
    (judge,) = [variant.judge for variant in make_variants(mixed_problem(seed))][:1]
    slow, figures = slowness(judge.figures), judge.figures
    by_kind = figures.by_way[:2].sum(axis=0)
    assert (by_kind >= (slow[:, None] * (figures.forward + figures.backward))[:, None] * (1 - 1e-12)).all()
    assert (slow >= 1).all()


def test_a_slow_device_counts_for_less() -> None:
    """Tests the arithmetic by hand: six layers of 1 s on a device and one half as fast take at least 4 s."""
    nodes = [
        {"name": name, "device": "gpu", "count": 1, "uplink": {"bandwidth_bytes_per_s": 1e9}} for name in ("a", "b")
    ]
    json = small_problem(equal_layers("abcdef", forward_s=1.0), nodes=nodes, num_microbatches=8, num_stages=2)
    document = json.model_dump(mode="json", by_alias=True)
    document["cluster"]["nodes"][1]["device"] = "slow"
    document["cluster"]["devices"]["slow"] = {"memory_bytes": 10**12, "speed": 0.5}
    (variant,) = make_variants(validate(Problem, document))
    judge, topology = variant.judge, variant.instance.topology
    assert fast_ranks(topology, judge.figures, 2) == pytest.approx(1.5)
    assert judge.figures.seconds(least_metric(judge, 2, "bottleneck_time")) == pytest.approx(4.0)
    assert [each.tolist() for each in orders_of_kinds(topology, judge.figures, 2)] == [[0, 1], [1, 0]]
    assert [each.tolist() for each in orders_of_kinds(topology, judge.figures, 1)] == [[0]]
