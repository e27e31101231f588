"""Tests of the front of two metrics, against all plans of random problems."""

from random import Random
from typing import Any

import pytest

from oracle.comparison import check_candidate
from oracle.search import every_plan, pareto_front
from oracle.small import small_problem
from partita.models.answer import Answer
from partita.models.errors import InvalidInput, NotSupportedYet
from partita.models.front import MINIMIZED, Front
from partita.models.objective import FIELDS
from partita.models.problem import Problem
from partita.solver.deadline import Deadline
from partita.solver.frontier import FrontProgress, frontier
from partita.solver.session import Session
from strategies import read, seeded_problem

COUNTED = ("iteration_time_s", "bottleneck_time_s", "peak_memory_bytes", "num_devices", "inter_node_bytes")
MANY: Any = ("iteration_time_s", "peak_memory_bytes")


def problem_of(seed: int) -> Problem:
    """Give the seed's problem with time enough to prove everything."""
    return read(seeded_problem(seed) | {"search": {"time_limit_s": 120.0, "workers": 1}})


def stairs() -> Problem:
    """Give a problem whose front has many points: what is even in time keeps most microbatches on the first stages."""
    cost = {"forward_s": 1.0, "backward_s": 2.0, "activation_bytes": 1000}
    layers = {f"layer{n}": {**cost, "weight_bytes": 100 + 7 * n} for n in range(16)}
    return small_problem(layers, devices=4, num_stages=4, schedule="1f1b", num_microbatches=8)


def minimized(front: Front) -> list[tuple[float, ...]]:
    """Give what is minimized for the metrics of a front, of every point."""
    fields = [FIELDS[MINIMIZED[metric]] for metric in front.metrics]
    return [tuple(float(getattr(point.plan.metrics, field)) for field in fields) for point in front.points]


@pytest.mark.parametrize("seed", range(100))
def test_the_front_is_what_all_plans_have(seed: int) -> None:
    """Tests every point, its order and its proof, for two metrics drawn at random."""
    random, problem = Random(seed), problem_of(seed)
    first, second = random.sample(COUNTED, 2)
    expected = pareto_front(every_plan(problem), (first, second))
    rates = {"iteration_time_s": "tokens_per_second", "bottleneck_time_s": "microbatches_per_second"}
    if random.random() < 0.3:
        first = rates.get(first, first)
    found = frontier(problem, (first, second), max(2, len(expected)))  # type: ignore[arg-type]
    assert found.status == ("complete" if expected else "infeasible")
    assert (found.infeasibility is None) == bool(expected)
    assert [point.plan.rank for point in found.points] == list(range(1, len(expected) + 1))
    for point, values, wanted in zip(found.points, minimized(found), expected, strict=True):
        check_candidate(problem, point.plan)
        assert values == pytest.approx(wanted, rel=1e-9, abs=0)
        assert point.bounds == point.values
        assert point.values == tuple(getattr(point.plan.metrics, metric) for metric in found.metrics)


def test_fewer_points_than_there_are() -> None:
    """Tests that a sample holds the ends and points of the front, and says where others are."""
    problem = stairs()
    whole = frontier(problem, MANY, 100)
    front = minimized(whole)
    assert whole.status == "complete" and not whole.unexplored
    assert len(front) >= 6
    sample = frontier(problem, MANY, 4)
    found = minimized(sample)
    assert sample.status == "sample"
    assert len(found) == 4
    assert set(found) <= set(front)
    assert (found[0], found[-1]) == (front[0], front[-1])
    for point in set(front) - set(found):
        assert any(
            region.least is not None and region.most is not None and region.least <= point[1] <= region.most
            for region in sample.unexplored
        )


def test_as_many_points_as_there_are_is_complete() -> None:
    """Tests that the number asked for may be met exactly, and that repeating gives the same."""
    problem = stairs()
    number = len(frontier(problem, MANY, 100).points)
    first, second = (frontier(problem, MANY, number) for _ in range(2))
    assert first.status == "complete"
    assert first.model_copy(update={"solver": None}) == second.model_copy(update={"solver": None})


