"""Tests the cuts of a model, and what is done where there are too many."""

from functools import partial

import pytest

from partita.models.document import validate
from partita.models.problem import Problem
from partita.solver.planner import plan_problem
from partita.solver.steady import answer, cuts
from partita.solver.steady.cuts import find_cuts
from partita.solver.steady.menu import read_menu


def fork(branches: int) -> Problem:
    """Give a layer whose output is read by several layers that nothing else joins."""
    names = [f"branch{number}" for number in range(branches)]
    layers = [{"name": name, "forward_s": 1.0, "backward_s": 1.0} for name in ("head", *names)]
    tensor = {"name": "t", "producer": "head", "consumers": names, "bytes": 1000}
    return validate(
        Problem,
        {
            "model": {"layers": layers, "tensors": [tensor]},
            "cluster": {
                "devices": {"card": {"memory_bytes": "1GB"}},
                "nodes": [{"name": "node0", "device": "card", "count": 2, "fabric": {"bandwidth_bytes_per_s": 1e6}}],
            },
            "training": {"schedule": "1f1b", "num_microbatches": 4, "per_stage_degrees": True},
            "objective": "bottleneck_time",
        },
    )


def test_all_sets_that_contain_what_they_need() -> None:
    """Tests a fork of three: nothing, the head, and the head with every set of branches."""
    found = find_cuts(read_menu(fork(3)))
    assert found.complete
    assert len(found) == 1 + 2**3
    assert len(found.first) == sum(1 for i in range(9) for j in range(9) if i != j and _inside(found.before, i, j))


def _inside(before: object, first: int, second: int) -> bool:
    return bool((before[first] <= before[second]).all())  # type: ignore[index]


def test_too_many_cuts_leave_a_plan_without_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that one order is searched then, and that the bound is one of all plans."""
    best = plan_problem(fork(6)).candidates[0].metrics.bottleneck_time_s
    monkeypatch.setattr(answer, "find_cuts", partial(find_cuts, most=10))
    planned = plan_problem(fork(6))
    assert any("too many ways" in warning for warning in planned.warnings)
    assert planned.candidates
    assert planned.status == "feasible"
    assert planned.best_bound is not None
    assert planned.best_bound <= best
    assert planned.best_bound == pytest.approx(14.0 / 2)


def test_a_long_chain_is_cut_at_some_places_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the figures kept stay within their bound."""
    monkeypatch.setattr(cuts, "MOST_ENTRIES", 20)
    found = find_cuts(read_menu(fork(6)))
    assert not found.complete
    assert found.before[0].sum() == 0 and found.before[-1].all()
    assert len(found.first) * 2 <= 20


def test_few_cuts_first_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a plan found along few cuts is replaced by the best one."""
    whole = plan_problem(fork(5))
    monkeypatch.setattr(answer, "FEW_CUTS", 4)
    planned = plan_problem(fork(5))
    assert (planned.status, planned.best_bound) == ("optimal", whole.best_bound)
