"""Tests that the best single move of a given plan is found, measured and put into words."""

from random import Random
from typing import Any

import pytest

from oracle.facts import read_facts
from oracle.neighbors import one_step, other_placements, smallest_steps
from oracle.orders import ranks_of_stages
from oracle.search import Plan, all_priced, keeps_limits, places_of, plan_key
from oracle.small import FREE, Json, edges, equal_layers, small_problem
from partita.models.answer import Answer, Move
from partita.models.document import validate
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.grouping import group_layers
from partita.solver.instance import build_instance
from partita.solver.what_if import evaluate_given
from strategies import first_drawn, read, seeded_problem

SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 400))]
WORSE = {"tokens_per_second": -1.0}


def best_move_of(problem: Problem, plan: Json) -> Move | None:
    """Give the best single move of a plan."""
    answer = evaluate_given(problem, validate(GivenPlan, plan), solve=False)
    assert answer.comparison is not None and answer.comparison.all_moves
    return answer.comparison.move


def given_plan(problem: Problem, plan: Plan) -> Json:
    """Write a plan of the oracle as a user does."""
    facts = read_facts(problem)
    degree = facts.tensor_parallel * facts.data_parallel
    ranks = ranks_of_stages(facts.orders_for(max(plan.partition) + 1))
    stages: list[Any] = []
    for stage in range(max(plan.partition) + 1):
        node, _, first = plan.placement[ranks[stage]].partition(":")
        layers = [name for name, here in zip(facts.names, plan.partition, strict=True) if here == stage]
        devices = [f"{node}:{number}" for number in range(int(first), int(first) + degree)]
        stages.append({"layers": layers, "devices": devices})
    return {"stages": stages}


def priced(seed: int) -> tuple[Problem, list[Plan]] | None:
    """Give the seed's problem with all its plans, if it has any."""
    problem = read(seeded_problem(seed))
    plans = list(all_priced(problem))
    return (problem, plans) if plans else None


@pytest.mark.parametrize("seed", SEEDS)
def test_no_neighbor_is_better(seed: int) -> None:
    """Tests random plans of random problems against all their neighbors, priced by the oracle.

    In a chain the best neighbor is found. In a graph, where boundaries can move in many ways, at least the best of
    those in which one layer moves, and none that is no neighbor.
    """
    problem, plans = first_drawn(seed, priced)
    places, sign = places_of(problem), WORSE.get(str(problem.objective), 1.0)
    plan = Random(seed).choice(plans)
    allowed = {
        plan_key(places, each.partition, each.placement): sign * each.value
        for each in plans
        if keeps_limits(problem, each.price)
    }
    near = {plan_key(places, plan.partition, other) for other in other_placements(problem, plan.placement)}
    small = near | {plan_key(places, other, plan.placement) for other in smallest_steps(problem, plan.partition)}
    large = near | {
        plan_key(places, each.partition, plan.placement) for each in plans if one_step(plan.partition, each.partition)
    }
    move = best_move_of(problem, given_plan(problem, plan))
    limit = float("inf") if not keeps_limits(problem, plan.price) else sign * plan.value * (1 - sign * 1e-9)
    worst = min((allowed[key] for key in small if allowed.get(key, limit) < limit), default=None)
    best = min((allowed[key] for key in large if allowed.get(key, limit) < limit), default=None)
    if group_layers(build_instance(problem)).total_order:
        worst = best
    if move is None:
        assert worst is None
        return
    value = sign * move.objective_value
    assert best is not None and value >= best - 1e-9 * abs(best)
    assert worst is None or value <= worst + 1e-9 * abs(worst)
    assert move.gain == pytest.approx(sign * (plan.value - move.objective_value), rel=1e-6, abs=1e-9 * abs(plan.value))


def test_a_boundary_by_several_layers() -> None:
    """Tests that five layers against one of equal times become three against three, in numbers and words."""
    move = best_move_of(small_problem("abcdef", num_microbatches=2), {"stage_sizes": [5, 1]})
    assert move is not None
    assert (move.kind, move.layers, move.from_stage, move.to_stage) == ("boundary", ("d", "e"), 0, 1)
    assert (move.objective_value, move.gain, move.relative_gain) == (9.0, 2.0, pytest.approx(2 / 11))
    assert move.message == "move 2 layers, 'd' to 'e', from stage 0 to stage 1"
    assert (move.ranks, move.devices) == ((), ())


