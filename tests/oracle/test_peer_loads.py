"""Tests that the oracle prices published plans as their authors' objective does."""

import json

import pytest

from oracle.pricing import price
from oracle.shared_data import shared_file
from partita.models.readers import READERS


@pytest.mark.parametrize(
    ("graph", "expert", "load_ms"),
    [
        ("bert24_inference", "bert24_inference", 20.083953125),
        ("bert24_training", "bert24_training", 49.40490625),
        ("resnet50_inference", "resnet50_inference", 43.9182578125),
        ("resnet50_training", "resnet50_inference", 112.107515625),  # gradients ride with their forward nodes
    ],
)
def test_loads_of_human_experts(graph: str, expert: str, load_ms: float) -> None:
    """Tests the load of dnn-partitioning's human experts on its own layer graphs."""
    text = shared_file(f"dnn-partitioning/throughput-inputs/LayerGraphs/{graph}.json")
    problem = READERS["dnn-partitioning"].read(text)
    layer_of = {node["id"]: node["name"] for node in json.loads(text)["nodes"]}
    layers = {layer.name for layer in problem.model.layers}
    split = json.loads(shared_file(f"dnn-partitioning/human-experts/{expert}_expert.json"))["fpgas"]
    stages = [[layer_of[node] for node in part["nodes"] if layer_of[node] in layers] for part in split]
    cost = price(problem, stages, [[f"node0:{stage}"] for stage in range(len(stages))])
    assert cost.bottleneck_time_s * 1000 == pytest.approx(load_ms, rel=1e-9)
