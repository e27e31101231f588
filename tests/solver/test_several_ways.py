"""Tests plans for several kinds of device and with a choice of recompute, by hand."""

from itertools import product

import numpy as np
import pytest

from oracle.small import FREE, equal_layers, optimal, small_problem, stages_of_best
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.arrays import BoolArray, IntArray
from partita.solver.planner import plan_problem
from partita.solver.recompute import cheapest_cover, greedy_cover
from partita.solver.review import evaluate_plan
from strategies import Json

RECOMPUTED: Json = {"recompute": "full", "backward_s": 3.0, "activation_bytes": 1}
KEEPING: Json = {"forward_s": 1.0, "backward_s": 2.0, "activation_bytes": 10, "options": [RECOMPUTED]}


def two_kinds(**changes: object) -> Problem:
    """Give four equal layers for a fast and a slow device."""
    nodes = [{"name": name, "device": "gpu", "count": 1, "fabric": FREE, "uplink": FREE} for name in ("gpu", "slow")]
    problem = small_problem(equal_layers("abcdef", forward_s=1.0, weight_bytes=1), nodes=nodes, num_microbatches=8)
    json = problem.model_dump(mode="json", by_alias=True)
    json["cluster"]["nodes"][1]["device"] = "slow"
    json["cluster"]["devices"]["slow"] = {"memory_bytes": 10**12, "speed": 0.5} | changes
    return validate(Problem, json)


def test_a_slow_device_gets_less() -> None:
    """Tests that layers are shared out by speed, and that the answer says what runs where."""
    answer = optimal(two_kinds())
    stages = answer.candidates[0].stages
    assert {stage.device: len(stage.layers) for stage in stages} == {"gpu": 4, "slow": 2}
    assert [stage.forward_s for stage in stages] == [4.0, 4.0]


def test_a_device_stays_unused_where_that_is_better() -> None:
    """Tests that a device a hundred times slower is left alone."""
    (stage,) = optimal(two_kinds(speed=0.01)).candidates[0].stages
    assert stage.devices == ("gpu:0",)


def test_memory_by_kind() -> None:
    """Tests that a small device holds what it can, and that its reserve counts there only."""
    problem = two_kinds(memory_bytes=3, reserve_bytes=2, speed=1.0)
    stages = {stage.device: stage for stage in optimal(problem).candidates[0].stages}
    assert len(stages["slow"].layers) == 1
    assert (stages["slow"].memory.reserve_bytes, stages["gpu"].memory.reserve_bytes) == (2, 0)
    assert stages["slow"].memory.capacity_bytes == 3


def choosing(recompute: str, memory: int, **training: object) -> Problem:
    """Give four layers that keep 10 bytes of a microbatch, or 1 where they are run again."""
    layers = {name: KEEPING for name in "abcd"}
    constraints = {"recompute": recompute}
    usual: Json = {"schedule": "1f1b", "num_microbatches": 4, "num_stages": 2}
    return small_problem(layers, memory=memory, constraints=constraints, **(usual | training))


def test_only_what_must_be_is_run_again() -> None:
    """Tests that the first stage, which keeps two microbatches, runs one of its layers again to fit."""
    answer = optimal(choosing("choose", 25))
    first, last = answer.candidates[0].stages
    assert stages_of_best(answer) == ["ab", "cd"]
    assert (len(first.recompute), len(last.recompute)) == (1, 0)
    assert first.options == dict.fromkeys(first.recompute, "full")


def test_a_whole_stage_is_run_again() -> None:
    """Tests that a stage has one option for all of its layers where the problem says so."""
    first, last = optimal(choosing("stage", 25)).candidates[0].stages
    assert (len(first.recompute), len(last.recompute)) == (2, 0)


@pytest.mark.parametrize("memory", [7, 22, 25, 45])
def test_choosing_is_never_slower(memory: int) -> None:
    """Tests that a choice is as good as the better of all and none, where these fit."""
    best = optimal(choosing("choose", memory)).candidates[0].metrics.iteration_time_s
    for fixed in ("none", "full"):
        answer = plan_problem(choosing(fixed, memory))
        if answer.candidates:
            assert best <= answer.candidates[0].metrics.iteration_time_s


def test_an_answer_is_priced_again_with_its_options() -> None:
    """Tests that a plan with options, and one without, are priced as they are."""
    problem = choosing("choose", 25)
    best = optimal(problem).candidates[0]
    stages = [{"layers": stage.layers, "options": stage.options} for stage in best.stages]
    again = evaluate_plan(problem, validate(GivenPlan, {"stages": stages})).candidates[0]
    assert again.metrics == best.metrics
    assert evaluate_plan(problem, validate(GivenPlan, {"stage_sizes": [2, 2]})).candidates[0].metrics == best.metrics


