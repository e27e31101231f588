"""Small named problems, and the parts of the solver that look at them."""

from collections.abc import Mapping, Sequence
from typing import Any

from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.problem import Problem
from partita.solver.grouping import Groups, group_layers
from partita.solver.instance import build_instance
from partita.solver.planner import plan_problem
from partita.solver.session import Session
from partita.solver.tools import Tactics

Json = dict[str, Any]
FREE = {"bandwidth_bytes_per_s": 1e18}


def small_problem(
    layers: Mapping[str, Json] | str,
    *,
    devices: int = 2,
    nodes: Sequence[Json] | None = None,
    links: Sequence[Json] = (),
    memory: int = 10**12,
    reserve: int = 0,
    model: Json | None = None,
    constraints: Json | None = None,
    limits: Json | None = None,
    objective: str | Sequence[str] | Mapping[str, float] = "iteration_time",
    search: Json | None = None,
    scenarios: Sequence[Json] = (),
    over_scenarios: str = "expected",
    **training: Any,
) -> Problem:
    """Make a chain of the named layers (a text names layers of 1 s by its letters) on one node, or on given nodes."""
    costs = {name: {"forward_s": 1.0} for name in layers} if isinstance(layers, str) else layers
    one_node = {"name": "node0", "device": "gpu", "count": devices, "fabric": FREE}
    usual = {"schedule": "forward_only", "num_microbatches": 1, "optimizer": "none"}
    problem = {
        "model": {"layers": [{"name": name} | cost for name, cost in costs.items()]} | (model or {}),
        "cluster": {
            "devices": {"gpu": {"memory_bytes": memory, "reserve_bytes": reserve}},
            "nodes": list(nodes or [one_node]),
            "links": list(links),
        },
        "training": usual | training,
        "scenarios": list(scenarios),
        "over_scenarios": over_scenarios,
        "objective": objective,
        "constraints": constraints or {},
        "limits": limits or {},
        "search": {"time_limit_s": 60.0, "workers": 1} | (search or {}),
    }
    return validate(Problem, problem)


def equal_layers(names: str, **costs: float) -> dict[str, Json]:
    """Give a layer of these costs for every letter."""
    return {name: dict(costs) for name in names}


def edges(*ways: str, size: int = 0) -> Json:
    """Give the tensors of a model: ``a>bc`` goes from layer a to layers b and c; ``a<b`` moves in the backward pass."""
    tensors = []
    for number, way in enumerate(ways):
        producer, consumers = way[0], list(way[2:])
        tensor: Json = {"name": f"t{number}", "producer": producer, "consumers": consumers, "bytes": size}
        tensors.append(tensor | ({"pass": "backward"} if way[1] == "<" else {}))
    return {"tensors": tensors}


def groups_of(problem: Problem) -> Groups:
    """Give the groups of a problem's layers."""
    return group_layers(build_instance(problem))


def grouped_names(problem: Problem) -> list[str]:
    """Give the names of every group's layers, joined."""
    names = [layer.name for layer in problem.model.layers]
    return ["".join(names[layer] for layer in members) for members in groups_of(problem).members]


def session_of(problem: Problem) -> Session:
    """Give a session for a problem."""
    return Session(problem, Tactics())


def stages_of_best(answer: Answer) -> list[str]:
    """Give the names of the layers of the best plan's stages, joined."""
    return ["".join(stage.layers) for stage in answer.candidates[0].stages]


def optimal(problem: Problem) -> Answer:
    """Plan a problem and demand a proof."""
    answer = plan_problem(problem)
    assert answer.status == "optimal"
    return answer
