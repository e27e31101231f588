"""How the times of a plan are divided among its layers and stages."""

import pytest

from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.errors import NotSupportedYet
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.checks import InternalError
from partita.solver.review import evaluate_plan
from partita.solver.shares import shares

LAYER = {"forward_s": 1.0, "backward_s": 2.0, "weight_bytes": 7, "activation_bytes": 100, "output_bytes": 1000}
FULL = {"recompute": "full", "backward_s": 3.0, "activation_bytes": 10}


def problem(layers=4, **changes):
    """Give a chain on two devices, a transfer between which takes 0.5 s."""
    whole = {
        "model": {"layers": [{"name": f"l{i}", **LAYER, "options": [FULL]} for i in range(layers)]},
        "cluster": {
            "devices": {"d": {"memory_bytes": 1_000_000}},
            "nodes": [{"name": "n", "device": "d", "count": 2, "fabric": {"bandwidth_bytes_per_s": 2000.0}}],
        },
        "training": {"schedule": "1f1b", "num_stages": 2, "num_microbatches": 2},
    }
    for name, value in changes.items():
        whole[name] = value if isinstance(value, list) else {**whole.get(name, {}), **value}
    return validate(Problem, whole)


def shares_of(asked: Problem, **plan):
    answer: Answer = evaluate_plan(asked, validate(GivenPlan, plan or {"stage_sizes": [2, 2]}))
    return shares(asked, answer.candidates[0]), answer.candidates[0]


def test_layers_have_their_own_figures():
    """Tests that layers come by stage, with their times and bytes, and that those of a stage add up to its own."""
    found, plan = shares_of(problem(), stage_sizes=[3, 1])
    assert [(each.name, each.stage) for each in found.layers] == [("l0", 0), ("l1", 0), ("l2", 0), ("l3", 1)]
    first = found.layers[0]
    assert (first.forward_s, first.backward_s, first.recompute_s) == (1.0, 2.0, 0.0)
    assert (first.weight_bytes, first.activation_bytes) == (7, 100)
    for stage in plan.stages:
        own = [each for each in found.layers if each.stage == stage.index]
        assert sum(each.forward_s for each in own) == pytest.approx(stage.forward_s)
        assert sum(each.backward_s for each in own) == pytest.approx(stage.backward_s)


def test_recompute_is_apart():
    """Tests that recompute is what a layer takes longer than without: of chosen layers, and of all."""
    asked = problem(constraints={"recompute": "choose"})
    stages = [{"layers": ["l0", "l1"], "options": {"l1": "full"}}, {"layers": ["l2", "l3"]}]
    found, _ = shares_of(asked, stages=stages)
    assert [each.recompute_s for each in found.layers] == [0.0, 1.0, 0.0, 0.0]
    assert [(each.backward_s, each.recompute_s) for each in found.stages] == [(4.0, 1.0), (4.0, 0.0)]
    found, plan = shares_of(problem(constraints={"recompute": "full"}))
    assert [each.recompute_s for each in found.stages] == [2.0, 2.0]
    assert [each.backward_s + each.recompute_s for each in found.stages] == [each.backward_s for each in plan.stages]


def test_weight_gradients_are_apart_where_the_schedule_splits():
    """Tests both: a schedule that postpones weight gradients, and one that does not."""
    layers = {"layers": [{"name": f"l{i}", **LAYER, "weight_gradient_s": 0.5} for i in range(4)]}
    whole, _ = shares_of(problem(model=layers))
    split, _ = shares_of(problem(model=layers, training={"schedule": "zb_h1"}))
    assert [(each.backward_s, each.weight_gradient_s) for each in whole.stages] == [(4.0, 0.0)] * 2
    assert [(each.backward_s, each.weight_gradient_s) for each in split.stages] == [(3.0, 1.0)] * 2


@pytest.mark.parametrize(("routing", "expected"), [("relay", [1.0, 1.0]), ("host", [1.0, 1.0])])
def test_transfers_take_time_of_stages_with_blocking(routing, expected):
    """Tests that forward and backward transfers are in the times of both stages, which decide the bottleneck."""
    found, plan = shares_of(problem(training={"communication": "blocking", "routing": routing}))
    assert [each.transfers_s for each in found.stages] == pytest.approx(expected)
    busy = [each.forward_s + each.backward_s + each.transfers_s for each in found.stages]
    assert max(busy) == pytest.approx(plan.metrics.bottleneck_time_s)
    overlapped, _ = shares_of(problem())
    assert [each.transfers_s for each in overlapped.stages] == [0.0, 0.0]


def test_of_a_scenario():
    """Tests that the shares are those of the scenario that the plan shows."""
    slow = {"scenario": "long", "forward_s": 4.0}
    layers = {"layers": [{"name": f"l{i}", **LAYER, "options": [slow]} for i in range(4)]}
    scenarios = [{"name": "short", "share": 0.5}, {"name": "long", "share": 0.5}]
    found, plan = shares_of(problem(model=layers, scenarios=scenarios))
    assert plan.scenario == "long"
    assert {each.forward_s for each in found.layers} == {4.0}


def test_what_does_not_belong_together_is_refused():
    """Tests a plan with other times than its layers have, and degrees that are chosen for each stage."""
    asked = problem()
    _, plan = shares_of(asked)
    wrong = plan.stages[0].model_copy(update={"forward_s": 9.0})
    with pytest.raises(InternalError, match=r"stage 0 of the candidate takes 13.0 s, its layers 6.0 s"):
        shares(asked, plan.model_copy(update={"stages": (wrong, plan.stages[1])}))
    training = asked.training.model_copy(update={"per_stage_degrees": True})
    with pytest.raises(NotSupportedYet):
        shares(asked.model_copy(update={"training": training}), plan)
