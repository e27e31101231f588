"""Tests that published inputs of other planners are solved to their known optima."""

import pytest

from oracle.comparison import check_candidate
from oracle.shared_data import shared_file
from partita.models.problem import Problem
from partita.models.readers import READERS
from partita.models.search import Search
from partita.solver.planner import plan_problem

MILLISECOND = 1e-3


def best_bottleneck(problem: Problem, seconds: float = 60.0) -> float:
    """Plan a problem, demand a proof, and give the bottleneck of the best plan."""
    search = Search(candidates=1, time_limit_s=seconds, workers=2)
    problem = problem.model_copy(update={"search": search})
    answer = plan_problem(problem)
    assert answer.status == "optimal"
    check_candidate(problem, answer.candidates[0])
    return answer.candidates[0].metrics.bottleneck_time_s


@pytest.mark.parametrize(
    ("graph", "optimum_ms"),
    [
        ("LayerGraphs/bert24_inference", 17.78990625),
        ("LayerGraphs/bert24_training", 41.7458125),
        ("LayerGraphs/resnet50_inference", 34.2228515625),
        ("LayerGraphs/resnet50_training", 80.45488671875),
        ("OperatorGraphs/bert_l-3_inference", 27.9185676799),
        ("OperatorGraphs/bert_l-3_training", 65.3030929746),
        ("OperatorGraphs/resnet50_inference", 128.0735111041),
        pytest.param("OperatorGraphs/resnet50_training", 263.0352886022, marks=pytest.mark.slow),
    ],
)
def test_dnn_partitioning(graph: str, optimum_ms: float) -> None:
    """Tests the optimum without CPUs of every throughput input, as shipped, each proven within 20 s."""
    problem = READERS["dnn-partitioning"].read(shared_file(f"dnn-partitioning/throughput-inputs/{graph}.json"))
    assert best_bottleneck(problem, seconds=20.0) == pytest.approx(optimum_ms * MILLISECOND, rel=1e-6)


LARGE = 17185374208


@pytest.mark.parametrize(
    ("graph", "devices", "memory_bytes", "edge_cost_unit", "optimum_ms"),
    [
        ("LayerGraphs/bert24_inference", 2, LARGE, "ms", 47.478953125),
        ("LayerGraphs/bert24_inference", 4, 524637070, "ms", 28.42290625),  # memory binds
        ("LayerGraphs/bert24_inference", 4, LARGE, "s", 27.828125),  # transfers as slow as they really are
        ("LayerGraphs/bert24_training", 4, 1049274140, "ms", 66.7448125),
        ("LayerGraphs/bert24_training", 4, 1049274140, "s", 74.5495),
        ("LayerGraphs/resnet50_inference", 2, 11161299959, "ms", 105.46262890625),
        ("LayerGraphs/resnet50_inference", 4, LARGE, "s", 181.8995625),  # two of four stages are best
        ("LayerGraphs/resnet50_training", 4, LARGE, "ms", 117.2960703125),
        ("OperatorGraphs/bert_l-3_inference", 2, 869898920, "ms", 36.9046344397),
        ("OperatorGraphs/bert_l-3_inference", 4, 434949460, "ms", 190.9170549612),
        ("OperatorGraphs/resnet50_inference", 2, LARGE, "ms", 194.4389656089),
    ],
)
def test_dnn_partitioning_otherwise(
    graph: str, devices: int, memory_bytes: int, edge_cost_unit: str, optimum_ms: float
) -> None:
    """Tests the same inputs with other numbers of devices, tight memory and consistent units."""
    text = shared_file(f"dnn-partitioning/throughput-inputs/{graph}.json")
    options = {"devices": devices, "memory_bytes": memory_bytes, "edge_cost_unit": edge_cost_unit}
    problem = READERS["dnn-partitioning"].read(text, **options)
    assert best_bottleneck(problem) == pytest.approx(optimum_ms * MILLISECOND, rel=1e-6)


def test_dnn_partitioning_that_cannot_fit() -> None:
    """Tests that two devices are too few for the training of resnet50."""
    text = shared_file("dnn-partitioning/throughput-inputs/LayerGraphs/resnet50_training.json")
    assert plan_problem(READERS["dnn-partitioning"].read(text, devices=2)).status == "infeasible"


@pytest.mark.parametrize(
    ("profile", "devices", "bandwidth", "peer_s"),
    [
        ("vgg16", 4, 1.25e9, 0.381063),
        ("vgg16", 8, 3e10, 0.159531),
        ("alexnet", 4, 1.25e9, 0.053162803),
        ("resnet18", 4, 1.25e9, 0.164416717),
        ("resnet50", 4, 1.25e9, 0.258149),
        ("resnet50", 8, 3e10, 0.056684),
        ("gnmt", 4, 1.25e9, 0.025868),
        ("gnmt", 8, 3e10, 0.019032),
    ],
)
def test_pipedream_straight_pipelines(profile: str, devices: int, bandwidth: float, peer_s: float) -> None:
    """Tests that the optimum is never worse than what PipeDream's optimizer finds with one machine for each stage.

    It counts an activation and its gradient over one boundary as one transfer: half the bandwidth for either.
    """
    options = {"devices": devices, "bandwidth_bytes_per_s": bandwidth / 2, "memory_bytes": "1PiB"}
    problem = READERS["pipedream"].read(shared_file(f"pipedream/{profile}.txt"), **options)
    assert best_bottleneck(problem) <= peer_s * (1 + 1e-6)


@pytest.mark.parametrize(
    ("profile", "stages", "exact_ms"),
    [
        ("vgg16", 4, 216.450),
        ("vgg16", 8, 159.531),
        ("alexnet", 4, 28.721),
        ("alexnet", 16, 28.721),
        ("resnet18", 4, 69.523),
        ("resnet18", 8, 37.242),
        ("resnet18", 16, 32.330),
        ("resnet50", 4, 111.497),
        ("resnet50", 8, 58.447),
        ("resnet50", 16, 29.688),
        ("gnmt", 4, 25.868),
        ("gnmt", 8, 19.032),
    ],
)
def test_chains_split_without_transfers(profile: str, stages: int, exact_ms: float) -> None:
    """Tests the smallest bottleneck of the same layers as a chain, known from a dynamic program."""
    problem = READERS["pipedream"].read(shared_file(f"pipedream/{profile}.txt"), devices=stages, memory_bytes="1PiB")
    chain = problem.model.model_copy(update={"tensors": None})
    training = problem.training.model_copy(update={"num_stages": stages})
    bottleneck = best_bottleneck(problem.model_copy(update={"model": chain, "training": training}))
    assert bottleneck == pytest.approx(exact_ms * MILLISECOND, abs=1e-6)
