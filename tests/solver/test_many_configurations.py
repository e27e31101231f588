"""Tests that many configurations and many scenarios cost little more than what cannot be shared between them."""

from dataclasses import fields

import numpy as np
import pytest

from lines_run import lines_run
from oracle.small import small_problem
from partita.models.problem import Problem
from partita.solver.costs import LayerPlan
from partita.solver.deadline import Deadline
from partita.solver.infeasibility.attempts import UNKNOWN, attempt
from partita.solver.instance import Instance, build_instance
from partita.solver.variants import make_variants
from strategies import Json

LINK = {"bandwidth_bytes_per_s": 1e6, "latency_s": 1e-5}


def many(layers: int, numbers: list[int], scenarios: int = 0, stages: int = 4, **training: Json) -> Problem:
    """Give a chain of different layers with numbers of microbatches to choose from, and scenarios of equal share."""
    costs: dict[str, Json] = {
        f"l{number}": {
            "forward_s": 1e-3 * (3 + number % 5), "backward_s": 2e-3 * (3 + number % 4), "weight_bytes": 1000 + number,
            "activation_bytes": 700, "output_bytes": 1000 + 37 * number,
            "options": [
                {"scenario": f"s{each}", "forward_s": 1e-3 * (3 + (number + each) % 7)} for each in range(scenarios)
            ],
        }
        for number in range(layers)
    }  # fmt: skip
    return small_problem(
        costs, nodes=[{"name": "node", "device": "gpu", "count": 4, "fabric": LINK}], schedule="1f1b",
        num_stages=stages, num_microbatches=numbers, objective="tokens_per_second",
        scenarios=[{"name": f"s{each}", "share": 1 / scenarios} for each in range(scenarios)], **training,
    )  # fmt: skip


def same(one: Instance, other: Instance) -> bool:
    """Tell whether two instances have the same problem and arrays."""
    mine, theirs = (
        [
            *(getattr(each.ways.costs, field.name) for field in fields(each.ways.costs)),
            *each.edges.sizes, each.weights.total, each.buffers.total, each.shared.total,
        ]
        for each in (one, other)
    )  # fmt: skip
    alike = one.problem == other.problem and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
    return alike and len(one.several) == len(other.several) and all(map(same, one.several, other.several))


@pytest.mark.parametrize("scenarios", [0, 1, 3])
def test_shared_arrays_are_those_made_anew(scenarios: int) -> None:
    """Tests the instances of configurations that share their arrays against instances of their own."""
    problem = many(6, [4, 7, 12], scenarios, stages=2, tensor_parallel=[1, 2], shard_optimizer=True)
    variants = make_variants(problem)
    assert len({id(variant.instance.ways) for variant in variants}) == 2 < len(variants)
    for variant in variants:
        assert same(variant.instance, build_instance(problem.with_choice(variant.choice)))


def test_many_numbers_of_microbatches() -> None:
    """Tests that 400 configurations take less than half of what one takes, 400 times; it was all of it."""
    numbers = [*range(1, 401)]
    together, one = many(16, numbers), many(16, [8])
    for problem in (together, one):
        make_variants(problem)  # what is made once
    assert lines_run(lambda: make_variants(together)) < 0.5 * len(numbers) * lines_run(lambda: make_variants(one))


def test_many_scenarios_are_reported_quickly() -> None:
    """Tests that the report of a plan takes few times what it takes to measure it over all scenarios; it was 7 times.

    It measures all scenarios once more, each by itself, and describes the stages of the longest.
    """
    (variant,) = make_variants(many(16, [16], scenarios=100))
    stage = np.repeat(np.arange(4), 4)
    plan, evaluator = LayerPlan(stage, np.zeros(4, dtype=np.int64), np.zeros_like(stage)), variant.evaluator
    evaluator.candidate(plan, 1)  # graphs and figures are made once
    report, measure = lines_run(lambda: evaluator.candidate(plan, 1)), lines_run(lambda: evaluator.measures(plan))
    assert report < 4 * measure


def test_nothing_is_searched_after_the_deadline() -> None:
    """Tests that an attempt whose time is over once it is set up does not begin to search."""
    problem = many(6, [*range(1, 200)], stages=2)
    assert attempt(problem, Deadline.after(1e-3), relative_gap=1.0) is UNKNOWN
