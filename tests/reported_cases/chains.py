"""Chains of layers on one node, and what is read off their plans."""

from collections.abc import Sequence
from typing import Any

from partita.models.answer import Answer, Candidate
from partita.models.document import validate
from partita.models.problem import Problem
from partita.solver.planner import plan_problem

GB = 10**9
FAST = {"bandwidth_bytes_per_s": 1e15}


def chain(
    layers: Sequence[dict[str, Any]],
    *,
    devices: int,
    memory: str = "1000GB",
    objective: str = "bottleneck_time",
    nodes: list[dict[str, Any]] | None = None,
    weights: Sequence[dict[str, Any]] = (),
    **training: Any,
) -> Problem:
    """Make a chain whose layers are named layer0, layer1 and so on, in as many stages as devices."""
    named = [{"name": f"layer{index}"} | layer for index, layer in enumerate(layers)]
    one_node = {"name": "node0", "device": "device", "count": devices, "fabric": FAST, "uplink": FAST}
    usual = {"schedule": "forward_only", "num_stages": devices, "num_microbatches": 8, "optimizer": "none"}
    problem = {
        "model": {"layers": named, "weights": list(weights)},
        "cluster": {"devices": {"device": {"memory_bytes": memory}}, "nodes": nodes or [one_node]},
        "training": usual | training,
        "objective": objective,
    }
    return validate(Problem, problem)


def best_plan(problem: Problem) -> Candidate:
    """Plan the problem and give the best plan, proven to be so."""
    answer = plan_problem(problem)
    assert answer.status == "optimal"
    return answer.candidates[0]


def why_not(problem: Problem) -> str:
    """Plan a problem that has no plan and give the whole explanation as JSON."""
    answer: Answer = plan_problem(problem)
    assert answer.status == "infeasible"
    assert answer.candidates == ()
    assert answer.infeasibility is not None
    return answer.infeasibility.model_dump_json()


def sizes(plan: Candidate) -> list[int]:
    """Give the number of layers of every stage."""
    return [len(stage.layers) for stage in plan.stages]


def memory(plan: Candidate) -> list[int]:
    """Give the bytes of every stage."""
    return [stage.memory.total_bytes for stage in plan.stages]
