"""Tests PipeDream's replicated stages, which are those of one device for each replica."""

import pytest

from oracle.shared_data import shared_file
from partita.models.document import validate
from partita.models.problem import Problem
from partita.models.readers.pipedream import read
from partita.solver.planner import plan_problem


@pytest.mark.parametrize(
    ("profile", "machines", "bandwidth", "most_replicas", "theirs"),
    [
        ("vgg16", 4, 1e9, 4, 0.205520896),
        ("vgg16", 4, 1.25e9, 4, 0.176349166),
        ("vgg16", 16, 1.25e9, 16, 0.054794891),
        ("vgg16", 16, 1e10, 16, 0.043227074),
        ("vgg16", 4, 1.25e9, 1, 0.381063),
        ("alexnet", 4, 1.25e9, 1, 0.053162803),
        ("resnet50", 8, 3e10, 1, 0.056684),
    ],
)
def test_replicated_stages(profile: str, machines: int, bandwidth: float, most_replicas: int, theirs: float) -> None:
    """Tests PipeDream's own results on one level of machines, without a memory limit.

    It counts an activation and its gradient over one boundary as one transfer, and gradients sent and received as one
    exchange: half the bandwidth for each.
    """
    problem = read(
        shared_file(f"pipedream/{profile}.txt"),
        devices=machines,
        bandwidth_bytes_per_s=bandwidth / 2,
        memory_bytes="1PiB",
    )
    data = problem.model_dump(mode="json", exclude_defaults=True)
    data["training"] |= {
        "per_stage_degrees": True,
        "gradient_exchange_after": "round",
        "data_parallel": list(range(1, most_replicas + 1)),
    }
    answer = plan_problem(validate(Problem, data))
    assert answer.status == "optimal"
    assert answer.best_bound == pytest.approx(theirs, rel=2e-6)  # as many digits as there are of each