def test_layers_that_leave_others_on_both_sides() -> None:
    """Tests a graph in which b moves although c, listed after it, stays: b is large, c pinned."""
    layers: dict[str, Json] = {"a": {"forward_s": 1.0}, "b": {"forward_s": 3.0}, "c": {"forward_s": 1.0}}
    layers |= {"d": {"forward_s": 1.0}}
    problem = small_problem(
        layers, model=edges("a>bc", "b>d", "c>d"), constraints={"pins": {"c": 0}}, num_microbatches=8
    )
    move = best_move_of(problem, {"stages": [{"layers": ["a", "b", "c"]}, {"layers": ["d"]}]})
    assert move is not None
    assert (move.layers, move.message) == (("b",), "move 'b' from stage 0 to stage 1")


TWO_NODES = [{"name": name, "device": "gpu", "count": 2, "fabric": FREE, "uplink": FREE} for name in "uv"]
SLOW = {"bandwidth_bytes_per_s": 1e3}


def test_two_ranks_exchange_their_devices() -> None:
    """Tests stages on u, v, u, v: a slow uplink is crossed three times, after an exchange once."""
    nodes = [{**node, "uplink": SLOW} for node in TWO_NODES]
    layers = equal_layers("abcd", forward_s=1.0, output_bytes=1000)
    stages = [
        {"layers": [name], "devices": [device]}
        for name, device in zip("abcd", ("u:0", "v:1", "u:1", "v:0"), strict=True)
    ]
    move = best_move_of(small_problem(layers, nodes=nodes, num_stages=4), {"stages": stages})
    assert move is not None
    assert (move.kind, move.ranks, move.devices) == ("exchange", (0, 3), (("v:0",), ("u:0",)))
    assert (move.objective_value, move.gain) == (pytest.approx(5.0), pytest.approx(2.0))
    assert move.message == "exchange the devices of stage 0 and stage 3"


def test_a_rank_on_a_free_device() -> None:
    """Tests that a stage alone beyond a slow uplink comes to the others; other users' names of devices are kept."""
    nodes = [{**TWO_NODES[0], "count": 3, "uplink": SLOW}, {**TWO_NODES[1], "count": 1, "uplink": SLOW}]
    layers = equal_layers("ab", forward_s=1.0, output_bytes=1000)
    stages = [{"layers": ["a"], "devices": ["u:2"]}, {"layers": ["b"], "devices": ["v:0"]}]
    move = best_move_of(small_problem(layers, nodes=nodes, num_stages=2), {"stages": stages})
    assert move is not None
    assert (move.kind, move.ranks, move.devices) == ("devices", (1,), (("u:0",),))
    assert move.message == "put stage 1 on u:0 instead of v:0"
    assert move.gain == pytest.approx(1.0)


def test_a_plan_that_breaks_limits_is_mended() -> None:
    """Tests that the best move that keeps all limits is given, even where the value gets worse."""
    layers: dict[str, Json] = {
        "a": {"forward_s": 1.0, "weight_bytes": 60},
        "b": {"forward_s": 1.0, "weight_bytes": 60},
        "c": {"forward_s": 3.0, "weight_bytes": 10},
    }
    move = best_move_of(small_problem(layers, memory=100, num_microbatches=4), {"stage_sizes": [2, 1]})
    assert move is not None
    assert (move.layers, move.to_stage, move.gain < 0) == (("b",), 1, True)


@pytest.mark.parametrize(
    ("constraints", "layers"), [({"cut_after": ["b"]}, ("b",)), ({"together": [["a", "b"]]}, ("b",))]
)
def test_a_torn_group_is_mended(constraints: Json, layers: tuple[str, ...]) -> None:
    """Tests that layers move one by one where the plan itself separates what belongs together."""
    problem = small_problem("abc", constraints=constraints)
    move = best_move_of(problem, {"stage_sizes": [1, 2]})
    assert move is not None and move.layers == layers


def test_no_move_where_nothing_helps() -> None:
    """Tests the best plan, and one that breaks a limit that no move mends."""
    assert best_move_of(small_problem("ab", num_microbatches=4), {"stage_sizes": [1, 1]}) is None
    tight = small_problem("abc", num_microbatches=4, limits={"iteration_time_s": 1.0})
    assert best_move_of(tight, {"stage_sizes": [1, 2]}) is None


def test_moves_that_are_left_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the answer says so where not all moves were measured."""
    monkeypatch.setattr("partita.solver.single_moves.MOST_OF_A_KIND", 3)
    problem = small_problem("abcdef", num_microbatches=2)
    answer: Answer = evaluate_given(problem, validate(GivenPlan, {"stage_sizes": [5, 1]}), solve=False)
    assert answer.comparison is not None
    assert (answer.comparison.moves_measured, answer.comparison.all_moves) == (3, False)
