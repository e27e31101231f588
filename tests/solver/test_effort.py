"""Tests what is said where a plan has too many microbatches to be simulated in its time."""

import pytest

from oracle.small import small_problem
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.effort import affordable, graph_seconds, unaffordable
from partita.solver.instance import build_instance
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan


def many(num_microbatches: int, seconds: float, devices: int = 2) -> Problem:
    """Give a chain of a layer per device."""
    names = {f"layer{number}": {"forward_s": 1.0, "backward_s": 1.0} for number in range(devices)}
    return small_problem(
        names,
        devices=devices,
        num_stages=devices,
        num_microbatches=num_microbatches,
        schedule="1f1b",
        search={"time_limit_s": seconds},
    )


def test_a_given_plan_is_refused_and_a_number_of_stages_left_out() -> None:
    """Tests that evaluate does not speak of leaving out, and that plan goes on without."""
    problem = many(65536, 0.5)
    with pytest.raises(InvalidInput) as caught:
        evaluate_plan(problem, validate(GivenPlan, {"stage_sizes": [1, 1]}))
    (fault,) = caught.value.faults
    reason = "65536 microbatches on 2 stages are too much to simulate within 0.5 s"
    assert fault.pointer == "/training/num_microbatches"
    assert fault.value == "65536"
    assert fault.detail.startswith(f"{reason}; raise search.time_limit_s to ")
    (warning,) = [each for each in plan_problem(problem).warnings if "simulate" in each]
    assert warning.startswith(f"{reason}: left out; raise search.time_limit_s to ")


@pytest.mark.parametrize("num_microbatches", [1000, 5000, 30_000, 65_536])
def test_the_time_limit_named_is_enough(num_microbatches: int) -> None:
    """Tests that it is rounded up, to two digits."""
    instance = build_instance(many(num_microbatches, 1.0))
    needed = 2 * graph_seconds(instance, 2)
    text = unaffordable(instance, 2, needed / 2)
    assert text is not None
    named = float(text.rpartition(" to ")[2].partition(" ")[0])
    assert needed <= named <= 1.11 * needed
    assert affordable(instance, [2], named) == ([2], None)
    assert unaffordable(instance, 2, named) is None


def test_no_time_is_enough_for_a_graph_that_is_too_large() -> None:
    """Tests that fewer microbatches are advised where memory would not suffice."""
    instance = build_instance(many(65_536, 1.0, devices=64))
    assert unaffordable(instance, 64, 86_400.0) == (
        "65536 microbatches on 64 stages are too much to simulate within 86400 s; "
        "give fewer microbatches: the steady state of fewer is the same"
    )
    left_out = affordable(instance, [1, 63, 64], 86_400.0)
    assert left_out[0] == [1]
    assert left_out[1] is not None and "on 63 to 64 stages" in left_out[1]