def test_an_option_that_a_layer_lacks() -> None:
    """Tests that an unknown option is refused by its place."""
    plan = validate(GivenPlan, {"stages": [{"layers": ["a", "b"], "options": {"a": "half"}}, {"layers": ["c", "d"]}]})
    with pytest.raises(InvalidInput, match=r"/plan/stages/0/options: 'a' has no option 'half'"):
        evaluate_plan(choosing("choose", 25), plan)


@pytest.mark.parametrize("schedule", ["zb_h1", "zb_v"])
@pytest.mark.parametrize("recompute", ["choose", "stage"])
def test_no_choice_where_the_backward_pass_is_split(schedule: str, recompute: str) -> None:
    """Tests that the two are refused together, with the place."""
    with pytest.raises(InvalidInput, match="/constraints/recompute: recompute cannot be chosen where"):
        choosing(recompute, 25, schedule=schedule, num_stages=4)


def every_cover(saved: IntArray, cost: IntArray, possible: BoolArray) -> tuple[IntArray, IntArray]:
    """Give what all choices of options save and cost."""
    ways = np.array(list(product(range(-1, len(saved)), repeat=saved.shape[1])))
    layer = np.arange(saved.shape[1])
    there = ((ways < 0) | possible[ways, layer]).all(axis=1)
    kept = ways[there]
    return (
        np.where(kept < 0, 0, saved[kept, layer]).sum(axis=1),
        np.where(kept < 0, 0, cost[kept, layer]).sum(axis=1),
    )


@pytest.mark.parametrize("seed", range(40))
def test_covers(seed: int) -> None:
    """Tests the knapsack against trying everything, and that the guess saves as much."""
    random = np.random.default_rng(seed)
    saved, cost, possible = (random.integers(0, 9, (2, 5)), random.integers(0, 9, (2, 5)), random.random((2, 5)) < 0.8)
    needed = int(random.integers(1, 30))
    all_saved, all_cost = every_cover(saved, cost, possible)
    most = min(needed, int(all_saved.max()))
    found = []
    for cover in (cheapest_cover, greedy_cover):
        chosen = cover(saved, cost, possible & (saved > 0), needed)
        changed = np.flatnonzero(chosen >= 0)
        assert possible[chosen[changed], changed].all()
        assert saved[chosen[changed], changed].sum() >= most
        found.append(cost[chosen[changed], changed].sum())
    assert found[0] == all_cost[all_saved >= most].min() <= found[1]


@pytest.mark.parametrize("objective", ["iteration_time", "bottleneck_time", "peak_memory"])
def test_a_kind_without_room_for_a_stage(objective: str) -> None:
    """Tests that a node too small for a stage changes nothing, where one place is left and its kind has a reserve."""
    links = {"fabric": FREE, "uplink": FREE}
    nodes = [{"name": "a", "device": "gpu", "count": 4, **links}, {"name": "b", "device": "gpu", "count": 1, **links}]
    layers = equal_layers("abcdefg", forward_s=1.0, weight_bytes=1)
    constraints = {"apart": [["a", "b"]]}
    problem = small_problem(
        layers, nodes=nodes, reserve=5, memory=12, constraints=constraints, objective=objective, tensor_parallel=2,
        num_stages=2, num_microbatches=4,
    )  # fmt: skip
    json = problem.model_dump(mode="json", by_alias=True)
    json["cluster"]["nodes"][1]["device"] = "small"
    json["cluster"]["devices"]["small"] = {"memory_bytes": 10}
    with_it = optimal(validate(Problem, json))
    json["cluster"]["nodes"].pop()
    assert with_it.candidates == optimal(validate(Problem, json)).candidates


def test_memory_first_chooses_as_for_memory_alone() -> None:
    """Tests that a list that begins with memory, and a sum of memory alone, price given stages as memory alone does."""
    peaks = []
    for objective in ("peak_memory", ["peak_memory", "iteration_time"], {"peak_memory_bytes": 1.0}):
        json = choosing("choose", 60).model_dump(mode="json", by_alias=True) | {"objective": objective}
        answer = evaluate_plan(validate(Problem, json), validate(GivenPlan, {"stage_sizes": [2, 2]}))
        peaks.append(answer.candidates[0].metrics.peak_memory_bytes)
    assert peaks == [4, 4, 4]


def test_many_layers_on_a_stage_are_chosen_by_what_they_save() -> None:
    """Tests that for many layers enough is saved, by the cheapest first."""
    saved, cost, possible = np.full((1, 100), 2), np.arange(1.0, 101.0)[None], np.full((1, 100), True)
    for cover in (cheapest_cover, greedy_cover):
        assert cover(saved, cost, possible, 7).tolist() == [0] * 4 + [-1] * 96
        assert cover(saved, cost, possible, 10**6).tolist() == [0] * 100
