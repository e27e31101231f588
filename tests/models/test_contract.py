"""What stages are given and give."""

from typing import Any

from partita.models.answer import Candidate
from partita.models.answer_plan import Boundary, CrossingTensor, TiedWeight
from partita.models.contract import contract_of
from partita.models.document import validate
from partita.models.profile import ModelProfile


def boundary(*tensors: tuple[str, str]) -> Boundary:
    """Give a boundary that tensors cross, each in a direction."""
    document: dict[str, Any] = {
        "from_stage": 0,
        "to_stage": 1,
        "tensors": [CrossingTensor.model_validate({"name": n, "bytes": 8, "direction": d}) for n, d in tensors],
        "forward_bytes": 0,
        "backward_bytes": 0,
        "path": [],
        "bandwidth_bytes_per_s": None,
        "latency_s": 0.0,
        "transfer_s": 0.0,
        "backward_transfer_s": 0.0,
    }
    return validate(Boundary, document)


def stage(index: int, layers: list[str]) -> dict[str, Any]:
    """Give a stage without costs."""
    memory = ("weights", "gradients", "optimizer", "buffers", "activations", "communication", "workspace")
    sizes = {f"{name}_bytes": 0 for name in (*memory, "reserve", "total", "capacity")} | {"in_flight": 1}
    times = {"forward_s": 1.0, "backward_s": 1.0, "weight_gradient_s": 0.0}
    return {"index": index, "rank": index, "devices": [f"node0:{index}"], "layers": layers, "memory": sizes} | times


def test_gradients_and_buffers() -> None:
    """Tests that gradients stand with their tensors, others by themselves, and buffers with who writes to them."""
    metrics = {name: 1.0 for name in ("iteration_time_s", "tokens_per_second", "bottleneck_time_s")}
    metrics |= {"peak_memory_bytes": 0, "microbatches_per_second": 1.0, "bubble_fraction": 0.0}
    candidate = validate(
        Candidate,
        {
            "rank": 1,
            "schedule": {"kind": "1f1b"},
            "metrics": metrics | {"inter_node_bytes": 0, "num_devices": 2},
            "stages": [stage(0, ["a", "b"]), stage(1, ["c"])],
            "boundaries": [boundary(("x", "forward"), ("ids", "forward"), ("x", "backward"), ("g", "backward"))],
            "tied_weights": [TiedWeight(name="w", stages=(0, 1), synchronised_bytes=4)],
        },
    )
    model = validate(
        ModelProfile,
        {
            "layers": [{"name": name, "forward_s": 1.0} for name in "abc"],
            "buffers": [
                {"name": "mean", "bytes": 4, "layers": ["b"], "mutated": True},
                {"name": "mask", "bytes": 4, "layers": ["a", "c"]},
            ],
        },
    )
    contract = contract_of(model, candidate)
    sent = [(each.name, each.direction, each.gradient) for each in contract.boundaries[0].tensors]
    assert sent == [("x", "forward", True), ("ids", "forward", False), ("g", "backward", False)]
    held = [[(each.name, each.mutated) for each in stage.buffers] for stage in contract.stages]
    assert held == [[("mean", True), ("mask", False)], [("mask", False)]]
    assert [stage.tied_weights for stage in contract.stages] == [("w",), ("w",)]
