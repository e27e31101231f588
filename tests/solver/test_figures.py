"""Tests that ticks are fine enough and never overflow, on problems of extreme sizes."""

from typing import Any

import numpy as np
import pytest

from oracle.comparison import check_answer, check_candidate
from oracle.search import every_plan
from oracle.small import Json, equal_layers, optimal, session_of, small_problem
from partita.models.problem import Problem
from partita.solver.figures import ACCURACY, MAX_TICKS, make_figures

SLOW = {"bandwidth_bytes_per_s": 1e3, "latency_s": 0.0}


def nodes(count: int, link: Json) -> list[Json]:
    """Give one node with this fabric."""
    return [{"name": "node0", "device": "gpu", "count": count, "fabric": link}]


def test_ticks_of_a_small_chain() -> None:
    """Tests that layers of 1 s and 3 s are whole ticks within the accuracy, and transfers are rounded to nearest."""
    problem = small_problem({"a": {"forward_s": 1.0, "output_bytes": 1}, "b": {"forward_s": 3.0}})
    (variant,) = session_of(problem).variants
    figures = variant.judge.figures
    assert figures.tick is not None
    assert 0 < figures.tick <= ACCURACY * 4.0
    assert figures.forward.dtype == np.int64
    assert (figures.forward * figures.tick).tolist() == pytest.approx([1.0, 3.0], rel=ACCURACY)
    assert figures.time(1.0) == round(1.0 / figures.tick)
    assert figures.seconds(figures.time(2.0)) == pytest.approx(2.0, rel=ACCURACY)
    exact = make_figures(variant.instance)
    assert (exact.tick, exact.forward.tolist(), exact.time(1.5), exact.seconds(1.5)) == (None, [1.0, 3.0], 1.5, 1.5)


def test_transfers_and_reductions() -> None:
    """Tests 3000 bytes at 1 kB/s: 3 s there, and 2 * 2/3 as long in a ring of three."""
    (variant,) = session_of(small_problem("ab", nodes=nodes(2, SLOW))).variants
    exact = make_figures(variant.instance)
    sizes = np.array([3000, 0])
    path = int(variant.instance.topology.class_of[0, 0])
    assert exact.transfer(sizes, path).tolist() == [3.0, 0.0]
    assert exact.reduction(sizes, 3, path).tolist() == pytest.approx([4.0, 0.0])


def checked(problem: Problem) -> None:
    """Plan a problem, by either solver, and compare with every plan."""
    plans = every_plan(problem)
    for solver, tolerance in (("cp-sat", 1e-9), ("highs", 1e-6)):
        search = problem.search.model_copy(update={"solver": solver})
        each = problem.model_copy(update={"search": search})
        check_answer(each, optimal(each), plans, tolerance)


def test_two_thousand_tensors_of_one_byte() -> None:
    """Tests that the roundings of many small transfers do not add up to a disagreement."""
    tensors = [
        {"name": f"t{number}", "producer": "a", "consumers": ["b" if number % 2 else "c"], "bytes": 1}
        for number in range(2000)
    ]
    link = {"bandwidth_bytes_per_s": 7e9, "latency_s": 0.0}
    layers = equal_layers("abc", forward_s=1.0, backward_s=2.0)
    for communication in ("overlapped", "blocking"):
        checked(
            small_problem(
                layers,
                nodes=nodes(3, link),
                model={"tensors": tensors},
                schedule="1f1b",
                num_microbatches=8,
                communication=communication,
            )
        )


@pytest.mark.parametrize("step_s", [1.0, 3600.0])
def test_layers_much_shorter_than_the_step(step_s: float) -> None:
    """Tests layers of 1 ns before an optimizer step of 1 s or an hour."""
    optimizer = {"gradient_bytes_per_weight_byte": 1.0, "state_bytes_per_weight_byte": 0.0, "step_s": step_s}
    layers = equal_layers("abcd", forward_s=1e-9, backward_s=2e-9)
    problem = small_problem(layers, schedule="1f1b", num_microbatches=4, optimizer=optimizer)
    answer = optimal(problem)
    check_candidate(problem, answer.candidates[0])
    assert answer.candidates[0].metrics.iteration_time_s == pytest.approx(step_s)


@pytest.mark.parametrize("layer_s", [1e-9, 1e-3, 1.0])
def test_a_huge_tied_weight(layer_s: float) -> None:
    """Tests 1 TB tied over a path of 1 kB/s, which takes 30 years and more: both ends share a stage."""
    model = {"weights": [{"name": "w", "bytes": 10**12, "layers": ["a", "d"]}]}
    layers = equal_layers("abcd", forward_s=layer_s, backward_s=layer_s)
    problem = small_problem(
        layers, nodes=nodes(2, SLOW), memory=2**60, model=model, schedule="1f1b", num_microbatches=300
    )
    answer = optimal(problem)
    check_candidate(problem, answer.candidates[0])
    assert len(answer.candidates[0].stages) == 1
    split = small_problem(
        layers, nodes=nodes(2, SLOW), memory=2**60, model=model, schedule="1f1b", num_microbatches=2, num_stages=2
    )
    answer = optimal(split)
    check_candidate(split, answer.candidates[0])
    assert answer.candidates[0].metrics.iteration_time_s >= 1e9


EXTREMES: list[dict[str, Any]] = [
    {"layers": equal_layers("abc", forward_s=1e9, backward_s=1e9), "num_microbatches": 300},
    {"layers": {"a": {"forward_s": 1e-12}, "b": {"forward_s": 1e9}, "c": {"forward_s": 0.0}}, "num_microbatches": 1},
    {"layers": {"a": {"forward_s": 1e-9, "output_bytes": 2**40}, "b": {"forward_s": 1e-9}}, "num_microbatches": 4},
    {"layers": {"a": {"forward_s": 0.0, "output_bytes": 1}, "b": {"forward_s": 0.0}}, "num_microbatches": 4},
    {"layers": equal_layers("abc", forward_s=0.0), "num_microbatches": 2},
]


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("objective", ["iteration_time", "bottleneck_time", "peak_memory"])
@pytest.mark.parametrize("solver", ["cp-sat", "highs"])
def test_nothing_overflows(extreme: dict[str, Any], objective: str, solver: str) -> None:
    """Tests years and picoseconds: every count stays within 64 bits, and the figures are the exact ones."""
    problem = small_problem(
        nodes=nodes(3, SLOW),
        memory=2**60,
        schedule="1f1b",
        objective=objective,
        search={"candidates": 3, "solver": solver},
        **extreme,
    )
    (variant,) = session_of(problem).variants
    figures = variant.judge.figures
    assert figures.tick is not None and figures.tick > 0
    assert 0 <= int(figures.forward.sum()) <= MAX_TICKS
    answer = optimal(problem)
    for candidate in answer.candidates:
        check_candidate(problem, candidate)