@pytest.mark.parametrize(("searches", "status"), [(0, "no_solution"), (1, "partial"), (3, "partial")])
def test_what_is_proven_when_time_ends(monkeypatch: pytest.MonkeyPatch, searches: int, status: str) -> None:
    """Tests that points proven so far are given, with where the others are, and nothing that is not proven."""
    whole = minimized(frontier(stairs(), MANY, 100))
    done = iter(range(searches))
    solve = Session.answer

    def until_time_ends(self: Session, deadline: Deadline) -> Answer:
        answer = solve(self, deadline)
        return answer if next(done, None) is not None else answer.model_copy(update={"status": "feasible"})

    monkeypatch.setattr(Session, "answer", until_time_ends)
    front = frontier(stairs(), MANY, 5)
    found = minimized(front)
    assert front.status == status
    assert len(found) == searches
    assert set(found) <= set(whole)
    for point in set(whole) - set(found):
        inside = [
            (each.least is None or each.least <= point[1]) and (each.most is None or point[1] <= each.most)
            for each in front.unexplored
        ]
        assert any(inside), point


def test_progress_is_told() -> None:
    """Tests that every point is told when it is found."""
    told: list[FrontProgress] = []
    front = frontier(stairs(), MANY, 3, on_point=told.append)
    assert [each.found for each in told] == list(range(1, len(front.points) + 1))


def test_metrics_that_order_plans_alike() -> None:
    """Tests that a metric is refused beside itself, and beside the rate that belongs to it."""
    for second in ("iteration_time_s", "tokens_per_second"):
        with pytest.raises(InvalidInput, match="give another one") as refusal:
            frontier(stairs(), ("iteration_time_s", second))  # type: ignore[arg-type]
        assert [fault.pointer for fault in refusal.value.faults] == ["/metrics/1"]


def test_highs_cannot_tell_bytes_apart() -> None:
    """Tests that a front is refused where the solver's resolution would leave out points."""
    problem = small_problem("abc", search={"solver": "highs"})
    with pytest.raises(NotSupportedYet, match="/search/solver"):
        frontier(problem)


def test_batches_are_compared_by_throughput_alone() -> None:
    """Iterations of 2 and of 8 microbatches have no times to compare; tokens per second and memory can be."""
    layers = {name: {"forward_s": 1.0, "backward_s": 2.0, "activation_bytes": 10} for name in "abcd"}
    problem = small_problem(
        layers, num_stages=2, schedule="gpipe", num_microbatches=[2, 8], objective="tokens_per_second"
    )
    with pytest.raises(InvalidInput, match="iterations of 2 to 8 samples") as raised:
        frontier(problem, ("peak_memory_bytes", "iteration_time_s"))
    assert [fault.pointer for fault in raised.value.faults] == ["/metrics/1"]
    front = frontier(problem, ("tokens_per_second", "peak_memory_bytes"))
    assert front.status == "complete"
    assert [point.values for point in front.points] == [(8 / 54, 160.0), (2 / 18, 40.0)]


def test_microbatches_of_other_sizes_have_no_common_bottleneck() -> None:
    """A microbatch of one replica and one of two are not compared by how long either keeps a device busy."""
    layers = {name: {"forward_s": 1.0, "backward_s": 2.0} for name in "abcd"}
    degrees: Any = {"schedule": "gpipe", "data_parallel": [1, 2], "global_batch_size": 8, "devices": 4}
    with pytest.raises(InvalidInput, match="microbatches of 1 to 2 samples") as raised:
        frontier(small_problem(layers, num_microbatches=None, **degrees), ("bottleneck_time_s", "num_devices"))
    assert [fault.pointer for fault in raised.value.faults] == ["/metrics/0"]
    with pytest.raises(InvalidInput, match="microbatches of 1 to 2 samples"):
        small_problem(layers, num_microbatches=None, objective="bottleneck_time", **degrees)
