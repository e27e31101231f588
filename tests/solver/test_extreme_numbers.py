"""Tests that every number that is accepted can be planned with: each at the ends of its range, alone and together."""

from itertools import product
from math import isfinite
from random import Random
from typing import Any

import pytest

from oracle.small import Json, small_problem
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan

TIMES = [0.0, 1e-15, 1.0, 1e9]
SPEEDS = [1e-6, 1.0, 1e6]
BANDWIDTHS = [1e3, 1e18]
SIZES = [0, 1, 2**30]


def extreme(random: Random) -> Problem:
    """Give a chain of three layers with numbers from the ends of their ranges."""
    draw = random.choice

    def link() -> Json:
        return {"bandwidth_bytes_per_s": draw(BANDWIDTHS), "latency_s": draw(TIMES)}

    layers: dict[str, Json] = {}
    for name in "abc":
        backward = draw(TIMES)
        layers[name] = {"forward_s": draw(TIMES), "backward_s": backward, "weight_gradient_s": draw([0.0, backward])}
        layers[name] |= {"output_bytes": draw(SIZES), "weight_bytes": draw(SIZES), "activation_bytes": draw(SIZES)}
    node = {"name": "n", "device": "gpu", "count": 2, "replicas": 2, "fabric": link(), "uplink": link()}
    limits = {"iteration_time_s": draw(TIMES[1:])} if random.random() < 0.2 else {}
    problem = small_problem(
        layers,
        nodes=[node],
        memory=2**60,
        model={"weights": [{"name": "w", "bytes": draw(SIZES), "layers": ["a", "c"]}]},
        schedule=draw(["1f1b", "gpipe", "forward_only", "zb_h1"]),
        objective=draw(["iteration_time", "tokens_per_second", "bottleneck_time", "peak_memory"]),
        num_microbatches=draw([1, 2, 8]),
        microbatch_size=draw([1, 2**40]),
        sequence_length=draw([1, 2**40]),
        data_parallel=draw([1, 2]),
        communication=draw(["overlapped", "blocking"]),
        optimizer={
            "gradient_bytes_per_weight_byte": draw([0.0, 5e-324, 1e6]),
            "state_bytes_per_weight_byte": draw([0.0, 5e-324, 1e6]),
            "step_s": draw(TIMES),
        },
        limits=limits,
        search={"time_limit_s": 5.0, "candidates": 2},
    )
    device = problem.cluster.devices["gpu"].model_copy(update={"speed": draw(SPEEDS)})
    cluster = problem.cluster.model_copy(update={"devices": {"gpu": device}})
    return problem.model_copy(update={"cluster": cluster})


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_ends_of_all_ranges_together(first: int) -> None:
    """Tests that a plan or a reason comes out, whatever the numbers, and that both can be written and read as JSON."""
    for seed in range(first, first + 20):
        problem = extreme(Random(seed))
        given = validate(GivenPlan, {"stage_sizes": [1, 2]})
        try:
            answers = [plan_problem(problem), evaluate_plan(problem, given)]
        except InvalidInput as error:  # bytes that add up to too many
            assert error.faults[0].pointer == "/model"
            continue
        for answer in answers:
            assert type(answer).model_validate_json(answer.model_dump_json()) == answer


@pytest.mark.parametrize(("time", "speed"), [*product([1e-15, 1e9], SPEEDS)])
def test_rates_of_extreme_times(time: float, speed: float) -> None:
    """Tests that rates are finite, and that the smallest times are counted in ticks."""
    cost: dict[str, Any] = {"forward_s": time}
    problem = small_problem({"a": cost, "b": cost}, num_stages=2, num_microbatches=4)
    device = problem.cluster.devices["gpu"].model_copy(update={"speed": speed})
    cluster = problem.cluster.model_copy(update={"devices": {"gpu": device}})
    (plan, *_) = plan_problem(problem.model_copy(update={"cluster": cluster})).candidates
    assert plan.metrics.iteration_time_s == pytest.approx(5 * time / speed, rel=1e-9, abs=0)
    for rate in (plan.metrics.tokens_per_second, plan.metrics.microbatches_per_second):
        assert rate is not None and isfinite(rate)
    assert plan.metrics.microbatches_per_second == pytest.approx(speed / time)
