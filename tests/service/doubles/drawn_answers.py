"""Small answers of every kind that charts are made of."""

from functools import cache
from typing import Any

from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.front import Front, FrontMetric
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.service.api import examples
from partita.solver.frontier import frontier
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan

LAYER = {"forward_s": 0.002, "backward_s": 0.004, "weight_bytes": "50MB", "activation_bytes": "20MB"}
FABRIC, UPLINK = {"bandwidth_bytes_per_s": 300e9, "latency_s": 3e-6}, {"bandwidth_bytes_per_s": 25e9}


def chain(
    layers: int, stages: int, nodes: int = 1, count: int = 8, name: str = "l{}", **training: Any
) -> dict[str, Any]:
    """Give a problem whose layers differ a little."""
    own = [
        {
            **LAYER,
            "name": name.format(i),
            "forward_s": 0.002 + 0.0001 * (i % 7),
            "output_bytes": 1_000_000 * (1 + i % 5),
        }
        for i in range(layers)
    ]
    node = {"name": "n", "replicas": nodes, "device": "d", "count": count, "fabric": FABRIC, "uplink": UPLINK}
    devices = {"d": {"memory_bytes": "80GB", "reserve_bytes": "2GB"}}
    common = {"schedule": "1f1b", "num_stages": stages, "num_microbatches": 2 * stages}
    return {
        "model": {"layers": own},
        "cluster": {"devices": devices, "nodes": [node]},
        "training": common | training,
    }


def sizes(layers: int, stages: int) -> list[int]:
    """Spread layers evenly."""
    return [layers // stages + (stage < layers % stages) for stage in range(stages)]


def priced(problem: dict[str, Any], stages: int) -> Answer:
    """Price the plan with equal numbers of layers."""
    asked = validate(Problem, problem)
    given = validate(GivenPlan, {"stage_sizes": sizes(len(asked.model.layers), stages)})
    return evaluate_plan(asked, given).model_copy(update={"problem": asked})


def planned(problem: dict[str, Any]) -> Answer:
    """Plan a problem."""
    asked = validate(Problem, problem)
    return plan_problem(asked).model_copy(update={"problem": asked})


def _steady() -> dict[str, Any]:
    training = {"num_stages": None, "tensor_parallel": [1, 2], "data_parallel": [1, 2], "per_stage_degrees": True}
    return chain(6, 3, **training) | {"objective": "bottleneck_time"}


def _nothing_takes_time() -> dict[str, Any]:
    problem = chain(4, 2)
    for layer in problem["model"]["layers"]:
        layer.update(forward_s=0.0, backward_s=0.0, output_bytes=0)
    problem["cluster"]["nodes"][0]["fabric"] = {"bandwidth_bytes_per_s": 1e9}
    return problem


def _too_small() -> dict[str, Any]:
    problem = chain(24, 4)
    problem["cluster"]["devices"]["d"] = {"memory_bytes": "3GB"}
    return problem


LONG = "transformer.decoder.layers.{}.self_attention_and_feed_forward"

ANSWERS = {
    "planned": lambda: planned(examples.CHAIN),
    "graph": lambda: planned(examples.GRAPH),
    "compared": lambda: planned(examples.COMPARISON),
    "recompute": lambda: planned(examples.RECOMPUTE),
    "degrees": lambda: planned(examples.DEGREES),
    "scenarios": lambda: planned(examples.SCENARIOS),
    "lexicographic": lambda: planned(examples.CHAIN | {"objective": ["peak_memory", "iteration_time"]}),
    "steady": lambda: planned(_steady()),
    "weighted": lambda: planned(examples.CHAIN | {"objective": {"iteration_time_s": 1, "peak_memory_bytes": 1e-11}}),
    "tokens": lambda: planned(examples.CHAIN | {"objective": "tokens_per_second"}),
    "too small": lambda: priced(_too_small(), 4),
    "no time": lambda: priced(_nothing_takes_time(), 2),
    "one layer": lambda: priced(chain(1, 1), 1),
    "inference": lambda: priced(chain(12, 4, schedule="forward_only"), 4),
    "blocking": lambda: priced(chain(12, 4, communication="blocking"), 4),
    "split": lambda: priced(chain(16, 8, schedule="zb_v", num_microbatches=16), 8),
    "interleaved": lambda: priced(
        chain(16, 8, 2, 2, schedule={"kind": "interleaved_1f1b", "chunks_per_rank": 2}, num_microbatches=8), 8
    ),
    "many layers": lambda: priced(chain(1000, 64, 8, 8, name=LONG, num_microbatches=64), 64),
    "many devices": lambda: priced(chain(48, 16, 64, 8, name=LONG, tensor_parallel=8, data_parallel=4), 16),
}
"""What makes them, by name."""


@cache
def answer(name: str) -> Answer:
    """Give one of them, with its problem."""
    return ANSWERS[name]()


@cache
def front(
    first: FrontMetric = "iteration_time_s", second: FrontMetric = "peak_memory_bytes", points: int = 20
) -> Front:
    """Give a front with its problem."""
    stages = {"training": examples.CHAIN["training"] | {"num_stages": [1, 2, 3, 4]}}
    problem = validate(Problem, examples.CHAIN | stages)
    return frontier(problem, (first, second), points).model_copy(update={"problem": problem})
