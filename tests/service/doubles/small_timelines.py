"""Small timelines for the tests of the service."""

import json
from typing import Any

from partita.models.answer import Answer, Candidate
from partita.models.document import validate
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.review import evaluate_plan
from partita.solver.timeline import Timeline, timeline


def training_problem(
    ranks: int = 2, num_microbatches: int = 3, chunks: int = 1, output_bytes: int = 1000, **training: Any
) -> Problem:
    """Give a chain with a layer for every stage, on two nodes; a transfer of 1 s between them and of 1 ms inside."""
    layer = {"forward_s": 2.0, "backward_s": 3.0, "weight_gradient_s": 1.0, "activation_bytes": 10}
    layers = [{"name": f"l{i}", **layer, "output_bytes": output_bytes} for i in range(ranks * chunks)]
    link = {"bandwidth_bytes_per_s": 1e6}
    node = {"name": "n", "replicas": 2, "device": "d", "count": (ranks + 1) // 2, "fabric": link}
    problem = {
        "model": {"layers": layers},
        "cluster": {
            "devices": {"d": {"memory_bytes": "1GB"}},
            "nodes": [{**node, "uplink": {"bandwidth_bytes_per_s": 1e3}}],
        },
        "training": {"schedule": "1f1b", "num_stages": ranks * chunks, "num_microbatches": num_microbatches} | training,
    }
    return validate(Problem, problem)


def answer_of(problem: Problem) -> Answer:
    """Price the plan with a layer on every stage."""
    sizes = [1] * len(problem.model.layers)
    return evaluate_plan(problem, validate(GivenPlan, {"stage_sizes": sizes}))


def timeline_of(problem: Problem) -> tuple[Timeline, Candidate]:
    """Give the timeline of that plan, and the plan."""
    (candidate,) = answer_of(problem).candidates
    return timeline(problem, candidate), candidate


def answer_json(problem: Problem, **changes: Any) -> dict[str, Any]:
    """Give the answer with its problem as JSON values."""
    whole = answer_of(problem).model_copy(update={"problem": problem})
    values: dict[str, Any] = json.loads(whole.model_dump_json())
    return values | changes
